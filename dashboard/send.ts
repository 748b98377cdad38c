/**
 * Requests to the API that serves the dashboard, with the credential of the caller: a session cookie, or a key that this page holds. There
 * is no other door: the dashboard can do what its caller can do by any client (§5.1).
 */
import { signal } from '@preact/signals';

export type Reply = {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if the content is not JSON. */
  readonly json: unknown;
  readonly durationMs: number;
};

export type SendOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless `headers` name another type. */
  readonly json?: unknown;
  readonly text?: string;
  /** Sends neither cookie nor key. */
  readonly anonymous?: boolean;
  /** Sends this key in place of the caller's credential. */
  readonly key?: string;
};

/** The path before `/dashboard` or `/portal` in the address: empty, or the prefix of a reverse proxy. */
export const prefix: string = location.pathname.replace(/\/(?:dashboard|portal)\/?$/, '');

/** The key that the caller pasted. It ends with the page: what a storage of the browser holds, any page of this origin can read. */
export const key = signal<string | null>(null);

/** @throws TypeError if the server cannot be reached */
export async function send(method: string, path: string, options: SendOptions = {}): Promise<Reply> {
  const headers = new Headers({ Accept: 'application/json', ...options.headers });
  const sent = options.anonymous ? null : (options.key ?? key.value);
  if (sent !== null) headers.set('X-API-Key', sent);
  let body = options.text;
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
    redirect: 'follow',
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  return {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
    text,
    json: parse(text),
    durationMs: performance.now() - began,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Not JSON: the page shows the text.
  }
}

export type Fault = { readonly pointer: string; readonly message: string };

/** The problem of an error response (§2.2), whatever its content is. */
export type Problem = {
  readonly status: number;
  readonly message: string;
  readonly code: string | undefined;
  readonly faults: readonly Fault[];
  readonly trace: string | undefined;
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
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFault(value: unknown): value is Fault {
  return isObject(value) && typeof value.pointer === 'string' && typeof value.message === 'string';
}
