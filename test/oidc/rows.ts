/** What a sign-in leaves in the store, read without the code that wrote it. */
import {
  auditTable,
  identitiesTable,
  passwordsTable,
  sessionsTable,
  signInsTable,
  usersTable,
} from '../../src/accounts/account-tables.ts';
import { idField } from '../../src/model/field.ts';
import { always } from '../../src/model/filter.ts';
import type { Store } from '../../src/store/store.ts';

export const accountTables = [
  usersTable,
  passwordsTable,
  identitiesTable,
  sessionsTable,
  signInsTable,
] as const;

/** Every row of a table, in the order of ids. */
export async function docsOf(store: Store, table: string): Promise<readonly Record<string, unknown>[]> {
  const plan = store.plan({
    table,
    filter: always,
    sort: [{ field: idField, direction: 'asc' }],
    limit: 1000,
  });
  const { docs } = await plan.page({ from: 'start' });
  return docs.map((doc) => JSON.parse(doc) as Record<string, unknown>);
}

export async function countsOf(store: Store): Promise<Readonly<Record<string, number>>> {
  const counts = await Promise.all(
    accountTables.map(async (table) => [table, (await docsOf(store, table)).length] as const),
  );
  return Object.fromEntries(counts);
}

/** Types of the facts in the audit trail, in the order in which they were made. */
export async function factsOf(store: Store): Promise<readonly string[]> {
  return (await docsOf(store, auditTable)).map(({ type }) => String(type));
}
