/** The parts of each table that a commit needs: counter, references, dependants and statements. Built once when the store opens. */
import type { ProvisionalRevisions } from '../../line.ts';
import { type Change, eventsTable, type Unit } from '../../store.ts';
import type { Layout, TableNumbers } from '../schema/schema-layout.ts';
import { type Naming, type TableStatements, tableStatements } from './statements.ts';

export type CommitTable = {
  readonly layout: Layout;
  /** Index in the list of tables. */
  readonly place: number;
  readonly number: number;
  readonly searched: boolean;
  readonly references: ReadonlyMap<string, Naming>;
  /** References from any table to this one, in the order of checking; they block the removal of a row. */
  readonly dependants: readonly Naming[];
  readonly statements: TableStatements;
};

export type Placed = { readonly table: CommitTable; readonly change: Change };

export type Work = {
  readonly unit: Unit;
  readonly changes: readonly Placed[];
};

export function commitTables(
  layouts: readonly Layout[],
  numbers: TableNumbers,
  schema: string,
): readonly CommitTable[] {
  const places = new Map(layouts.map((layout, place) => [layout.table.name, place]));
  const namings = layouts.flatMap(({ table }, from) =>
    table.references.map((reference): Naming => {
      const to = places.get(reference.table);
      if (to === undefined) throw new TypeError(`no table is named ${reference.table}`);
      return { field: reference.field, from, to };
    }),
  );
  return layouts.map((layout, place) => {
    const { name } = layout.table;
    const number = numbers.get(name);
    if (number === undefined) throw new TypeError(`table ${name} has no counter`);
    const dependants = namings.filter(({ to }) => to === place);
    return {
      layout,
      place,
      number,
      searched: layout.table.searched,
      references: new Map(
        namings.filter(({ from }) => from === place).map((naming) => [naming.field.name, naming]),
      ),
      dependants,
      statements: tableStatements(layout, { layouts, dependants, schema }),
    };
  });
}

export function eventsOf(tables: readonly CommitTable[]): CommitTable {
  const events = tables.find(({ layout }) => layout.table.name === eventsTable);
  if (events === undefined) throw new TypeError('the layouts lack the table of events');
  return events;
}

/**
 * Finds what a unit concerns. Provisional revisions that it expects are replaced by those that the units got; the ones that stay are of the
 * same batch, or of failed units.
 * @throws TypeError for an undeclared table or reference, and for a change that writes an event: units only append and remove events
 */
export function resolveUnit(
  unit: Unit,
  byName: ReadonlyMap<string, CommitTable>,
  revisions: Pick<ProvisionalRevisions, 'resolve'>,
): Work {
  const changes: Placed[] = [];
  for (const change of unit.changes) {
    const { table: name, expect, next } = change;
    const table = byName.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    const isProvisional = 'rev' in expect && expect.rev < 0;
    const expected = isProvisional ? { ...change, expect: { rev: revisions.resolve(expect.rev) } } : change;
    changes.push({ table, change: expected });
    if (next === null) continue;
    if (name === eventsTable) throw new TypeError('events are appended, not put');
    for (const { field } of next.references) {
      if (!table.references.has(field)) throw new TypeError(`${field} is not a reference of ${name}`);
    }
  }
  return { unit, changes };
}
