/**
 * The three paths of a collection (§4.1): the collection itself, its members, and bulk deletion. Which content, which
 * codes and whose access each operation has follows from the declaration.
 */
import type { Collection } from '../model/collection.ts';
import {
  bulkDeleteDescription,
  createDescription,
  listDescription,
  queryDescription,
} from './collection-operations.ts';
import type { Components } from './components.ts';
import type { CollectionLimits, Described } from './described.ts';
import {
  deleteDescription,
  patchDescription,
  readDescription,
  replaceDescription,
} from './member-operations.ts';
import type { Description } from './operation.ts';
import type { PathDescription } from './path-item.ts';
import { resourceExamples } from './resource-examples.ts';
import { addResourceSchemas } from './resource-schemas.ts';
import type { FieldName } from './response-fields.ts';
import type { SchemaNames } from './schema-names.ts';
import type { Gate } from './traits.ts';

export type CollectionOperation =
  | 'list'
  | 'create'
  | 'query'
  | 'read'
  | 'replace'
  | 'patch'
  | 'delete'
  | 'bulkDelete';

/** Where a collection of the program's own differs from a declared one. */
export type BuiltInVariant = {
  /** Of the ids in examples. */
  readonly idPrefix: string;
  /** The operations that there are; default all. */
  readonly operations?: ReadonlySet<CollectionOperation>;
  /** Who may call operations at all that are not open as the rules say; `list` is that of QUERY too. */
  readonly gates?: Readonly<Partial<Record<'list' | 'create' | 'bulkDelete', Gate>>>;
  /** In place of the POST that makes a resource. */
  readonly create?: Description;
  /** What is otherwise about an operation. */
  readonly revise?: Readonly<Partial<Record<CollectionOperation, (as: Description) => Description>>>;
};

export function collectionPaths(
  collection: Collection,
  names: SchemaNames,
  base: string,
  limits: CollectionLimits,
  components: Components,
  variant?: BuiltInVariant,
): readonly PathDescription[] {
  addResourceSchemas(collection, names, components);
  const setting: Described = {
    collection,
    names,
    limits,
    components,
    examples: resourceExamples(collection, names, components, variant?.idPrefix),
    shared: {
      tag: collection.name,
      deprecated: collection.deprecation !== undefined,
      constantFields: deprecationFields(collection),
      counts: collection.dependants.map(({ countAs }) => countAs),
    },
  };
  const path = `${base}/${collection.name}`;
  const { gates = {}, operations, create = createDescription(setting) } = variant ?? {};
  const kept = (all: readonly Named[]): readonly Description[] =>
    all
      .filter(([name]) => operations?.has(name) ?? true)
      .map(([name, description]) => variant?.revise?.[name]?.(description) ?? description);
  const paths: readonly PathDescription[] = [
    {
      path,
      name: names.plural,
      noun: `the ${names.many}`,
      operations: kept([
        ['list', gated(listDescription(setting), gates.list)],
        ['create', gated(create, gates.create)],
        ['query', gated(queryDescription(setting), gates.list)],
      ]),
    },
    {
      path: `${path}/{id}`,
      name: names.singular,
      noun: names.one,
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      operations: kept([
        ['read', readDescription(setting)],
        ['replace', replaceDescription(setting)],
        ['patch', patchDescription(setting)],
        ['delete', deleteDescription(setting)],
      ]),
    },
    {
      path: `${path}/bulk-delete`,
      name: `${names.plural}BulkDelete`,
      noun: `bulk deletion of ${names.many}`,
      operations: kept([['bulkDelete', gated(bulkDeleteDescription(setting), gates.bulkDelete)]]),
    },
  ];
  return paths.filter((described) => described.operations.length > 0);
}

type Named = readonly [name: CollectionOperation, description: Description];

function gated(description: Description, gate: Gate | undefined): Description {
  return gate === undefined ? description : { ...description, traits: { ...description.traits, gate } };
}

function deprecationFields({ deprecation }: Collection): readonly FieldName[] {
  if (deprecation === undefined) return [];
  const fields: FieldName[] = ['Deprecation'];
  if (deprecation.sunset !== undefined) fields.push('Sunset');
  if (deprecation.link !== undefined) fields.push('Link');
  return fields;
}
