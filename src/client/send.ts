/**
 * One call, as many requests as it takes: the credential, the Idempotency-Key, repetitions after a lost answer, 429 and 503, and the entity
 * tags by which a second read is a 304.
 *
 * A runtime may send a request again by itself, and so does this: each write has a key, by which the server carries it out once.
 */
import { ComityError, refusalIn } from './error.ts';
import { drawKey, type Session } from './session.ts';

/** The options of each call. */
export type CallOptions = {
  /** Ends the call, its waits included, with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** Milliseconds for the call with its waits and repetitions. Default 60,000; then it is a `ComityError` with the code `timeout`. */
  readonly timeout?: number;
  /** Further header fields, such as `Prefer`. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** The address and the `fetch` of a client. */
export type Fetching = {
  /** The base of the API: `https://desk.example/api/v1`. On a page of the same origin a path is enough. */
  readonly baseUrl: string;
  /** In place of the global one. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
};

export type Sent = CallOptions & {
  /** Sent as JSON, and as it is where it is a form, a Blob, octets or a text. */
  readonly body?: unknown;
  /** Refusals with these statuses are answers of the call. */
  readonly accepts?: readonly number[];
  /** Without the credential of the client. */
  readonly isLogin?: boolean;
  /** Not sent again where the answer is lost. */
  readonly once?: boolean;
  /** The server does not keep its result by an Idempotency-Key. */
  readonly isKeyless?: boolean;
  /** A 401 says that there is no session, and not that one ended. */
  readonly asksWho?: boolean;
};

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  /** JSON as parsed, a text, octets; undefined without content. */
  readonly body: unknown;
  /** How often the request was sent; more than once, an earlier one may have been carried out. */
  readonly sends: number;
  /** For an accepted status. */
  readonly refusal?: ComityError;
};

/** @param path below the base, or a path that the server gave, from the root */
export type Send = (method: string, path: string, sent?: Sent) => Promise<Answer>;

const timeoutMsDefault = 60_000;
const retriesMax = 4;
/** Longer waits are the caller's: the call fails with `retryAfter`. */
const retryAfterSecondsMax = 30;
const backoffMs = 250;
const backoffMsMax = 8_000;
/** 423: another request writes the upload. 502 and 504 are of a proxy that lost the answer or the server. */
const passing: ReadonlySet<number> = new Set([423, 429, 502, 503, 504]);
const writes: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

export function createSend({ baseUrl, fetch }: Fetching, session: Session, tags: TaggedAnswers): Send {
  const fetcher = fetch ?? ((url: string, init: RequestInit) => globalThis.fetch(url, init));
  const root = `${absolute(baseUrl).pathname}/`;
  const origin = baseUrl.slice(0, baseUrl.length - root.length + 1);

  /** One request. @returns nothing if there was no answer, which may be had by another */
  async function request(method: string, url: string, init: Init): Promise<Got | undefined> {
    const { sent, content, fields, limit } = init;
    let authorization: string | undefined;
    try {
      authorization =
        sent.isLogin === true ? undefined : await abortable(session.authorization(), limit.signal);
      const headers = authorization === undefined ? fields : { ...fields, Authorization: authorization };
      const response = await fetcher(url, {
        ...{ method, headers, signal: limit.signal },
        ...(content === undefined ? {} : { body: content as NonNullable<RequestInit['body']> }),
        credentials: session.sendsCookies ? 'include' : 'omit',
        // A write that is led elsewhere would be sent without its credential, or as a GET. `error` looks like a lost connection.
        redirect: writes.has(method) ? 'manual' : 'follow',
      });
      return { response, body: await read(response), authorization };
    } catch (cause) {
      limit.check(cause);
      if (cause instanceof ComityError) throw cause;
      if (sent.once === true || init.isLast)
        throw new ComityError('network', `${method} ${url}: ${(cause as Error).message}`, { cause });
      return undefined;
    }
  }

  return async (method, path, sent = {}) => {
    const limit = limitOf(sent);
    const url = path.startsWith(root) ? origin + path : baseUrl + path;
    const { content, type } = await encode(sent.body);
    const fields: Record<string, string> = { Accept: 'application/json, */*;q=0.5', ...type };
    if (writes.has(method) && sent.isKeyless !== true) fields['Idempotency-Key'] = `"${drawKey()}"`;
    const known = method === 'GET' ? tags.find(url, sent.headers) : undefined;
    if (known !== undefined) fields['If-None-Match'] = known.tag;
    Object.assign(fields, sent.headers);
    let replaced = false;
    for (let sends = 1; ; sends += 1) {
      const isLast = sends > retriesMax;
      const got = await request(method, url, { sent, content, fields, limit, isLast });
      if (got === undefined) {
        await limit.wait(backoff(sends));
        continue;
      }
      const { response, body, authorization } = got;
      const { status, headers } = response;
      if (status === 304 && known !== undefined) return { status: 200, headers, body: known.read(), sends };
      if (response.ok) {
        if (method === 'GET') tags.keep(url, sent.headers, response, body);
        return { status, headers, body, sends };
      }
      // A page sees a redirection without its status.
      if (writes.has(method) && status < 400)
        throw new ComityError('answer_unknown', `${method} ${url} is redirected`, { status });
      const refusal = refusalIn(response, body);
      if (sent.accepts?.includes(status) === true) return { status, headers, body, sends, refusal };
      if (status === 401 && sent.isLogin !== true && !replaced) {
        replaced = true;
        if (await abortable(session.replace(authorization, sent.asksWho), limit.signal)) continue;
      }
      const waitMs = isLast || sent.once === true ? undefined : waitAfter(refusal, sends);
      if (waitMs === undefined) throw refusal;
      await limit.wait(waitMs);
    }
  };
}

/** @param url may be a path on a page */
export function absolute(url: string): URL {
  return new URL(url, (globalThis as { readonly location?: { readonly href: string } }).location?.href);
}

type Init = {
  readonly sent: Sent;
  readonly content: unknown;
  readonly fields: Readonly<Record<string, string>>;
  readonly limit: Limit;
  readonly isLast: boolean;
};

type Got = {
  readonly response: Response;
  readonly body: unknown;
  readonly authorization: string | undefined;
};

/** The end of a call, by its caller or by its time. */
type Limit = {
  readonly signal: AbortSignal;
  /** @throws the reason, if it has come */
  check(cause?: unknown): void;
  /** @throws the reason, if it comes first */
  wait(ms: number): Promise<void>;
};

function limitOf({ signal, timeout = timeoutMsDefault }: CallOptions): Limit {
  const over = AbortSignal.timeout(timeout);
  const either = signal === undefined ? over : AbortSignal.any([signal, over]);
  const check = (cause?: unknown): void => {
    if (signal?.aborted === true) throw signal.reason;
    if (over.aborted) throw new ComityError('timeout', `no answer within ${timeout} ms`, { cause });
  };
  return {
    signal: either,
    check,
    wait: async (ms) => {
      await wait(ms, either);
      check();
    },
  };
}

/** @returns undefined if the call fails with the refusal */
export function waitAfter({ status, code, retryAfter }: ComityError, sends: number): number | undefined {
  // The first request with this key still runs: its answer was lost, and comes by the key.
  if (!passing.has(status) && code !== 'idempotency_key_in_use') return undefined;
  if (retryAfter === undefined) return backoff(sends);
  return retryAfter > retryAfterSecondsMax ? undefined : retryAfter * 1000 + Math.random() * backoffMs;
}

/** Between half of a time that doubles and all of it, so that clients that lost a server at once do not come back at once. */
export function backoff(sends: number): number {
  return Math.min(backoffMsMax, backoffMs * 2 ** (sends - 1)) * (0.5 + Math.random() / 2);
}

/** Resolves after the time, or when the signal is aborted. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted === true) done();
    else signal?.addEventListener('abort', done);
  });
}

/** Stops waiting when the signal is aborted; others may wait for the same. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

type Encoded = { readonly content?: unknown; readonly type?: { readonly 'Content-Type': string } };

async function encode(body: unknown): Promise<Encoded> {
  if (body === undefined) return {};
  if (body instanceof FormData) {
    // Serialised once: the key is for the same octets, those of the boundary included.
    const form = new Response(body);
    const type = { 'Content-Type': form.headers.get('Content-Type') ?? 'multipart/form-data' };
    return { content: await form.arrayBuffer(), type };
  }
  if (body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body))
    return { content: body };
  return { content: JSON.stringify(body), type: { 'Content-Type': 'application/json' } };
}

const json = /^application\/([^;]*\+)?json\b/;

async function read(response: Response): Promise<unknown> {
  if (response.status === 204 || response.status === 304) return undefined;
  const type = response.headers.get('Content-Type') ?? '';
  if (response.headers.get('Comity-Content') === 'octets') return octetsOf(response);
  if (json.test(type)) return JSON.parse((await response.text()) || 'null');
  return type.startsWith('text/') ? response.text() : octetsOf(response);
}

async function octetsOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}

/** The id as a segment of a path. `..` survives encoding, and fetch then removes it with the segment before. */
export function segment(id: string): string {
  if (typeof id !== 'string' || id === '' || id === '.' || id === '..')
    throw new TypeError(`"${id}" is no id`);
  return encodeURIComponent(id);
}

type Known = { readonly tag: string; read(): unknown };

const answersMax = 200;
const charactersMax = 2_000_000;

/** Answers of GET with their entity tags, the ones that were used last. They are kept as text: each caller gets objects of its own. */
export class TaggedAnswers {
  readonly #answers = new Map<string, { readonly tag: string; readonly text: string }>();
  #characters = 0;

  find(url: string, headers: object | undefined): Known | undefined {
    const found = headers === undefined ? this.#answers.get(url) : undefined;
    if (found === undefined) return undefined;
    this.#answers.delete(url);
    this.#answers.set(url, found);
    return { tag: found.tag, read: () => JSON.parse(found.text) };
  }

  keep(url: string, headers: object | undefined, response: Response, body: unknown): void {
    const tag = response.headers.get('ETag');
    if (tag === null || headers !== undefined || typeof body !== 'object' || body instanceof Uint8Array)
      return;
    this.#forget(url);
    const text = JSON.stringify(body);
    this.#answers.set(url, { tag, text });
    this.#characters += text.length;
    for (const [oldest] of this.#answers) {
      if (this.#characters <= charactersMax && this.#answers.size <= answersMax) return;
      this.#forget(oldest);
    }
  }

  clear(): void {
    this.#answers.clear();
    this.#characters = 0;
  }

  #forget(url: string): void {
    this.#characters -= this.#answers.get(url)?.text.length ?? 0;
    this.#answers.delete(url);
  }
}
