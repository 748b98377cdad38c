/** What each operation of a collection is described with. */
import type { Collection } from '../model/collection.ts';
import type { Components } from './components.ts';
import type { ListLimits } from './list-parameters.ts';
import type { Description } from './operation.ts';
import type { ResourceExamples } from './resource-examples.ts';
import type { SchemaNames } from './schema-names.ts';

export type CollectionLimits = ListLimits & { readonly bulkDeleteIdsMax: number };

export type Described = {
  readonly collection: Collection;
  readonly names: SchemaNames;
  readonly limits: CollectionLimits;
  readonly components: Components;
  readonly examples: ResourceExamples;
  readonly shared: Pick<Description, 'tag' | 'deprecated' | 'constantFields' | 'counts'>;
};
