/** The content of a request from its octets to the value that its operation understands (§4.4), and the memory for what it makes. */
import type { Request } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { MediaType } from '../http/syntax/media-type.ts';
import { StoreUnavailable } from '../store/store.ts';
import { contentBytesMax, type MessageReading, shortBytesMax } from './message-facts.ts';
import type { Ask, Operation, Standing } from './resource.ts';
import type { WalkContext } from './walk-context.ts';

type Taken =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly content: unknown }
  /** `bytes`: decoded content, if decoding succeeded. */
  | { readonly ok: false; readonly bytes: Uint8Array | undefined; readonly problem: Problem };

const octetStream: MediaType = { type: 'application/octet-stream', parameters: new Map() };

/** @throws StoreUnavailable if no client waits any longer */
export function requireClient(request: Pick<Request, 'isGone'> | undefined): void {
  if (request?.isGone === true) throw new StoreUnavailable('the client has left', { retryAfterSeconds: 1 });
}

/** Goes on once there is room for what a request without content makes. @throws StoreUnavailable */
export function afterRoom(
  { memory }: Request,
  { makes }: Pick<Operation, 'makes'>,
  goOn: () => Promise<void> | undefined,
): Promise<void> | undefined {
  const room = makes === undefined ? undefined : memory?.makeRoom(makes(undefined));
  return room === undefined ? goOn() : room.then(goOn);
}

/** Waits for the memory of a change of the row that was found; undefined: it is there. Rejects with StoreUnavailable. */
export function roomFor(
  { memory }: Request,
  { makesOf }: Pick<Operation, 'makesOf'>,
  found: Standing,
): Promise<void> | undefined {
  try {
    return memory?.makeRoom(makesOf?.(found) ?? 0);
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Takes the content of a request: reads, decodes and parses it (§4.4); with `raw`, leaves the octets as received
 * (§4.14.1).
 */
export async function takeContent(
  { limits, decodeContent, loop }: WalkContext,
  request: Request,
  { codings, mediaType, operation, route }: MessageReading,
  ask: Ask,
): Promise<Taken> {
  if (operation?.understand === undefined) throw new Error('the operation has no understand stage');
  const received = await request.readContent(contentBytesMax(operation, limits));
  if (!received.ok) {
    const { ok, ...problem } = received;
    return { ok, bytes: undefined, problem };
  }
  let { bytes } = received;
  // Content that waits to make something has no room to be processed, which others need.
  const isWhole = operation.raw === true || codings.length === 0;
  const octets = operation.makes?.(isWhole ? bytes : undefined) ?? 0;
  const madeMax = request.memory?.madeMax ?? octets;
  if (octets > madeMax) {
    const message = `the request would take up to ${octets} octets of memory, and ${madeMax} are the limit (COMITY_MEMORY_BYTES_MAX): send less at once`;
    return { ok: false, bytes: undefined, problem: { code: 'content_too_large', message } };
  }
  const room = request.memory?.makeRoom(octets);
  if (room !== undefined) await room;
  // Only complete content takes this room, so a slow upload does not delay other requests.
  const work = request.memory?.roomToProcess(bytes.length);
  if (work !== undefined) await work;
  if (operation.raw !== true) {
    const decoding = decodeContent(bytes, codings, request.memory);
    const decoded = decoding instanceof Promise ? await decoding : decoding;
    if (!decoded.ok) return { ok: false, bytes: undefined, problem: { code: decoded.code } };
    bytes = decoded.bytes;
    if (bytes.length > (shortBytesMax(operation, limits) ?? bytes.length)) {
      return { ok: false, bytes: undefined, problem: { code: 'content_too_large' } };
    }
    if (mediaType === undefined) throw new Error('content that is parsed requires a media type');
  }
  // Contents that arrive, or are decoded, at the same time would be parsed in one turn of the event loop.
  const turn = request.memory?.nextTurn(bytes.length);
  if (turn !== undefined) await turn;
  const begun = loop.begin();
  const parsing = operation.understand(ask, bytes, mediaType ?? octetStream);
  loop.end(begun, request, route?.resource.pattern);
  // Verifying a signature takes 10 µs: the walk goes on without a promise.
  const understood = parsing instanceof Promise ? await parsing : parsing;
  return understood.ok
    ? { ok: true, bytes, content: understood.value }
    : { ok: false, bytes, problem: understood.problem };
}
