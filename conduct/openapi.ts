/**
 * Collections in an OpenAPI document: paths with a GET and a POST beside paths of their members, and a sample document of each by its
 * schema, with required members alone.
 */
import { isMembers, type Members } from './answer.ts';

export type Collection = {
  /** A path on the server. */
  readonly collection: string;
  /** A document that a POST creates; `{random}` in a text becomes another token each time. */
  readonly sample?: Readonly<Record<string, unknown>> | undefined;
  /** Members that a merge patch changes in it. */
  readonly change?: Readonly<Record<string, unknown>> | undefined;
  /** A QUERY that the collection answers. */
  readonly query?: { readonly type: string; readonly content: string } | undefined;
  /** An origin whose pages may read answers, such as `https://app.example`. */
  readonly origin?: string | undefined;
  /** The path of a WebSocket, with its query. */
  readonly websocket?: string | undefined;
  /** A destination `host:port` to which the server opens tunnels, and the credentials for it. */
  readonly tunnel?:
    | { readonly destination: string; readonly headers?: Readonly<Record<string, string>> }
    | undefined;
};

const collectionsMax = 8;
const depthMax = 6;
/** Of one sample: schemas that require each other would have as many as their number to the power of the depth. */
const valuesMax = 200;

/** The collections that the document describes, those with the fewest required members first. */
export function describedCollections(document: unknown): readonly Collection[] {
  if (!isMembers(document) || !isMembers(document.paths)) return [];
  const { paths } = document;
  const prefix = serverPath(document);
  const found = Object.entries(paths).flatMap(([path, item]) => {
    if (!isMembers(item) || path.includes('{') || !isMembers(item.get) || !isMembers(item.post)) return [];
    const hasMembers = Object.keys(paths).some((other) => isMemberOf(other, path));
    const schema = contentSchema(document, item.post);
    if (!hasMembers || schema === undefined) return [];
    const make = { document, depth: 0, room: { values: valuesMax } };
    const sample = sampleValue(make, schema);
    if (!isMembers(sample)) return [];
    return [{ collection: `${prefix}${path}`, sample, change: changeOf(document, schema) }];
  });
  return found
    .toSorted((one, other) => Object.keys(one.sample).length - Object.keys(other.sample).length)
    .slice(0, collectionsMax);
}

function isMemberOf(path: string, collection: string): boolean {
  return (
    path.startsWith(`${collection.replace(/\/$/, '')}/{`) && /\}\/?$/.test(path) && !/\}\/[^/]+/.test(path)
  );
}

/** The path of the first server, which may be relative. */
function serverPath({ servers, basePath }: Members): string {
  const [first] = Array.isArray(servers) ? servers : [];
  const written = isMembers(first) && typeof first.url === 'string' ? first.url : basePath;
  if (typeof written !== 'string' || written.includes('{')) return '';
  return (URL.parse(written, 'http://server')?.pathname ?? '').replace(/\/$/, '');
}

function contentSchema(document: Members, operation: Members): Members | undefined {
  const body = resolve(document, operation.requestBody);
  const content = isMembers(body?.content) ? body.content : {};
  const [, media] =
    Object.entries(content).find(([type]) => /^application\/(?:[\w.+-]+\+)?json\b/.test(type)) ?? [];
  return isMembers(media) ? resolve(document, media.schema) : undefined;
}

/** `room`: how many more values a sample may have. */
type Making = { readonly document: Members; readonly depth: number; readonly room: { values: number } };

/** A value that the schema accepts, as far as one can be made without knowing the application. */
function sampleValue(making: Making, written: unknown): unknown {
  if (making.depth > depthMax || making.room.values <= 0) return 'conduct';
  making.room.values -= 1;
  const schema = resolve(making.document, written);
  if (schema === undefined) return 'conduct';
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (isMembers(schema.properties) || schema.type === 'object') return objectOf(making, schema);
  for (const choice of ['example', 'default']) if (choice in schema) return schema[choice];
  if (Array.isArray(schema.examples)) return schema.examples[0];
  const branch = [schema.oneOf, schema.anyOf].find(Array.isArray)?.[0];
  if (branch !== undefined) return sampleValue({ ...making, depth: making.depth + 1 }, branch);
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== 'null') : schema.type;
  if (type === 'array') return arrayOf(making, schema);
  if (type === 'boolean') return false;
  if (type === 'integer' || type === 'number') return numberOf(schema);
  return textOf(schema);
}

function objectOf(making: Making, schema: Members): Members {
  const { properties = {}, required } = schema;
  const names = new Set(Array.isArray(required) ? required : []);
  const written = Object.entries(properties as Members).filter(
    ([name, each]) => names.has(name) && resolve(making.document, each)?.readOnly !== true,
  );
  const deeper = { ...making, depth: making.depth + 1 };
  return Object.fromEntries(written.map(([name, each]) => [name, sampleValue(deeper, each)]));
}

function arrayOf(making: Making, { minItems, items }: Members): readonly unknown[] {
  const length = typeof minItems === 'number' ? minItems : 0;
  const deeper = { ...making, depth: making.depth + 1 };
  return Array.from({ length: Math.min(length, depthMax) }, () => sampleValue(deeper, items));
}

function numberOf({ minimum, exclusiveMinimum, multipleOf }: Members): number {
  const step = typeof multipleOf === 'number' ? multipleOf : 1;
  if (typeof exclusiveMinimum === 'number') return exclusiveMinimum + step;
  return typeof minimum === 'number' ? minimum : step;
}

const textsByFormat: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  email: 'conduct-{random}@example.com',
  uri: 'https://example.com/{random}',
  url: 'https://example.com/{random}',
  uuid: '00000000-0000-4000-8000-000000000000',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
};

function textOf({ format, minLength, maxLength }: Members): string {
  const formatted = typeof format === 'string' ? textsByFormat[format] : undefined;
  if (formatted !== undefined) return formatted;
  const longest = typeof maxLength === 'number' ? maxLength : Number.POSITIVE_INFINITY;
  if (longest < 'conduct-12345678'.length) return 'conduct'.slice(0, longest);
  return 'conduct-{random}'.padEnd(typeof minLength === 'number' ? minLength : 0, 'x');
}

/** A change of one plain text or number, required or not. */
function changeOf(document: Members, { properties }: Members): Members | undefined {
  for (const [name, written] of Object.entries(isMembers(properties) ? properties : {})) {
    const schema = resolve(document, written) ?? {};
    const isFree = !['enum', 'const', 'pattern', 'format', 'readOnly', 'oneOf', 'anyOf'].some(
      (each) => each in schema,
    );
    if (isFree && schema.type === 'string' && !/id$/i.test(name)) return { [name]: textOf(schema) };
    if (isFree && (schema.type === 'number' || schema.type === 'integer'))
      return { [name]: numberOf(schema) + 1 };
  }
  return undefined;
}

type Resolving = { readonly seen: Set<string>; readonly depth: number };

/**
 * The schema behind local references, with the members of `allOf` merged. A reference that comes again within one `allOf` adds nothing, so
 * that a schema may refer to itself.
 */
function resolve(
  document: Members,
  written: unknown,
  { seen, depth }: Resolving = { seen: new Set(), depth: 0 },
): Members | undefined {
  let current = written;
  while (isMembers(current) && typeof current.$ref === 'string') {
    if (seen.has(current.$ref) || !current.$ref.startsWith('#/')) return undefined;
    seen.add(current.$ref);
    const names = current.$ref.slice(2).split('/');
    current = names.reduce<unknown>(
      (value, name) =>
        isMembers(value) ? value[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined,
      document,
    );
  }
  if (!isMembers(current)) return undefined;
  if (!Array.isArray(current.allOf) || depth > depthMax) return current;
  const inner = { seen, depth: depth + 1 };
  const parts = [current, ...current.allOf.map((each) => resolve(document, each, inner) ?? {})];
  return {
    ...Object.assign({}, ...parts),
    allOf: undefined,
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
    required: parts.flatMap(({ required }) => (Array.isArray(required) ? required : [])),
  };
}
