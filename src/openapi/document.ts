/**
 * Generates the OpenAPI document from the declarations that the program serves. Statuses come from the decision graph
 * (traits.ts), codes from the registry. It has two parts: what clients of the application need, and what its operators
 * need besides (docs/decisions/0104-the-document-is-the-applications.md).
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
import { Components } from './components.ts';
import { pathItem } from './path-item.ts';
import { addErrorSchemas, generalFields } from './refusals.ts';
import { fieldNames, resourcePath } from './resource-path.ts';
import { type DescribedEventType, sentEvents, signatureFields } from './sent-events.ts';

export type OpenApiVersion = '3.2' | '3.1';

export type OpenApiPart = 'application' | 'operator';

export type OpenApiOptions = {
  readonly title: string;
  /** Value of API-Version. */
  readonly apiVersion: string;
  /** The path before every path that clients see: `/backend`; absent: none. */
  readonly root?: string;
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
  /** Absent: both, as one document. */
  readonly part?: OpenApiPart | undefined;
};

/** How long one slice may hold the event loop. */
const sliceMs = 10;

/**
 * The document as it is served: each version of a part is made at its first request, in slices, because it takes 100 to 300 ms.
 *
 * @param optionsOf called at the first request for a document, when all resources exist
 */
export function createDocuments(
  optionsOf: () => Omit<OpenApiOptions, 'version' | 'part'>,
): ProgramOptions['openApi'] {
  const made = new Map<string, Promise<{ content: Uint8Array; tag: string }>>();
  return ({ version = '3.2', part = 'application' }) => {
    if (version !== '3.2' && version !== '3.1')
      return { refused: `version must be 3.2 or 3.1, not ${version}` };
    if (part !== 'application' && part !== 'operator')
      return { refused: `part must be application or operator, not ${part}` };
    const name = `${version} ${part}`;
    const known = made.get(name) ?? make({ ...optionsOf(), version, part });
    made.set(name, known);
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
  const { resources, eventTypes, version, part } = options;
  const components = new Components();
  const security = addSecuritySchemes(components);
  addErrorSchemas(components);
  const names = collectionNames(resources);
  const collections = servedCollections(resources);
  const setting = { components, security, verifiedEmailRequired: options.verifiedEmailRequired };
  const described: Record<string, Item> = {};
  const ofOperators = new Set<string>();
  for (const resource of resources) {
    const path = resourcePath(resource, { components, names, collections });
    yield;
    if (path === undefined) continue;
    described[path.path] = pathItem(path, setting);
    for (const { traits, audience } of path.operations)
      if (audience === 'operator') ofOperators.add(`${traits.method} ${path.path}`);
    yield;
  }
  const sentTypes = (eventTypes ?? []).filter(
    ({ audience = 'application' }) => part === undefined || audience === part,
  );
  const sent = sentTypes.length === 0 ? {} : { webhooks: sentEvents(sentTypes, names, components) };
  yield;
  // Components are shared and named before the parts are separated: one name means the same in both.
  const shared = yield* components.shared(described);
  const { inPart, paths } = partOf(part, { resources, items: shared, ofOperators });
  const document: Item = {
    openapi: '3.2.0',
    info: {
      title: options.title,
      version: options.apiVersion,
      description: [...prefaceOf(options), ...(version === '3.1' ? [earlierNote] : [])].join('\n\n'),
    },
    servers: [{ url: options.root || '/' }],
    security,
    tags: tags(inPart),
    paths,
    ...sent,
    components: components.toItem({ paths, ...sent }),
    ...('webhooks' in sent ? { 'x-webhook-headers': signatureFields } : {}),
    'x-headers': generalFields([
      ...(options.corsEnabled ? crossOriginFields : []),
      ...inPart.flatMap(({ constantFields, documentation }) =>
        documentation === undefined ? [] : fieldNames(constantFields),
      ),
    ]),
  };
  yield;
  return version === '3.1' ? toEarlierVersion(document) : document;
}

const partNotes: Readonly<Record<OpenApiPart, string>> = {
  application:
    'What clients of the application need. `/openapi.json?part=operator` has the rest: keys, endpoints, deliveries, received webhooks and the program itself.',
  operator:
    'What operators need. `/openapi.json` has the part of the application: collections, actions, accounts and events.',
};

function prefaceOf({ part, traceEnabled, root = '' }: OpenApiOptions): readonly string[] {
  return [
    ...(part === undefined ? [] : [partNotes[part]]),
    'Send exactly one credential. Reads have strong entity tags: send one in `If-Match`, and a change does not overwrite the change of another client. Lists page by cursor; `QUERY` (RFC 10008) takes the query of a list in the content. A filter is `field[operator]=value`; `field=value` is short for `field[eq]=value`, and if repeated, any of the values matches. A parameter that is an array may be repeated or separated by commas.',
    '`responses` of an operation has what a request gets that asks for nothing else, and `x-responses` what a header field asks for, by that field. With `fields`, representations have the selected members alone.',
    `An error is \`{"error": "message", "code": "stable_code"}\`, or RFC 9457 for \`Accept: application/problem+json\`; \`x-errors\` has the codes by status, of any operation at the response \`default\` and of one at the operation, and the [list of codes](${root}/docs/errors) their meanings.`,
    `Any response may have the fields under \`x-headers\`. Content may be coded: \`gzip\`, \`deflate\`, \`br\` or \`zstd\` in requests (Content-Encoding), \`br\` or \`gzip\` in longer responses (Accept-Encoding). HEAD is answered wherever GET is, without content. OPTIONS is answered everywhere, without a credential: it lists the methods, and is the preflight request of pages of other origins.${traceEnabled ? ' TRACE echoes the request without its credentials.' : ''}`,
  ];
}

/**
 * The path items of a part, and their resources. A resource belongs to the part of its tag (what is done to a member, to that of its
 * collection), and single operations to the other.
 */
function partOf(
  part: OpenApiPart | undefined,
  whole: {
    readonly resources: readonly Resource[];
    /** Path items by the pattern of their resource. */
    readonly items: Readonly<Record<string, Item>>;
    /** Single operations, as `GET /path`. */
    readonly ofOperators: ReadonlySet<string>;
  },
): { readonly inPart: readonly Resource[]; readonly paths: Record<string, Item> } {
  const { resources, items, ofOperators } = whole;
  const collections = new Set<string>();
  for (const { documentation } of resources) {
    if (documentation !== undefined && 'part' in documentation && documentation.audience === 'operator')
      collections.add(documentation.collection.name);
  }
  const inPart: Resource[] = [];
  const paths: Record<string, Item> = {};
  for (const resource of resources) {
    const { pattern, documentation, operations } = resource;
    const item = items[pattern];
    if (documentation === undefined || item === undefined) continue;
    const tag = tagOf(documentation);
    const isOperators = tag.audience === 'operator' || collections.has(tag.name);
    const kept = [...operations.keys()].filter((method) => {
      const isFor = isOperators || ofOperators.has(`${method} ${pattern}`);
      return part === undefined || isFor === (part === 'operator');
    });
    if (kept.length === 0) continue;
    inPart.push(resource);
    const methods = new Set(['parameters', ...kept.map((method) => method.toLowerCase())]);
    paths[pattern] = Object.fromEntries(Object.entries(item).filter(([name]) => methods.has(name)));
  }
  return { inPart, paths };
}

function tagOf(documentation: NonNullable<Resource['documentation']>): Tag {
  return 'part' in documentation ? documentation.collection : documentation.tag;
}

/** In the order of the paths. */
function tags(resources: readonly Resource[]): readonly Item[] {
  const found = new Map<string, Item>();
  for (const { documentation } of resources) {
    if (documentation === undefined) continue;
    const { name, description } = tagOf(documentation);
    const summary = 'part' in documentation ? documentation.collection.presentation?.many : undefined;
    found.set(name, {
      ...found.get(name),
      name,
      ...(description === '' ? {} : { description }),
      // The member of OpenAPI 3.2, and what viewers read before it.
      ...(summary === undefined ? {} : { summary, 'x-displayName': summary }),
    });
  }
  return [...found.values()];
}

const earlierNote =
  'This is the OpenAPI 3.1 version. OpenAPI 3.1 has no QUERY operations, so they are under the extension `x-query` of each path; `/openapi.json` has them as OpenAPI 3.2 defines.';

/**
 * Rewrites the document for tools that support only OpenAPI 3.1, which lacks three members of 3.2: `query` of a path item
 * becomes the extension `x-query`, `itemSchema` of a stream becomes a string schema, and `summary` of a tag is left out.
 */
function toEarlierVersion(document: Item): Item {
  const paths = document.paths as Readonly<Record<string, Item>>;
  const tags = (document.tags as readonly Item[]).map(({ summary: _, ...tag }) => tag);
  return {
    ...document,
    openapi: '3.1.1',
    tags,
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
  // `ApiKey` is no registered scheme (RFC 9110 §16.4.1): generators of clients do not know it, and viewers show it as Bearer.
  apiKeyHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'An API key; also as `Authorization: ApiKey` or `Api-Key`.',
  },
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
const always: readonly string[] = [
  ...['Error', 'ErrorCode', 'EventEnvelope', 'JsonPatch', 'ProblemDetails', 'StandardMessage'],
];

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
