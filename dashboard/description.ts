/**
 * The lists of the API with their members, requests and schemas, read from its OpenAPI document. Every view of
 * resources is made from this, so a collection, an action or a built-in resource appears as soon as the API describes it.
 */
import { signal } from '@preact/signals';
import { isObject, send } from './send.ts';

export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly default?: unknown;
  readonly readOnly?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
};

type Parameter = { readonly name: string; readonly in: string; readonly schema?: Schema };

type Operation = {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly (Parameter & { readonly $ref?: string })[];
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> };
  readonly responses?: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }>
  >;
};

type PathItem = Readonly<Record<string, Operation>>;

type OpenApi = {
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

/** A request on a member or a list beside its plain methods: `POST {member}/rotate-secret`. */
export type Step = {
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly input: Schema | undefined;
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
  readonly create: Schema | undefined;
  /** Undefined: the list has no addressable members. */
  readonly member:
    | {
        readonly path: string;
        readonly parameter: string;
        readonly patch: Schema | undefined;
        readonly canDelete: boolean;
        readonly steps: readonly Step[];
        readonly lists: readonly string[];
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

let document: OpenApi | undefined;

/** @throws Error if the document cannot be read */
export async function readDescription(): Promise<void> {
  const reply = await send('GET', '/openapi.json', { anonymous: true });
  if (reply.status !== 200 || !isObject(reply.json)) throw new Error(`/openapi.json: ${reply.status}`);
  document = reply.json as unknown as OpenApi;
  const paths = Object.keys(document.paths);
  const me = paths.find((path) => path.endsWith('/auth/me'));
  if (me !== undefined) base.value = me.slice(0, -'/auth/me'.length);
  const lists = paths.flatMap((path) => listAt(path) ?? []);
  description.value = { title: document.info.title, lists, paths };
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
  const page = resolve(get.responses?.['200']?.content?.['application/json']?.schema);
  const items = page.properties?.items;
  if (items?.items === undefined || page.properties?.nextCursor === undefined) return undefined;
  const schema = resolve(items.items.anyOf?.[0] ?? items.items);
  const parameters = (get.parameters ?? []).map((each) =>
    each.$ref === undefined ? each : (lookUp(each.$ref) as Parameter),
  );
  const sort = resolve(resolve(parameters.find(({ name }) => name === 'sort')?.schema).items).enum ?? [];
  const members = Object.keys(schema.properties ?? {});
  return {
    path,
    name: path.slice(base.value.length + 1),
    tag: get.tags?.[0] ?? '',
    summary: get.summary ?? path,
    schema,
    filters: parameters.map(({ name }) => name).filter((name) => members.includes(name)),
    sortKeys: sort.filter((each): each is string => typeof each === 'string' && !each.startsWith('-')),
    searchable: parameters.some(({ name }) => name === 'q'),
    create: inputOf(item.post),
    member: memberOf(path),
  };
}

function memberOf(path: string): Listed['member'] {
  const paths = document?.paths ?? {};
  const found = Object.keys(paths).find(
    (each) => each.startsWith(`${path}/{`) && each.indexOf('/', path.length + 1) < 0,
  );
  if (found === undefined) return undefined;
  const item = paths[found] ?? {};
  const below = Object.keys(paths).filter(
    (each) => each.startsWith(`${found}/`) && !each.includes('{', found.length),
  );
  return {
    path: found,
    parameter: /\{([^}]+)\}$/.exec(found)?.[1] ?? 'id',
    patch: inputOf(item.patch),
    canDelete: item.delete !== undefined,
    steps: below.flatMap((each) => stepAt(each, found) ?? []),
    lists: below.filter((each) => paths[each]?.get !== undefined),
  };
}

function stepAt(path: string, member: string): Step | undefined {
  const post = document?.paths[path]?.post;
  if (post === undefined) return undefined;
  return {
    path,
    name: path.slice(member.length + 1),
    summary: post.summary ?? path,
    description: post.description,
    input: inputOf(post),
  };
}

function inputOf(operation: Operation | undefined): Schema | undefined {
  const content = operation?.requestBody?.content;
  const schema = content?.['application/json']?.schema ?? content?.['application/merge-patch+json']?.schema;
  return schema === undefined ? undefined : resolve(schema);
}
