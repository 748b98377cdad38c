/**
 * The lists of the API with their members, requests and schemas, read from its OpenAPI document. Every view of
 * resources is made from this, so a collection, an action or a built-in resource appears as soon as the API describes it.
 */
import { signal } from '@preact/signals';
import { isObject, send } from './send.ts';

/** The way in which the value of a member is shown (`display` of the declaration). */
export type Display = {
  readonly as?: 'money' | 'percent' | 'duration' | 'bytes' | 'country' | 'state' | 'link' | 'long';
  readonly currency?: string;
  readonly currencyField?: string;
  readonly unit?: 'minor' | 'hundred' | 'ms' | 's' | 'min' | 'h';
  readonly tones?: Readonly<Record<string, string>>;
  readonly inLists?: boolean;
};

export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly default?: unknown;
  readonly 'x-default'?: unknown;
  readonly readOnly?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  /** Name of the collection whose ids the member holds. */
  readonly 'x-references'?: string;
  /** The way in which the value is shown, and the documents of the schema are (`labels`, `title`, `groups` of the declaration). */
  readonly 'x-display'?: Display;
  /** Callers that may write the member have to. */
  readonly 'x-required'?: boolean;
  /** The description without what is for programs. */
  readonly 'x-help'?: string;
  readonly 'x-presentation'?: {
    readonly many?: string;
    readonly title?: string;
    readonly groups?: readonly { readonly heading: string; readonly members: readonly string[] }[];
  };
};

type Parameter = {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
};

type Operation = {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly (Parameter & { readonly $ref?: string })[];
  readonly requestBody?: Content;
  readonly responses?: Readonly<Record<string, Content>>;
  /** An action of the application. */
  readonly 'x-action'?: { readonly name: string; readonly on: 'member' | 'collection' | 'base' };
  readonly 'x-responses'?: Readonly<Record<string, unknown>>;
};

/** Content, or a reference to what has it. */
type Content = {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, MediaContent>>;
};

type MediaContent = {
  readonly schema?: Schema;
  readonly encoding?: Readonly<Record<string, { readonly contentType?: string }>>;
};

type PathItem = Readonly<Record<string, Operation>>;

type OpenApi = {
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly [{ readonly url: string }];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

/** The part of the application, and that of its operators. */
const parts = ['application', 'operator'];

/** A request beside the plain methods of a member or a list: `POST {member}/rotate-secret`, and the actions of the application. */
export type Step = {
  /** With its captures in braces. */
  readonly path: string;
  readonly method: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string | undefined;
  /** Its input, and the captures of its path besides the member. */
  readonly input: Schema;
  readonly captures: readonly string[];
  readonly sends: 'query' | 'json' | 'form';
  /** The media types that members of the form which are files may have. */
  readonly accepted: Readonly<Record<string, string>>;
  /** The media types of its answer; empty: it has no content. */
  readonly gives: readonly string[];
  /** The schema of an answer in JSON. */
  readonly output: Schema;
  readonly leadsElsewhere: boolean;
  /** It can be carried out after the answer. */
  readonly canWait: boolean;
};

/** A member of documents that holds a file, or a list of files. */
export type FileField = {
  readonly name: string;
  readonly isList: boolean;
  /** Media types, as an input for files has them; empty: any. */
  readonly accept: string;
  readonly canUpload: boolean;
  readonly canRemove: boolean;
};

/** A list of the API, with its members. */
export type Listed = {
  readonly path: string;
  readonly name: string;
  readonly tag: string;
  readonly summary: string;
  readonly schema: Schema;
  /** Members that are filters and sort keys. */
  readonly filters: readonly string[];
  readonly sortKeys: readonly string[];
  readonly searchable: boolean;
  /** It comes in pages; otherwise it is on one, and takes no parameters. */
  readonly isPaged: boolean;
  /** Members that refer to other documents, with the path of their list. */
  readonly references: ReadonlyMap<string, string>;
  /** Paths that `expand` takes. */
  readonly expandable: readonly string[];
  /** Deleted documents are kept, and can be restored. */
  readonly keepsDeleted: boolean;
  readonly deletesMany: boolean;
  readonly create: Schema | undefined;
  /** Files of documents can be imported. */
  readonly canImport: boolean;
  /** The actions of the application on the collection. */
  readonly actions: readonly Step[];
  /** Undefined: the list has no addressable members. */
  readonly member:
    | {
        readonly path: string;
        readonly parameter: string;
        readonly patch: Schema | undefined;
        readonly canDelete: boolean;
        readonly steps: readonly Step[];
        readonly lists: readonly string[];
        readonly files: ReadonlyMap<string, FileField>;
        /** The versions of a document can be listed. */
        readonly hasHistory: boolean;
      }
    | undefined;
};

export type Description = {
  readonly title: string;
  readonly lists: readonly Listed[];
  readonly paths: readonly string[];
};

export const description = signal<Description | undefined>(undefined);
/** `/api/v1` unless configured. */
export const base = signal('/api/v1');

/** The path before those that the server gives out, if it knows its root. */
let root = '';
let document: OpenApi | undefined;
/** @throws Error if the document cannot be read */
export async function readDescription(): Promise<void> {
  const replies = await Promise.all(
    parts.map((part) => send('GET', `/openapi.json?part=${part}`, { anonymous: true })),
  );
  const documents = replies.map(({ status, json }) => {
    if (status !== 200 || !isObject(json)) throw new Error(`/openapi.json: ${status}`);
    return json as unknown as OpenApi;
  });
  document = documents.reduce(joined);
  root = document.servers[0].url.replace(lastSlash, '');
  const paths = Object.keys(document.paths);
  const me = paths.find((path) => path.endsWith('/auth/me'));
  if (me !== undefined) base.value = me.slice(0, -'/auth/me'.length);
  const lists = paths.flatMap((path) => listAt(path) ?? []);
  description.value = { title: document.info.title, lists, paths };
}

const lastSlash = /\/$/;

/** A path that the server gave, as `send` takes it: below the prefix of the address, which it may have or not. */
export function belowPrefix(path: string): string {
  return path.startsWith(`${root}/`) ? path.slice(root.length) : path;
}

/** One document of two parts: a path may have methods in both, and a component means the same in both. */
function joined(one: OpenApi, other: OpenApi): OpenApi {
  const paths = { ...one.paths };
  for (const [path, item] of Object.entries(other.paths)) paths[path] = { ...paths[path], ...item };
  const components = { ...one.components };
  for (const [kind, items] of Object.entries(other.components))
    components[kind] = { ...components[kind], ...items };
  return { ...one, paths, components };
}

/** Follows references, merges `allOf`, and takes the other schema of a choice between it and null. */
export function resolve(schema: Schema | undefined): Schema {
  if (schema === undefined) return {};
  if (schema.$ref !== undefined) return resolve(lookUp(schema.$ref) as Schema | undefined);
  const [choice, ...others] = (schema.anyOf ?? schema.oneOf ?? []).filter(({ type }) => type !== 'null');
  if (choice !== undefined && others.length === 0) {
    const { anyOf: _, oneOf: __, ...rest } = schema;
    return { ...resolve(choice), ...rest };
  }
  if (schema.allOf === undefined) return schema;
  const parts = schema.allOf.map(resolve);
  return {
    ...Object.assign({}, ...parts),
    properties: Object.assign({}, ...parts.map((part) => part.properties ?? {})),
    required: parts.flatMap((part) => part.required ?? []),
  };
}

/** The list whose members have this path. */
export function listOf(path: string): Listed | undefined {
  return description.value?.lists.find((list) => list.path === path);
}

export function memberPath(list: Listed, id: string): string {
  return list.member === undefined
    ? list.path
    : list.member.path.replace(`{${list.member.parameter}}`, encodeURIComponent(id));
}

function lookUp(reference: string): unknown {
  const [, section = '', name = ''] = /^#\/components\/([^/]+)\/(.+)$/.exec(reference) ?? [];
  return document?.components[section]?.[name];
}

function listAt(path: string): Listed | undefined {
  const item = document?.paths[path];
  const get = item?.get;
  if (item === undefined || get === undefined || path.includes('{')) return undefined;
  const page = resolve(contentOf(get.responses?.['200'])?.['application/json']?.schema);
  const items = page.properties?.items;
  if (items?.items === undefined || page.properties?.nextCursor === undefined) return undefined;
  const schema = withoutTag(resolve(items.items));
  const parameters = (get.parameters ?? []).map((each) =>
    each.$ref === undefined ? each : (lookUp(each.$ref) as Parameter),
  );
  const members = Object.keys(schema.properties ?? {});
  // An export has documents of any shape.
  if (schema.properties === undefined) return undefined;
  const member = memberOf(path, schema);
  const paths = document?.paths ?? {};
  return {
    path,
    name: path.slice(base.value.length + 1),
    tag: get.tags?.[0] ?? '',
    summary: get.summary ?? path,
    schema,
    filters: parameters.map(({ name }) => name).filter((name) => members.includes(name)),
    sortKeys: textsOf(parameters.find(({ name }) => name === 'sort')).filter((each) => !each.startsWith('-')),
    searchable: parameters.some(({ name }) => name === 'q'),
    isPaged: parameters.some(({ name }) => name === 'limit'),
    references: referencesOf(schema),
    expandable: textsOf(parameters.find(({ name }) => name === 'expand')),
    keepsDeleted: member !== undefined && paths[`${member.path}/restore`] !== undefined,
    deletesMany: paths[`${path}/bulk-delete`] !== undefined,
    create: inputOf(item.post),
    canImport: paths[`${path}/import`]?.post !== undefined,
    actions: actionsBelow(path, 'collection'),
    member,
  };
}

function contentOf(part: Content | undefined): Content['content'] {
  return part?.$ref === undefined ? part?.content : (lookUp(part.$ref) as Content | undefined)?.content;
}

/** Without the entity tag, which documents have only where `fields` names it. */
function withoutTag(schema: Schema): Schema {
  const { etag, $etag, ...properties } = schema.properties ?? {};
  const declared = $etag === undefined || etag === undefined ? {} : { etag };
  return schema.properties === undefined ? schema : { ...schema, properties: { ...properties, ...declared } };
}

/** The texts that a parameter with a list of them may contain. */
function textsOf(parameter: Parameter | undefined): readonly string[] {
  const values = resolve(resolve(parameter?.schema).items).enum ?? [];
  return values.filter((each) => typeof each === 'string');
}

function referencesOf({ properties = {} }: Schema): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, schema] of Object.entries(properties)) {
    const target = resolve(schema)['x-references'];
    if (target !== undefined) found.set(name, pathOf(target));
  }
  return found;
}

/** The path of the list of a collection. */
export function pathOf(collection: string): string {
  return `${base.value}/${collection}`;
}

/** The values that the first parameter of a path may have. */
export function pathEnum(path: string): readonly string[] {
  const item = document?.paths[path];
  const shared = item === undefined ? [] : [item as { readonly parameters?: readonly Parameter[] }, item.get];
  const [parameter] = shared.flatMap((each) => each?.parameters ?? []);
  const values = resolve(parameter?.schema).enum ?? [];
  return values.filter((each) => typeof each === 'string');
}

/** The schema of the content that a POST to the path takes. */
export function requestSchema(path: string): Schema | undefined {
  return inputOf(document?.paths[path]?.post);
}

/** Answers what paths exist, such as `/api/v1/users/{id}/sessions`. */
export function hasPath(path: string): boolean {
  return document?.paths[path] !== undefined;
}

function memberOf(path: string, schema: Schema): Listed['member'] {
  const paths = document?.paths ?? {};
  const found = Object.keys(paths).find(
    (each) => each.startsWith(`${path}/{`) && each.indexOf('/', path.length + 1) < 0,
  );
  if (found === undefined) return undefined;
  const item = paths[found] ?? {};
  const files = filesOf(schema, found);
  const below = Object.keys(paths).filter(
    (each) =>
      each.startsWith(`${found}/`) &&
      !each.includes('{', found.length) &&
      !files.has(each.slice(found.length + 1).split('/', 1)[0] ?? ''),
  );
  return {
    path: found,
    parameter: /\{([^}]+)\}$/.exec(found)?.[1] ?? 'id',
    patch: inputOf(item.patch),
    canDelete: item.delete !== undefined,
    steps: [
      ...actionsBelow(found, 'member'),
      ...below
        .filter((each) => !ownViews.has(each.slice(found.length)))
        .flatMap((each) => builtInStep(each, found) ?? []),
    ],
    lists: below.filter((each) => {
      const get = paths[each]?.get;
      return get !== undefined && get['x-action'] === undefined && !ownViews.has(each.slice(found.length));
    }),
    files,
    hasHistory: paths[`${found}/history`] !== undefined,
  };
}

/** A member that is written as a file, which has a control of its own. */
export function isFileReference({ $ref, items }: Schema): boolean {
  return ($ref ?? items?.$ref) === '#/components/schemas/FileReference';
}

/** The schema of a file in documents. */
const fileReference = '#/components/schemas/File';

function filesOf({ properties = {} }: Schema, member: string): ReadonlyMap<string, FileField> {
  const found = new Map<string, FileField>();
  for (const [name, each] of Object.entries(properties)) {
    const isList = each.items?.$ref === fileReference;
    if (!isList && each.$ref !== fileReference) continue;
    const item = document?.paths[`${member}/${name}`];
    const upload = isList ? item?.post : item?.put;
    const holder = isList
      ? Object.entries(document?.paths ?? {}).find(([path]) => path.startsWith(`${member}/${name}/{`))?.[1]
      : item;
    const types = Object.keys(contentOf(upload?.requestBody) ?? {}).filter((type) => type !== '*/*');
    const conduct = { canUpload: upload !== undefined, canRemove: holder?.delete !== undefined };
    found.set(name, { name, isList, accept: types.join(','), ...conduct });
  }
  return found;
}

/** Paths that components of their own show. */
const ownViews: ReadonlySet<string> = new Set([
  ...['/history', '/restore', '/sessions', '/sessions/end'],
  ...['/second-factor', '/reset-second-factor'],
]);

function builtInStep(path: string, member: string): Step | undefined {
  const post = document?.paths[path]?.post;
  if (post === undefined || post['x-action'] !== undefined) return undefined;
  return stepOf(path, 'POST', { name: path.slice(member.length + 1), ...post });
}

/** The actions of the application below a path, on members of it or on itself. */
export function actionsBelow(path: string, on: 'member' | 'collection' | 'base'): readonly Step[] {
  return Object.entries(document?.paths ?? {}).flatMap(([each, item]) =>
    each.startsWith(`${path}/`)
      ? Object.entries(item).flatMap(([method, operation]) => {
          const action = operation['x-action'];
          if (action?.on !== on) return [];
          return stepOf(each, method.toUpperCase(), { ...operation, name: action.name });
        })
      : [],
  );
}

const summaryDefault = /^Call the action \S+$/;
const success = /^2\d\d$/;

function stepOf(path: string, method: string, operation: Operation & { readonly name: string }): Step {
  const { name, summary = '', description, requestBody, responses = {}, 'x-action': action } = operation;
  const content = contentOf(requestBody) ?? {};
  const isQuery = method === 'GET' || method === 'DELETE';
  const form = content['multipart/form-data'];
  const isForm = form !== undefined && content['application/json'] === undefined;
  const named = [...path.matchAll(/\{([^}]+)\}/g)].map(([, capture = '']) => capture);
  const captures = action?.on === 'member' || action === undefined ? named.slice(1) : named;
  const own = isQuery ? schemaOfQuery(operation) : isForm ? resolve(form.schema) : inputOf(operation);
  const found = Object.entries(responses).find(([status]) => success.test(status))?.[1];
  const given = contentOf(found) ?? {};
  return {
    ...{ path, method, name, captures, description },
    summary: action !== undefined && summaryDefault.test(summary) ? '' : summary,
    input: withCaptures(own ?? {}, captures),
    sends: isQuery ? 'query' : isForm ? 'form' : 'json',
    accepted: Object.fromEntries(
      Object.entries(form?.encoding ?? {}).map(([member, { contentType = '' }]) => [member, contentType]),
    ),
    gives: Object.keys(given),
    output: resolve(given['application/json']?.schema),
    leadsElsewhere: action !== undefined && found === undefined,
    canWait: operation['x-responses']?.['Prefer: respond-async'] !== undefined,
  };
}

function schemaOfQuery({ parameters = [] }: Operation): Schema {
  const all = parameters.map((each) => (each.$ref === undefined ? each : (lookUp(each.$ref) as Parameter)));
  const query = all.filter((each) => each.in === 'query');
  const described = ({ description: text }: Parameter) => (text === undefined ? {} : { description: text });
  return {
    properties: Object.fromEntries(query.map((each) => [each.name, { ...each.schema, ...described(each) }])),
    required: query.filter(({ required }) => required === true).map(({ name }) => name),
  };
}

/** Captures are texts that a request cannot be without. */
function withCaptures(schema: Schema, captures: readonly string[]): Schema {
  if (captures.length === 0) return schema;
  const texts = Object.fromEntries(captures.map((name) => [name, { type: 'string' } as Schema]));
  return {
    ...schema,
    properties: { ...texts, ...schema.properties },
    required: [...captures, ...(schema.required ?? [])],
  };
}

function inputOf(operation: Operation | undefined): Schema | undefined {
  const content = contentOf(operation?.requestBody);
  const schema = content?.['application/json']?.schema ?? content?.['application/merge-patch+json']?.schema;
  return schema === undefined ? undefined : resolve(schema);
}

/** A collection of the application: the operations of a built-in resource have its tag among those below. */
export function isCollection(list: Listed): boolean {
  return !builtIn.has(list.tag);
}

const builtIn: ReadonlySet<string> = new Set([
  ...['users', 'keys', 'audit', 'portal-links', 'portal', 'views', 'accounts', 'endpoints', 'deliveries'],
  ...['recoveries', 'event-types', 'received', 'senders', 'subscribers', 'jobs', 'mails', 'hold', 'queries'],
  ...['operations', 'events', 'realtime', 'service', 'webhooks', 'actions'],
]);
