/**
 * Requests to the API that serves the dashboard, with the credential of the caller: a session cookie, or a key that this page holds. There
 * is no other door: the dashboard can do what its caller can do by any client (§5.1).
 */
import { signal } from '@preact/signals';

/** A request as it was sent, without its credential: what its explanation begins with. */
export type SentRequest = {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly content: string;
};

export type Reply = {
  /** Undefined where the caller is not to explain it. */
  readonly request: SentRequest | undefined;
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if the content is not JSON. */
  readonly json: unknown;
  /** The octets of the content, where the sender asked for them. */
  readonly octets: Blob | undefined;
  readonly durationMs: number;
};

export type SendOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless `headers` name another type. */
  readonly json?: unknown;
  readonly text?: string;
  readonly form?: FormData;
  /** Keeps the octets of the answer; its text is read only where its type is one of texts. */
  readonly wantsOctets?: boolean;
  /** Follows no redirect: the reply to one has the status 0 and no fields. */
  readonly staysHere?: boolean;
  /** Sends neither cookie nor key. */
  readonly anonymous?: boolean;
  /** Sends this key in place of the caller's credential. */
  readonly key?: string;
};

/** The path before `/dashboard` or `/portal` in the address: empty, or the prefix of a reverse proxy. */
export const prefix: string = location.pathname.replace(/\/(?:dashboard|portal)\/?$/, '');

/** The key that the caller pasted. It ends with the page: what a storage of the browser holds, any page of this origin can read. */
export const key = signal<string | null>(null);

/** The refused request that the page of explanations shows next. It is not in the address, which the browser keeps. */
export const explained = signal<SentRequest | undefined>(undefined);

/** Keeps the browser from asking for a password of its own after a 401 where it sends no `Sec-Fetch-Dest`: over http to another machine. */
export const fromScript = { 'X-Requested-With': 'XMLHttpRequest' };

/** @throws TypeError if the server cannot be reached */
export async function send(method: string, path: string, options: SendOptions = {}): Promise<Reply> {
  const headers = new Headers({ Accept: 'application/json', ...fromScript, ...options.headers });
  const sent = options.anonymous ? null : (options.key ?? key.value);
  if (sent !== null) headers.set('X-API-Key', sent);
  let body: string | FormData | undefined = options.form ?? options.text;
  if (options.json !== undefined) {
    body = JSON.stringify(options.json);
    if (!headers.has('Content-Type')) headers.set('Content-Type', 'application/json');
  }
  const began = performance.now();
  const response = await fetch(prefix + path, {
    method,
    headers,
    // With a key, the cookie would be a second credential, which is refused.
    credentials: options.anonymous || sent !== null ? 'omit' : 'same-origin',
    cache: 'no-store',
    redirect: options.staysHere ? 'manual' : 'follow',
    ...(body === undefined ? {} : { body }),
  });
  const octets = options.wantsOctets ? await response.blob() : undefined;
  const text = octets === undefined ? await response.text() : isText(octets) ? await octets.text() : '';
  return {
    request: requestOf(method, path, options, typeof body === 'string' ? body : undefined),
    octets,
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
    text,
    json: parse(text),
    durationMs: performance.now() - began,
  };
}

/** Longer content is not kept for an explanation. */
const contentKeptCharacters = 65_536;

function requestOf(
  method: string,
  path: string,
  { headers = {}, json }: SendOptions,
  text = '',
): SentRequest {
  // Requests on accounts have passwords, codes and tokens in their content.
  const isKept = text.length <= contentKeptCharacters && !path.includes('/auth/');
  const type = json === undefined ? {} : { 'Content-Type': 'application/json' };
  return { method, path, fields: { ...type, ...headers }, content: isKept ? text : '' };
}

/** Types whose content is read as text. */
const textTypes = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)|application\/x-ndjson)/;

function isText({ type }: Blob): boolean {
  return textTypes.test(type);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Not JSON: the page shows the text.
  }
}

type FileSending = {
  /** The media type. */
  readonly type: string;
  readonly signal: AbortSignal;
  readonly onProgress: (sentBytes: number) => void;
};

/**
 * Posts a file. `fetch` reports no progress of what it sends.
 * @returns undefined if it was cancelled
 * @throws TypeError if the server cannot be reached
 */
export function sendFile(path: string, file: Blob, options: FileSending): Promise<Reply | undefined> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open('POST', prefix + path);
    sent.setRequestHeader('Accept', 'application/json');
    for (const [name, value] of Object.entries(fromScript)) sent.setRequestHeader(name, value);
    sent.setRequestHeader('Content-Type', options.type);
    if (key.value !== null) sent.setRequestHeader('X-API-Key', key.value);
    sent.upload.addEventListener('progress', ({ loaded }) => options.onProgress(loaded));
    sent.addEventListener('error', () => reject(new TypeError('the connection ended before the answer')));
    sent.addEventListener('abort', () => resolve(undefined));
    sent.addEventListener('load', () => {
      const { status, statusText, responseText: text } = sent;
      const headers = new Headers();
      for (const line of sent.getAllResponseHeaders().split('\r\n')) {
        const [, name, value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
        if (name !== undefined) headers.append(name, value);
      }
      const durationMs = performance.now() - began;
      const [request, octets] = [undefined, undefined];
      resolve({ request, octets, status, statusText, headers, text, json: parse(text), durationMs });
    });
    options.signal.addEventListener('abort', () => sent.abort());
    sent.send(file);
  });
}

export type Fault = { readonly pointer: string; readonly message: string };

/** The problem of an error response (§2.2), whatever its content is. */
export type Problem = {
  readonly status: number;
  readonly message: string;
  readonly code: string | undefined;
  readonly faults: readonly Fault[];
  readonly trace: string | undefined;
  readonly request: SentRequest | undefined;
};

export function problemOf(reply: Reply): Problem | undefined {
  if (reply.status < 400) return undefined;
  const body = isObject(reply.json) ? reply.json : {};
  const faults = Array.isArray(body.errors) ? body.errors.filter(isFault) : [];
  return {
    status: reply.status,
    message: typeof body.error === 'string' ? body.error : `${reply.status} ${reply.statusText}`,
    code: typeof body.code === 'string' ? body.code : undefined,
    faults,
    trace: reply.headers.get('Comity-Trace') ?? undefined,
    request: reply.request,
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFault(value: unknown): value is Fault {
  return isObject(value) && typeof value.pointer === 'string' && typeof value.message === 'string';
}
