/**
 * The octets of a request as they travelled, from what a framework hands out. A body parser that ran before took them away (§4.14.1), the
 * commonest fault of receivers: what can be known to be no raw body is refused here with the remedy, and `likelyCause` of receive.ts says the rest.
 */
import { octetsOf } from '../signature/octets.ts';
import { type BodyReader, readBounded } from '../signature/read-bounded.ts';
import type { Message } from './message.ts';

/** A `Request` of fetch, as far as it is looked at. */
export type FetchRequest = {
  readonly bodyUsed: boolean;
  readonly body: { getReader(): BodyReader } | null;
};

/** A request of `node:http`, and of what is built on it such as Express, as far as it is looked at. */
export type NodeRequest = {
  /** Whether anything has been read from it. */
  readonly readableDidRead: boolean;
  iterator(options: { readonly destroyOnReturn: false }): AsyncIterable<unknown>;
};

/** The octets; or the request, which is then read. A text stands for its UTF-8, which is right only where the octets were UTF-8. */
export type RawBody = string | Uint8Array | ArrayBuffer | FetchRequest | NodeRequest | null | undefined;

/** As what a body was given. */
export type Given = 'octets' | 'text' | 'nothing';

const remedy =
  'Express: pass the request itself, with express.json() and express.urlencoded() behind this route and not before it, or request.body ' +
  'from express.raw({ type: () => true, inflate: false }) on this route. Fastify: request.body, with removeAllContentTypeParsers() and ' +
  "addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => done(null, body)) in a scope of its own. Hono, Next.js and " +
  'others of fetch: the Request itself, before anything else reads it.';

/**
 * Undefined: more than `bytesMax`.
 * @throws TypeError for what is no raw body, with the remedy; and whatever reading a request throws
 */
export async function readRawBody(
  source: RawBody,
  header: Message['header'],
  bytesMax: number,
): Promise<Uint8Array | undefined> {
  if (source === null || source === undefined) return absentBody(header);
  if (typeof source === 'string' || source instanceof Uint8Array || source instanceof ArrayBuffer) {
    const octets = octetsOf(source);
    return octets.length > bytesMax ? undefined : octets;
  }
  if (typeof source !== 'object') throw parsedBody(source);
  if (isFetchRequest(source)) return readFetchRequest(source, bytesMax);
  if (isNodeRequest(source)) return readNodeRequest(source, bytesMax);
  throw parsedBody(source);
}

export function givenAs(source: RawBody): Given {
  if (source === null || source === undefined) return 'nothing';
  return typeof source === 'string' ? 'text' : 'octets';
}

/** Frameworks have no body for a request that had none, and none for one that no parser wanted: the fields tell which it was. */
function absentBody(header: Message['header']): Uint8Array {
  const length = header('content-length');
  const chunked = header('transfer-encoding');
  if (chunked === undefined && (length === undefined || length === '0')) return new Uint8Array();
  throw notRaw('got no body of a request that had one: no body parser took it, or another took it away');
}

async function readFetchRequest(request: FetchRequest, bytesMax: number): Promise<Uint8Array | undefined> {
  if (request.bodyUsed) throw notRaw('got a Request whose body was read before');
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  let length = 0;
  const counted: BodyReader = {
    async read() {
      const chunk = await reader.read();
      length += chunk.value?.length ?? 0;
      return chunk;
    },
    cancel: () => reader.cancel(),
  };
  try {
    return await readBounded(counted, bytesMax);
  } catch (error) {
    if (length > bytesMax) return undefined;
    throw error;
  }
}

async function readNodeRequest(request: NodeRequest, bytesMax: number): Promise<Uint8Array | undefined> {
  if (request.readableDidRead) throw notRaw('got a request whose body was read before');
  // Not destroyed when it is left before its end: an answer has to go out on the same connection.
  const chunks = request.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]();
  const reader: BodyReader = {
    async read() {
      const { done = false, value } = await chunks.next();
      if (done) return { done };
      if (!(value instanceof Uint8Array)) throw notRaw('got a request that is read as text (setEncoding)');
      return { done, value };
    },
    cancel: () => chunks.return?.() ?? Promise.resolve(),
  };
  return readFetchRequest({ bodyUsed: false, body: { getReader: () => reader } }, bytesMax);
}

function parsedBody(source: unknown): TypeError {
  return notRaw(`got ${kindOf(source)}, which is what a body parser made of them`);
}

function notRaw(found: string): TypeError {
  return new TypeError(`receive() needs the octets as they travelled, and ${found}. ${remedy}`);
}

function isFetchRequest(source: object): source is FetchRequest {
  return 'bodyUsed' in source && 'body' in source;
}

function isNodeRequest(source: object): source is NodeRequest {
  return 'readableDidRead' in source && 'iterator' in source;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
