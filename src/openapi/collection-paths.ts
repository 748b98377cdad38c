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
import type { PathDescription } from './path-item.ts';
import { resourceExamples } from './resource-examples.ts';
import { addResourceSchemas } from './resource-schemas.ts';
import type { FieldName } from './response-fields.ts';
import type { SchemaNames } from './schema-names.ts';

export function collectionPaths(
  collection: Collection,
  names: SchemaNames,
  base: string,
  limits: CollectionLimits,
  components: Components,
): readonly PathDescription[] {
  addResourceSchemas(collection, names, components);
  const setting: Described = {
    collection,
    names,
    limits,
    components,
    examples: resourceExamples(collection, names, components),
    shared: {
      tag: collection.name,
      deprecated: collection.deprecation !== undefined,
      constantFields: deprecationFields(collection),
      counts: collection.dependants.map(({ countAs }) => countAs),
    },
  };
  const path = `${base}/${collection.name}`;
  return [
    {
      path,
      name: names.plural,
      noun: `the ${names.many}`,
      operations: [listDescription(setting), createDescription(setting), queryDescription(setting)],
    },
    {
      path: `${path}/{id}`,
      name: names.singular,
      noun: names.one,
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      operations: [
        readDescription(setting),
        replaceDescription(setting),
        patchDescription(setting),
        deleteDescription(setting),
      ],
    },
    {
      path: `${path}/bulk-delete`,
      name: `${names.plural}BulkDelete`,
      noun: `bulk deletion of ${names.many}`,
      operations: [bulkDeleteDescription(setting)],
    },
  ];
}

function deprecationFields({ deprecation }: Collection): readonly FieldName[] {
  if (deprecation === undefined) return [];
  const fields: FieldName[] = ['Deprecation'];
  if (deprecation.sunset !== undefined) fields.push('Sunset');
  if (deprecation.link !== undefined) fields.push('Link');
  return fields;
}
