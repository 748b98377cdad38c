/** The sessions of one account in the order of their logins: an index finds them, however many others there are. */
import { idField, ownerField } from '../../model/field.ts';
import type { Plan, Store } from '../../store/store.ts';
import { sessionsTable } from '../tables.ts';

/** @param limit rows on a page */
export function sessionsOfUser(store: Store, user: string, direction: 'asc' | 'desc', limit: number): Plan {
  return store.plan({
    table: sessionsTable,
    filter: { op: 'eq', field: ownerField, value: user },
    sort: [{ field: idField, direction }],
    limit,
  });
}
