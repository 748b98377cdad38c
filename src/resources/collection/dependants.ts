/**
 * Counts the resources that prevent a deletion, as far as the principal may know (§4.7.3, §5.1): only those that it may
 * see, and whose referring field it may see. All of them prevent the deletion.
 */
import { visibleTo } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { type Field, ownerField } from '../../model/field.ts';
import { allOf, type Filter } from '../../model/filter.ts';
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise, Store } from '../../store/store.ts';
import type { Dependence } from './served.ts';
import { fieldNamed } from './view.ts';

export function countDependants(
  store: Store,
  collections: ReadonlyMap<string, Collection>,
  { table, field: name, id, count }: Dependence,
  principal: Principal,
): MaybePromise<number> {
  const collection = collections.get(table);
  // Internal tables are not revealed to clients.
  if (collection === undefined) return 0;
  const field = fieldNamed(collection, name);
  const visible = allOf([collection.access.read, collection.hidden.get(field.name)].map(filterOf));
  if (visible.op === 'always') return count;
  const names: Filter = { op: 'eq', field, value: id };
  return visible.op === 'never' ? 0 : store.count(table, allOf([visible, names]));

  function filterOf(rule: Collection['access']['read'] | undefined): Filter {
    const member = (of: string): Field => fieldNamed(collection as Collection, of);
    return rule === undefined ? { op: 'always' } : visibleTo(rule, principal, ownerField, member);
  }
}
