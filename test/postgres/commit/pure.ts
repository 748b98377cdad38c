/** The contract's tables as committing knows them, for tests that need no database. */
import { ProvisionalRevisions } from '../../../src/store/lines.ts';
import { commitTables, resolveUnit, type Work } from '../../../src/store/postgres/commit/commit-table.ts';
import { layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import type { Unit } from '../../../src/store/store.ts';
import { tables as declared } from '../../contract/fixture.ts';

export const numbers: ReadonlyMap<string, number> = new Map([
  ['things', 1],
  ['categories', 2],
  ['events', 3],
]);

export const tables = commitTables(layoutsOf(declared, 'comity'), numbers, 'comity');

const byName = new Map(tables.map((table) => [table.layout.table.name, table]));

export function resolved(unit: Unit): Work {
  return resolveUnit(unit, byName, new ProvisionalRevisions());
}

export function tableOf(name: string): (typeof tables)[number] {
  const table = byName.get(name);
  if (table === undefined) throw new Error(`no table ${name}`);
  return table;
}
