/**
 * The collections that the program brings itself, as resources: `/users`, `/keys` and `/audit`. They are served by the operations of any
 * collection; what is particular to each stands in its own folder.
 */

import type { CollectionOperation } from '../kernel/documentation.ts';
import { type ServedCollection, type Serving, serveCollection } from '../resources/collection/serving.ts';
import { auditCollection } from './account-collections.ts';
import { administratorsOnly } from './administrators-only.ts';
import type { KeyResourcesOptions } from './keys/key-route-options.ts';
import { keyResources } from './keys/key-routes.ts';
import type { UserResourcesOptions } from './users/user-route-options.ts';
import { userResources } from './users/user-routes.ts';

export type BuiltInOptions = Omit<KeyResourcesOptions & UserResourcesOptions, 'limits'>;

/** For `RoutesOptions.builtIn`. */
export function builtInCollections(
  options: BuiltInOptions,
): (serving: Serving) => readonly ServedCollection[] {
  return (serving) => {
    const { contentLimits, validationErrorsMax } = serving;
    const own = { ...options, limits: { ...contentLimits, validationErrorsMax } };
    return [userResources(own, serving), keyResources(own, serving), auditResources(serving)];
  };
}

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

/** `/audit`: what happened to accounts and keys, as a collection that administrators read and nobody writes to. */
function auditResources(serving: Serving): ServedCollection {
  return serveCollection(serving, auditCollection, {
    announced: false,
    listPermission: administratorsOnly,
    operations,
    documentation: {
      names: {
        singular: 'AuditEntry',
        plural: 'AuditEntries',
        one: 'an entry of the audit trail',
        many: 'entries of the audit trail',
      },
      idPrefix: 'aud_',
    },
  });
}
