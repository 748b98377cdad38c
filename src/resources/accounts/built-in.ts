/**
 * The collections that the program brings itself, as resources: `/users`, `/keys` and `/audit`. They are served by the operations of any
 * collection; what is particular to each stands in its own folder.
 */
import type { ServedCollection, Serving } from '../collection/serving.ts';
import { auditResources } from './audit/resources.ts';
import type { KeyResourcesOptions } from './keys/options.ts';
import { keyResources } from './keys/resources.ts';
import type { UserResourcesOptions } from './users/options.ts';
import { userResources } from './users/resources.ts';

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
