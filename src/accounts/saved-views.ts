/**
 * `/views`: saved views of lists (§5.11), which the dashboard offers above a list: its filters, order and columns under a name. A view belongs
 * to the principal that saves it. Others read it once it is shared, as long as they may read the collection that it is of and are of the same
 * tenant; its owner and administrators change it. The views of a deleted account go with it (user-routes.ts).
 */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../config/collections.ts';
import { madeMembers } from '../config/reserved-names.ts';
import type { FieldError } from '../http/problem.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { type CollectionOperation, memberwiseOperations } from '../kernel/documentation.ts';
import type { Ask, Operation, Resource } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import type { ConditionRule } from '../model/access-function.ts';
import type { Collection } from '../model/collection.ts';
import { type Field, ownerField } from '../model/field.ts';
import { allOf, never } from '../model/filter.ts';
import { type Principal, principalIdOf, tenantOf } from '../model/principal.ts';
import { proposeList } from '../resources/collection/list-answer.ts';
import type { Listing } from '../resources/collection/listing.ts';
import { timeAfter } from '../resources/collection/row.ts';
import {
  listingOf,
  type ServedCollection,
  serveCollection,
} from '../resources/collection/serve-collection.ts';
import type { Accompaniment, Serving, Written } from '../resources/collection/served-collection.ts';
import {
  createOperation,
  type NewFields,
  type Revise,
  revised,
} from '../resources/collection/write-operations.ts';
import { withoutBrackets } from '../resources/query/selection.ts';
import { keptRow } from '../store/store.ts';
import { digestOf } from './account-tables.ts';

/** The longest query string of a view: longer ones are too long for the address of a page too. */
const queryCharactersMax = 4096;
const columnsMax = 100;
const nameCharactersMax = 100;

export const viewsCollection: Collection = resolveBuiltIn('views', {
  description:
    'Saved views of lists: filters, order and columns under a name. Callers see their own, and shared ones of collections that they may read.',
  schema: Type.Object({
    collection: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The collection that the view is of: one that the caller may read.',
    }),
    name: Type.String({ minLength: 1, maxLength: nameCharactersMax }),
    shared: Type.Boolean({
      default: false,
      description: 'Others that may read the collection see the view.',
    }),
    query: Type.String({
      maxLength: queryCharactersMax,
      default: '',
      description: 'Query string of the list: filters, `q`, `sort` and `limit`.',
    }),
    columns: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
      maxItems: columnsMax,
      uniqueItems: true,
      default: [],
      description: 'Members that are shown, in their order. None: those that the dashboard chooses.',
    }),
    ownerId: Type.Optional(Type.String({ description: 'The principal that saved the view.' })),
    tenant: Type.Optional(
      Type.String({ description: 'The tenant of its owner, outside of which the view is not shared.' }),
    ),
  }),
  stamp: { ownerId: 'principal', tenant: 'tenant' },
  access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
  unique: [['ownerId', 'collection', 'name']],
  unpatchable: ['collection'],
  search: ['name'],
  examples: [
    {
      collection: 'products',
      name: 'Running out',
      shared: true,
      query: 'stock[lt]=5&sort=stock',
      columns: ['name', 'stock'],
    },
  ],
});

export const viewsTable: string = viewsCollection.name;

/**
 * One row for each principal that has saved a view. Every creation rewrites it, so that of concurrent ones each counts the views of those
 * before it, in any process.
 */
export const viewOwnersTable = 'view_owners';

const operations: ReadonlySet<CollectionOperation> = new Set(memberwiseOperations);

export function viewResources(serving: Serving): ServedCollection {
  const accounts = serving.accounts === undefined ? [] : [serving.accounts.users];
  const collections = [...serving.collections.values(), ...accounts];
  const listed = collections.map((collection) => ({ collection, listing: listingOf(serving, collection) }));
  const { access } = viewsCollection;
  const collection: Collection = {
    ...viewsCollection,
    access: { ...access, read: { anyOf: ['owner', sharedRule(collections)] } },
  };
  const revise: Revise = ({ ask, fields }) => {
    const errors = faultsOf(listed, ask, fields);
    return errors.length === 0 ? { fields } : { refused: { code: 'validation_failed', errors } };
  };
  const newId = () => `view_${serving.newId()}`;
  const plain = serveCollection({ ...serving, newId }, collection, {
    announced: false,
    accompany: countCreation(serving),
    create: (served) => revised(createOperation(served) as Operation, revise),
    operations,
    documentation: {
      names: { singular: 'View', plural: 'Views', one: 'a saved view', many: 'saved views' },
      audience: 'operator',
      idPrefix: 'view_',
      revise: {
        create: (standard) => ({ ...standard, codes: [...(standard.codes ?? []), 'views_exhausted'] }),
      },
    },
  });
  return { ...plain, resources: plain.resources.map((resource) => withRevisedPatch(resource, revise)) };
}

function withRevisedPatch(resource: Resource, revise: Revise): Resource {
  const patch = resource.operations.get('PATCH');
  if (patch === undefined) return resource;
  return { ...resource, operations: new Map([...resource.operations, ['PATCH', revised(patch, revise)]]) };
}

type Listed = readonly { readonly collection: Collection; readonly listing: Listing }[];

/** Shared views of the collections that the principal may read, by principals of its tenant. */
function sharedRule(collections: readonly Collection[]): ConditionRule {
  return {
    source: 'shared views of collections that the principal may read',
    filterFor: (principal) => {
      if (principal.kind === 'anonymous') return never;
      const names = collections.filter((each) => mayRead(each, principal)).map(({ name }) => name);
      return allOf([
        { op: 'eq', field: fieldOf('shared'), value: true },
        { op: 'eq', field: fieldOf('tenant'), value: tenantOf(principal) },
        { op: 'in', field: fieldOf('collection'), values: names },
      ]);
    },
  };
}

function fieldOf(name: string): Field {
  const field = viewsCollection.fields.get(name);
  if (field === undefined) throw new Error(`views have no member ${name}`);
  return field;
}

function mayRead({ access }: Collection, principal: Principal): boolean {
  return permission(access.read, 'read', principal) !== 'denied';
}

/** Parameters of a list that no view keeps: pages of it, and what they show of its documents. */
const droppedParameters: ReadonlySet<string> = new Set([
  ...['page', 'per_page', 'cursor', 'fields', 'expand', 'counts', 'api_key'],
]);

/** What a caller sends, with defaults. */
type View = { readonly collection: string; readonly query: string; readonly columns: readonly string[] };

/** The query is judged as a list would judge it: what a view asks for, its list answers. */
function faultsOf(
  listed: Listed,
  { principal, now }: Pick<Ask, 'principal' | 'now'>,
  fields: NewFields,
): readonly FieldError[] {
  const { collection: name, query, columns } = fields as View;
  const found = listed.find(({ collection }) => collection.name === name);
  if (found === undefined || !mayRead(found.collection, principal))
    return [{ pointer: '/collection', message: 'must be the name of a collection that you may read' }];
  const { collection, listing } = found;
  const members = new Set([...Object.keys(collection.schema.properties), ...madeMembers]);
  const pairs = parseQueryString(query);
  if (pairs === undefined)
    return [{ pointer: '/query', message: 'must be a query string, such as status=open&sort=-createdAt' }];
  const dropped = pairs.find(([parameter]) => droppedParameters.has(withoutBrackets(parameter)));
  const { problem } = proposeList(listing, { query, principal, now });
  const message =
    dropped === undefined
      ? problem?.message
      : `a view keeps filters, q, sort, order and limit, not ${dropped[0]}`;
  return [
    ...(message === undefined ? [] : [{ pointer: '/query', message }]),
    ...columns.flatMap((column, index) =>
      members.has(column) ? [] : [{ pointer: `/columns/${index}`, message: `is no member of ${name}` }],
    ),
  ];
}

/** Counts the views of a principal with each that it saves. */
function countCreation({
  store,
  clock,
  settings: { viewsPerOwnerMax },
}: Serving): (written: Written) => Promise<Accompaniment> {
  return async ({ ask, before, next }) => {
    if (before !== undefined || next === null) return { changes: [] };
    const owner = principalIdOf(ask.principal) ?? '';
    const id = digestOf(owner);
    const row = await store.read(viewOwnersTable, id);
    const count = await store.count(viewsTable, { op: 'eq', field: ownerField, value: owner });
    if (count >= viewsPerOwnerMax) {
      const limit = viewsPerOwnerMax.toLocaleString('en');
      const message = `the limit of ${limit} saved views is reached (COMITY_VIEWS_PER_OWNER_MAX)`;
      return { refused: { code: 'views_exhausted', message } };
    }
    const at = timeAfter(clock, row?.updatedAt ?? 0);
    const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
    return {
      changes: [{ table: viewOwnersTable, id, expect, next: keptRow('{}', owner, row?.createdAt ?? at, at) }],
    };
  };
}
