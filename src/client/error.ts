/**
 * The errors of calls: one class for refusals of the server, lost connections and times that are over, so that one `catch` and
 * one union of codes cover a call.
 */
import type { ProblemCode } from '../http/problem-registry.ts';

/** `network`: no answer, however often it was tried. `timeout`: the time of the call is over. `answer_unknown`: not an answer of Comity. */
export type ErrorCode = ProblemCode | 'network' | 'timeout' | 'answer_unknown';

/** A fault in the content, located by a JSON Pointer (RFC 6901). */
export type MemberError = { readonly pointer: string; readonly message: string };

/** @template Code the codes that `code` may have; `client.isError(error)` adds those of the application */
export class ComityError<Code extends string = ErrorCode> extends Error {
  override readonly name: string = 'ComityError';
  readonly code: Code;
  /** 0: there was no answer. */
  readonly status: number;
  readonly errors: readonly MemberError[];
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | undefined;
  /** The whole JSON of the answer, such as the `challenge` of `second_factor_required`. */
  readonly body: Readonly<Record<string, unknown>>;

  constructor(code: Code, message: string, { status = 0, body = {}, retryAfter, cause }: ErrorParts = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
    this.errors = Array.isArray(body.errors) ? body.errors : [];
  }
}

type ErrorParts = {
  readonly status?: number;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
};

/** Someone else changed a member that `update` changes too, or the document that `delete` deletes. Nothing was written. */
export class ConflictError<D = unknown> extends ComityError<'precondition_failed'> {
  override readonly name: string = 'ConflictError';
  /** The document that the caller changed. */
  readonly base: D;
  /** The caller's change. */
  readonly mine: unknown;
  /** The document as it is now, with its tag: `update(theirs, mine)` writes over it. */
  readonly theirs: D;
  /** The members that both changed: `title`, `address.city`. */
  readonly members: readonly string[];

  constructor(parts: Pick<ConflictError<D>, 'base' | 'mine' | 'theirs' | 'members'>) {
    super('precondition_failed', `${parts.members.join(', ') || 'the document'} was changed meanwhile`, {
      status: 412,
    });
    this.base = parts.base;
    this.mine = parts.mine;
    this.theirs = parts.theirs;
    this.members = parts.members;
  }
}

const secondMs = 1000;
const digits = /^\d+$/;

/** Reads seconds, or a date of HTTP, as proxies send it (RFC 9110 §10.2.3). */
export function readRetryAfter(field: string | null): number | undefined {
  if (field === null) return undefined;
  const seconds = digits.test(field) ? Number(field) : (Date.parse(field) - Date.now()) / secondMs;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

/** The error that an answer says; an answer of something else, such as a proxy, is `answer_unknown`. */
export function refusalIn(response: Response, body: unknown): ComityError {
  const { status } = response;
  const said = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  const parts = { status, body: said, retryAfter: readRetryAfter(response.headers.get('Retry-After')) };
  const { code, error, detail } = said;
  if (typeof code !== 'string') return new ComityError('answer_unknown', `the answer is ${status}`, parts);
  return new ComityError(code as ErrorCode, String(error ?? detail ?? code), parts);
}
