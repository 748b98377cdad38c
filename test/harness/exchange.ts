/**
 * One request to a running server, over a connection of its own, and its answer.
 *
 * With COMITY_TEST_PROTOCOL=h2c requests are sent over HTTP/2 with prior knowledge, all to a server on one connection, so that test/wire can
 * be run over either protocol. Answers look as they would over HTTP/1.1, without the fields of its connection.
 */
import { channel } from 'node:diagnostics_channel';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { assertAnswer, type Expectation } from './expected-answer.ts';

export const adminKey = 'sk_test_0123456789abcdef';

export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as JSON; throws where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
  readonly json: () => any;
};

export type RequestOptions = {
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** Sent as JSON, with its Content-Type unless one is given. */
  readonly json?: unknown;
  /** Send no credential. Default: the administrator key as Bearer. */
  readonly anonymous?: boolean;
  /** The credential, as Bearer. */
  readonly as?: string | undefined;
  /** The answer that it must have. */
  readonly expect?: Expectation | undefined;
};

type Sent = {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array | undefined;
};

/** Sends exactly the fields given besides Host and the credential, and compares the answer with what is expected. */
export async function send(
  port: number,
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const credential = options.as ?? (options.anonymous === true ? undefined : adminKey);
  const sent = { port, method, path: targetOf(path), ...messageOf({ ...options, as: credential }) };
  const answer = await (process.env.COMITY_TEST_PROTOCOL === 'h2c' ? sendHttp2(sent) : sendHttp1(sent));
  if (exchanges.hasSubscribers) exchanges.publish(textOf(sent, answer));
  if (tracedPorts.has(port)) delete answer.headers['comity-trace'];
  if (options.expect !== undefined) assertAnswer(answer, options.expect, `${method} ${path}`);
  return answer;
}

/** A path without a slash before it is below the API's base. */
export function targetOf(path: string): string {
  return /^[a-z]/.test(path) && !/^[a-z]+:\/\//.test(path) ? `/api/v1/${path}` : path;
}

/** The fields and the content that the options ask for. */
export function messageOf({
  as,
  json,
  body: given,
  headers: others = {},
}: RequestOptions): Pick<Sent, 'headers' | 'body'> {
  const body = json === undefined ? given : JSON.stringify(json);
  const headers: Record<string, string | string[]> = {};
  if (as !== undefined) headers.Authorization = `Bearer ${as}`;
  if (json !== undefined) headers['Content-Type'] = 'application/json';
  for (const [name, value] of Object.entries(others)) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  if (body !== undefined) headers['Content-Length'] = String(Buffer.byteLength(body));
  return { headers, body };
}

/** Ports of servers whose answers carry the trace of their decisions for the report of a failing test alone. */
const tracedPorts = new Set<number>();

export function traceExchanges(port: number): void {
  tracedPorts.add(port);
}

/** Each exchange, for the report of a test that fails (scripts/testing/preload.ts). */
const exchanges = channel('comity:exchange');

function textOf({ method, path, headers, body }: Sent, answer: Answer): string {
  const content = typeof body === 'string' ? body : body === undefined ? '' : `(${body.byteLength} octets)`;
  return [
    messageText(`${method} ${path}`, headers, content),
    messageText(String(answer.status), answer.headers, answer.body),
  ].join('\n\n');
}

const shownCharacters = 2000;

function messageText(start: string, headers: IncomingHttpHeaders, content: string): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  const shown = content.length > shownCharacters ? `${content.slice(0, shownCharacters)} ...` : content;
  return [start, ...fields, ...(shown === '' ? [] : ['', shown])].join('\n');
}

function sendHttp1({ port, method, path, headers, body }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve(answerOf(response.statusCode ?? 0, response.headers, chunks)));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** By port: a server that was started again has a connection of its own. */
const sessions = new Map<number, ClientHttp2Session>();

/** What a test sends is its own affair. Missing in the types of node. */
const lenient = { strictSingleValueFields: false };

function sessionOf(port: number): ClientHttp2Session {
  const known = sessions.get(port);
  if (known !== undefined && !known.closed && !known.destroyed) return known;
  const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: {}, ...lenient });
  session.on('error', () => session.destroy());
  session.unref();
  sessions.set(port, session);
  return session;
}

/** Ends the HTTP/2 connection to a server that has stopped. */
export function forgetServer(port: number): void {
  tracedPorts.delete(port);
  sessions.get(port)?.destroy();
  sessions.delete(port);
}

/** Host becomes `:authority`; everything else goes as it is. */
function sendHttp2({ port, method, path, headers, body }: Sent): Promise<Answer> {
  const { Host: host, ...others } = headers;
  const authority = host === undefined ? `127.0.0.1:${port}` : String(host);
  return new Promise((resolve, reject) => {
    const session = sessionOf(port);
    const stream = session.request(
      { ...others, ':method': method, ':path': path, ':authority': authority },
      { endStream: body === undefined },
    );
    // Only while something is asked does the connection keep the test alive.
    session.ref();
    const chunks: Buffer[] = [];
    let found: IncomingHttpHeaders | undefined;
    stream.on('response', (fields) => {
      found = fields;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      session.unref();
      if (found === undefined) reject(new Error(`no answer to ${method} ${path}`));
      else {
        const { ':status': status, ...fields } = found;
        resolve(answerOf(Number(status), fields, chunks));
      }
    });
    if (body !== undefined) stream.end(body);
  });
}

function answerOf(status: number, headers: IncomingHttpHeaders, chunks: readonly Buffer[]): Answer {
  const text = Buffer.concat(chunks).toString('utf8');
  return { status, headers, body: text, json: () => JSON.parse(text) };
}
