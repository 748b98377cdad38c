/**
 * Generates the OpenAPI document from the declarations that the program serves. Statuses come from the decision graph
 * (traits.ts), codes from the registry.
 */
import { setImmediate } from 'node:timers/promises';
import { crossOriginFields } from '../kernel/answer/cors.ts';
import {
  type CollectionNames,
  type Item,
  referenceIn,
  type SchemeName,
  type Tag,
} from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import type { Collection } from '../model/collection.ts';
import { contentTag } from '../resources/program/document.ts';
import type { ProgramOptions } from '../resources/program/program-routes.ts';
import { Components, ref } from './components.ts';
import { pathItem, type Setting } from './path-item.ts';
import { addErrorSchemas } from './refusals.ts';
import { resourcePath } from './resource-path.ts';

export type OpenApiVersion = '3.2' | '3.1';

export type OpenApiOptions = {
  readonly title: string;
  /** Value of API-Version. */
  readonly apiVersion: string;
  /** Every resource of the program, in the order of the document. */
  readonly resources: readonly Resource[];
  readonly traceEnabled: boolean;
  /** Pages of at least one other origin may read responses. */
  readonly corsEnabled: boolean;
  /** A correct password may still be refused. */
  readonly verifiedEmailRequired: boolean;
  /** Absent: the program sends no webhooks. */
  readonly eventTypes?: readonly DescribedEventType[];
  readonly version: OpenApiVersion;
};

/** How long one slice may hold the event loop. */
const sliceMs = 10;

/**
 * The document as it is served: each version is made at its first request, in slices, because it takes 100 to 300 ms.
 *
 * @param optionsOf called at the first request for a version, when all resources exist
 */
export function createDocuments(optionsOf: () => Omit<OpenApiOptions, 'version'>): ProgramOptions['openApi'] {
  const made = new Map<OpenApiVersion, Promise<{ content: Uint8Array; tag: string }>>();
  return (version = '3.2') => {
    if (version !== '3.2' && version !== '3.1') return undefined;
    const known = made.get(version) ?? make({ ...optionsOf(), version });
    made.set(version, known);
    return known;
  };
}

async function make(options: OpenApiOptions): Promise<{ content: Uint8Array; tag: string }> {
  const steps = openApiSteps(options);
  for (let begun = performance.now(); ; ) {
    const step = steps.next();
    if (step.done === true) {
      await setImmediate();
      // As octets, which all responses share without a copy.
      const content = Buffer.from(JSON.stringify(step.value));
      return { content, tag: contentTag(content) };
    }
    if (performance.now() - begun < sliceMs) continue;
    await setImmediate();
    begun = performance.now();
  }
}

/** The document as plain JSON values; the same options give the same document. */
export function openApiDocument(options: OpenApiOptions): Item {
  const steps = openApiSteps(options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same in steps of some milliseconds, so that the caller may do other work in between. */
function* openApiSteps(options: OpenApiOptions): Generator<void, Item> {
  const { resources, eventTypes, version } = options;
  const components = new Components();
  const security = addSecuritySchemes(components);
  addErrorSchemas(components);
  const names = collectionNames(resources);
  const collections = servedCollections(resources);
  const setting: Setting = {
    components,
    security,
    verifiedEmailRequired: options.verifiedEmailRequired,
    traceEnabled: options.traceEnabled,
    corsFields: options.corsEnabled ? crossOriginFields : [],
  };
  const paths: Record<string, Item> = {};
  for (const resource of resources) {
    const described = resourcePath(resource, { components, names, collections });
    yield;
    if (described === undefined) continue;
    paths[described.path] = pathItem(described, setting);
    yield;
  }
  const sent = eventTypes === undefined ? {} : { webhooks: sentEvents(eventTypes, names, components) };
  yield;
  const document: Item = {
    openapi: '3.2.0',
    info: {
      title: options.title,
      version: options.apiVersion,
      description: version === '3.1' ? `${preface}\n\n${earlierNote}` : preface,
    },
    servers: [{ url: '/' }],
    tags: tags(resources),
    paths,
    ...sent,
    components: components.toItem({ paths, ...sent }),
  };
  yield;
  return version === '3.1' ? toEarlierVersion(document) : document;
}

const preface = `Every response has \`API-Version\` and \`X-Content-Type-Options: nosniff\`. An error response is \`{"error": "message", "code": "stable_code"}\`, or RFC 9457 for \
\`Accept: application/problem+json\`; see the [list of codes](/docs/errors). Send exactly one credential. \
Reads have strong entity tags: send one in \`If-Match\`, and a change does not overwrite the change of another client. Lists page by \
cursor; \`QUERY\` (RFC 10008) takes the query of a list in the content.`;

/** In the order of the paths. */
function tags(resources: readonly Resource[]): readonly Item[] {
  const found = new Map<string, Tag>();
  for (const { documentation } of resources) {
    if (documentation === undefined) continue;
    const { name, description } = 'part' in documentation ? documentation.collection : documentation.tag;
    found.set(name, { name, description });
  }
  return [...found.values()].map(({ name, description }) =>
    description === '' ? { name } : { name, description },
  );
}

const earlierNote =
  'This is the OpenAPI 3.1 version. OpenAPI 3.1 has no QUERY operations, so they are under the extension `x-query` of each path; `/openapi.json` has them as OpenAPI 3.2 defines.';

/**
 * Rewrites the document for tools that support only OpenAPI 3.1, which lacks two members of 3.2: `query` of a path item
 * becomes the extension `x-query`, and `itemSchema` of a stream becomes a string schema.
 */
function toEarlierVersion(document: Item): Item {
  const paths = document.paths as Readonly<Record<string, Item>>;
  return {
    ...document,
    openapi: '3.1.1',
    paths: Object.fromEntries(Object.entries(paths).map(([path, item]) => [path, earlierPath(item)])),
  };
}

function earlierPath(item: Item): Item {
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [name === 'query' ? 'x-query' : name, withoutItems(value)]),
  );
}

function withoutItems(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutItems);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) =>
      name === 'itemSchema' ? ['schema', { type: 'string' }] : [name, withoutItems(part)],
    ),
  );
}

/** The places of credentials (§5.2), as alternatives: a request sends exactly one credential. */
const schemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token from a login or a trusted issuer, or an API key.',
  },
  basic: {
    type: 'http',
    scheme: 'basic',
    description:
      'E-mail address and password of an account, or an API key as the user name with an empty password.',
  },
  apiKey: {
    type: 'http',
    scheme: 'ApiKey',
    description: '`Authorization: ApiKey` or `Api-Key` with an API key.',
  },
  apiKeyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key.' },
  apiKeyQuery: {
    type: 'apiKey',
    in: 'query',
    name: 'api_key',
    description: 'An API key. Least secure: URLs are written to logs and histories.',
  },
  cookieAuth: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-comity_session',
    description:
      'The session of a login with `cookie`. Ignored if the request has another credential. Unsafe requests with it from pages of other origins are refused.',
  },
} as const satisfies Record<SchemeName, Item>;

/** Adds the schemes and returns the requirement of each. */
function addSecuritySchemes(components: Components): readonly Item[] {
  return Object.entries(schemes).map(([name, scheme]) => {
    components.add('securitySchemes', name, scheme);
    return { [name]: [] };
  });
}

// Names of collections in schemas and operation ids: `order-lines` is `OrderLines`, a member is an `OrderLine`. The
// program's own collections declare their names; the others get names that no schema and no path has.

/** The declared names of collections, and for the others unused names. */
function collectionNames(resources: readonly Resource[]): ReadonlyMap<string, CollectionNames> {
  const all = [...givenNames(resources)];
  const given = all.flatMap(([name, names]) => (names === undefined ? [] : [[name, names] as const]));
  const unnamed = all.flatMap(([name, names]) => (names === undefined ? [{ name }] : []));
  const taken = [...ownNames(resources), ...given.flatMap(([, { singular, plural }]) => [singular, plural])];
  return new Map([...schemaNames(unnamed, taken), ...given]);
}

/** The collections whose members are resources, by name. */
function servedCollections(resources: Iterable<Resource>): ReadonlyMap<string, Collection> {
  const found = new Map<string, Collection>();
  for (const { documentation } of resources) {
    if (documentation !== undefined && 'part' in documentation && documentation.part === 'member')
      found.set(documentation.collection.name, documentation.collection);
  }
  return found;
}

/** Names of the paths and schemas that resources declare. */
function ownNames(resources: Iterable<Resource>): ReadonlySet<string> {
  const found = new Set<string>();
  const gather = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const reference = referenceIn(value);
    if (reference !== undefined && 'name' in reference) found.add(reference.name);
    for (const part of Object.values(value)) gather(part);
  };
  for (const { documentation, operations } of resources) {
    if (documentation !== undefined && 'name' in documentation) found.add(documentation.name);
    for (const operation of operations.values()) {
      gather([operation.documentation?.takes, operation.documentation?.gives]);
    }
  }
  return found;
}

/** The declared names of every served collection; undefined for a collection that declares none. */
function givenNames(resources: Iterable<Resource>): ReadonlyMap<string, CollectionNames | undefined> {
  const found = new Map<string, CollectionNames | undefined>();
  for (const { documentation } of resources) {
    if (documentation === undefined || !('part' in documentation)) continue;
    found.set(documentation.collection.name, documentation.names);
  }
  return found;
}

/** Names of schemas that every document has. */
const always: readonly string[] = ['Error', 'JsonPatch', 'ProblemDetails'];

/**
 * Returns a pair of names for each collection; all differ.
 * @param taken names of other schemas and paths, which collections may not have
 */
function schemaNames(
  collections: Iterable<Pick<Collection, 'name'>>,
  taken: Iterable<string>,
): ReadonlyMap<string, CollectionNames> {
  const used = new Set([...always, ...taken]);
  const unused = (wanted: string) => {
    let name = wanted;
    for (let number = 2; used.has(name); number += 1) name = `${wanted}${number}`;
    used.add(name);
    return name;
  };
  const names = new Map<string, CollectionNames>();
  for (const { name } of collections) {
    const plural = unused(pascal(name));
    const only = singularOf(name);
    const singular = unused(only === name ? `${pascal(name)}Item` : pascal(only));
    names.set(name, { singular, plural, one: withArticle(words(only)), many: words(name) });
  }
  return names;
}

function pascal(name: string): string {
  return name
    .split(wordBoundary)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
}

function words(name: string): string {
  return name
    .split(wordBoundary)
    .join(' ')
    .replace(innerCapital, (letter) => ` ${letter.toLowerCase()}`);
}

function withArticle(noun: string): string {
  return `${startsWithVowel.test(noun) ? 'an' : 'a'} ${noun}`;
}

/** English plurals by rule, not by dictionary: a wrong guess is ugly, never ambiguous. */
function singularOf(plural: string): string {
  if (plural.endsWith('ies') && plural.length > 4) return `${plural.slice(0, -3)}y`;
  for (const ending of ['sses', 'shes', 'ches', 'xes', 'zes']) {
    if (plural.endsWith(ending)) return plural.slice(0, -2);
  }
  const kept = ['ss', 'us', 'is'].some((ending) => plural.endsWith(ending));
  return plural.endsWith('s') && !kept ? plural.slice(0, -1) : plural;
}

const wordBoundary = /[-_.]/;
const innerCapital = /(?<=.)[A-Z]/g;
const startsWithVowel = /^[aeiou]/i;

// The member `webhooks` of the document (OpenAPI 3.1 and later): the requests that receivers get, one entry for each
// type of event. The body has one of two shapes, by the endpoint's scheme (§2.6, §2.7); §5.6 has the signature fields.
//

/** A type of event that the program knows, from the list that it also serves. */
type DescribedEventType = {
  readonly type: string;
  readonly description: string;
  /** The collection whose writes cause these events. */
  readonly collection: { readonly name: string } | undefined;
  /** Schema of `data.object`; undefined: any object. */
  readonly schema: Item | undefined;
  /** An example of `data.object`. */
  readonly sample: Item | undefined;
};

function sentEvents(
  eventTypes: readonly DescribedEventType[],
  names: ReadonlyMap<string, CollectionNames>,
  components: Components,
): Item {
  const parameters = signatureFields.map((field) => components.add('parameters', field.name, field));
  return Object.fromEntries(
    eventTypes.map((eventType) => [
      eventType.type,
      { post: operation(eventType, objectSchema(eventType, names), parameters) },
    ]),
  );
}

/** Schemas of resources are references to the components. */
function objectSchema(
  { collection, schema }: DescribedEventType,
  names: ReadonlyMap<string, CollectionNames>,
): Item {
  const named = collection === undefined ? undefined : names.get(collection.name);
  return named === undefined ? (schema ?? { type: 'object' }) : ref('schemas', named.singular);
}

function operation(
  { type, description, sample }: DescribedEventType,
  object: Item,
  parameters: readonly Item[],
): Item {
  return {
    summary: type,
    ...(description === '' ? {} : { description }),
    tags: ['events'],
    parameters,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { oneOf: [envelope(type, object), standardMessage(type, object)] },
          ...(sample === undefined ? {} : { example: exampleOf(type, sample) }),
        },
      },
    },
    responses: {
      '2XX': { description: 'Received. Comity ignores the content of the response.' },
      default: { description: 'Not received: Comity retries by the schedule of the endpoint.' },
    },
    // The receiver authenticates a delivery by its signature; the request has no credential.
    security: [],
  };
}

function envelope(type: string, object: Item): Item {
  return {
    title: 'Schemes timestamped and plain',
    type: 'object',
    properties: {
      id: { type: 'string' },
      object: { const: 'event' },
      type: { const: type },
      created: { type: 'integer', description: 'Unix time in seconds.' },
      tenant: { type: 'string' },
      data: { type: 'object', properties: { object }, required: ['object'] },
    },
    required: ['id', 'object', 'type', 'created', 'data'],
  };
}

function standardMessage(type: string, object: Item): Item {
  return {
    title: 'Scheme standard',
    type: 'object',
    properties: {
      type: { const: type },
      timestamp: { type: 'string', format: 'date-time', description: 'Time of the event.' },
      data: object,
    },
    required: ['type', 'timestamp', 'data'],
  };
}

function exampleOf(type: string, sample: Item): Item {
  return {
    id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
    object: 'event',
    type,
    created: 1_785_576_600,
    data: { object: sample },
  };
}

const text: Item = { type: 'string' };
const field = (name: string, description: string) =>
  ({ name, in: 'header', description, schema: text }) as const;

const signatureFields = [
  field(
    'Service-Signature',
    'Scheme timestamped: `t=<Unix seconds>,v1=<hex>`, one `v1` for each active secret.',
  ),
  field('X-Hub-Signature-256', 'Scheme plain: `sha256=<hex>`.'),
  field('X-Hub-Signature-256-Previous', 'Scheme plain: the same for secrets that are being replaced.'),
  field('X-Service-Event', 'Scheme plain: the type of the event.'),
  field('X-Service-Delivery', 'Scheme plain: the id of the delivery, the same for every attempt.'),
  field('webhook-id', 'Scheme standard: the id of the event, the same for every attempt.'),
  field('webhook-timestamp', 'Scheme standard: Unix time of the attempt in seconds.'),
  field(
    'webhook-signature',
    'Scheme standard: `v1,<base64>` (HMAC-SHA256) for each active secret, and `v1a,<base64>` (Ed25519, keys at `/.well-known/jwks.json`) unless `signatures` of the endpoint lacks it.',
  ),
] as const;
