/**
 * The failure of an application's function, and where in its file it began. Threads of handlers import it, and must not load the
 * declaration, which refusals need: a thread would take TypeBox and the stemmers into its memory.
 */
import { ResourceRefused } from '../config/senders.ts';

/** A function of the application did not do what it must: the response is a 500, and the log has the cause. */
export class FunctionFailed extends Error {
  override readonly name = 'FunctionFailed';
  /** The status of the response, for callers in the same process. */
  readonly status = 500;
  readonly code = 'internal';
}

/** Describes, for the log alone, a refusal that comes too late to stop a decided deletion. @param what the hook, and what it refuses */
export function refusedLate(
  what: string,
  { message }: { readonly message?: string | undefined },
): FunctionFailed {
  const why = message === undefined ? '' : ` (${message})`;
  return new FunctionFailed(
    `${what} after the deletion was decided, which goes on without what the hook writes${why}`,
  );
}

/** Frames of a call that was made: the first are those of the application. */
export type Place = { readonly stack?: string };

/** The first says where the call stands, the others how the function came there. */
const framesOfCall = 4;

/** @param callee the function of Comity that was called, which is left out */
export function placeOfCall(callee: (...given: never[]) => unknown): Place {
  const place: Place = {};
  const { stackTraceLimit } = Error;
  // Each frame takes 150 ns, and every call has a place.
  Error.stackTraceLimit = framesOfCall;
  Error.captureStackTrace(place, callee);
  Error.stackTraceLimit = stackTraceLimit;
  return place;
}

/**
 * Gives an error of a call the place of the call: what failed within Comity has no frame of the application, whose call
 * ended before. Errors of the application's own code, which have one, are left as they are.
 */
export function placed(error: unknown, { stack = '' }: Place): unknown {
  const isOwn = error instanceof ResourceRefused || error instanceof FunctionFailed;
  if (!isOwn || error.cause !== undefined) return error;
  error.stack = `${error.name}: ${error.message}${stack.slice(stack.indexOf('\n'))}`;
  return error;
}
