/**
 * A request as this folder reads it: its octets as they travelled and its fields, from what a framework provides. The signature is verified
 * elsewhere.
 */
import { type BodyReader, octetsOf, readBounded } from '../signature/octets.ts';

export type Message = {
  /** The octets as received. */
  readonly body: Uint8Array;
  /** Finds a field by lower-case name. Undefined: absent; an array: repeated. */
  readonly header: (name: string) => string | readonly string[] | undefined;
};

/** Returns the value of a field that is not empty or repeated. Which of repeated values was meant is unknown. */
export function fieldText(message: Message, name: string): string | undefined {
  const value = message.header(name);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** Returns the media type without its parameters, in lower case. */
export function mediaTypeOf(message: Message): string | undefined {
  return fieldText(message, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase();
}

/**
 * The header fields as frameworks provide them: `Headers` of fetch, those of Node, or any object with the fields by
 * name, in any case.
 */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/**
 * Returns a function that finds fields by lower-case name. Names that differ only in case are a repeated field.
 * @throws TypeError for a value without fields
 */
export function readingHeaders(source: HeaderSource): Message['header'] {
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw new TypeError(
      'headers must be Headers, or an object with the fields by name: pass request.headers',
    );
  }
  if (isHeaders(source)) return (name) => source.get(name) ?? undefined;
  const fields = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(source)) {
    const values = valuesOf(value);
    if (values.length === 0) continue;
    const known = fields.get(name.toLowerCase()) ?? [];
    fields.set(name.toLowerCase(), [...known, ...values]);
  }
  return (name) => {
    const values = fields.get(name);
    return values?.length === 1 ? values[0] : values;
  };
}

function isHeaders(source: HeaderSource): source is { get(name: string): string | null } {
  return typeof source.get === 'function';
}

function valuesOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string');
  if (typeof value === 'string') return [value];
  return typeof value === 'number' ? [String(value)] : [];
}

/** The used part of a fetch `Request`. */
export type FetchRequest = {
  readonly bodyUsed: boolean;
  readonly body: { getReader(): BodyReader } | null;
};

/** The used part of a request of `node:http` or of a framework built on it, such as Express. */
export type NodeRequest = {
  /** True after any read. */
  readonly readableDidRead: boolean;
  iterator(options: { readonly destroyOnReturn: false }): AsyncIterable<unknown>;
};

/**
 * The octets, or the request to read them from. A text stands for its UTF-8, which is right only if the octets were
 * UTF-8.
 */
export type RawBody = string | Uint8Array | ArrayBuffer | FetchRequest | NodeRequest | null | undefined;

/** The form in which the body was given. */
export type Given = 'octets' | 'text' | 'nothing';

const remedy =
  'Express: register this route before express.json() and express.urlencoded() and pass the request itself, or pass request.body ' +
  'from express.raw({ type: () => true, inflate: false }) on this route. Fastify: pass request.body, with removeAllContentTypeParsers() and ' +
  "addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => done(null, body)) in a separate scope. Hono, Next.js and " +
  'other frameworks with fetch: pass the Request itself, before anything else reads it.';

/**
 * Undefined: more than `bytesMax`.
 * @throws TypeError for a value that is not a raw body, with the remedy; and whatever reading a request throws
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

/** Frameworks give no body for a request without one, and none if no parser took it: the fields tell these apart. */
function absentBody(header: Message['header']): Uint8Array {
  const length = header('content-length');
  const chunked = header('transfer-encoding');
  if (chunked === undefined && (length === undefined || length === '0')) return new Uint8Array();
  throw notRaw(
    'got no body, although the request had one: no body parser read it, or another one consumed it',
  );
}

async function readFetchRequest(request: FetchRequest, bytesMax: number): Promise<Uint8Array | undefined> {
  if (request.bodyUsed) throw notRaw('got a Request whose body was already read');
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
  if (request.readableDidRead) throw notRaw('got a request whose body was already read');
  // Not destroyed before its end, because the response uses the same connection.
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
  return notRaw(`got ${kindOf(source)}, the result of a body parser`);
}

function notRaw(found: string): TypeError {
  return new TypeError(`receive() requires the body exactly as it was sent, but ${found}. ${remedy}`);
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
