/**
 * What committing must know of each table: its counter, the rows that its references name, the rows that name its own, and
 * the statements that write it. Made once when the store opens; a unit is resolved to these before it waits.
 */
import { type Change, eventsTable, type Unit } from '../../store.ts';
import type { Layout, TableNumbers } from '../schema/layout.ts';
import { type Naming, type TableStatements, tableStatements } from './statements.ts';

export type CommitTable = {
  readonly layout: Layout;
  /** Position in the list of tables. */
  readonly place: number;
  /** Row of comity_counters. */
  readonly number: number;
  readonly searched: boolean;
  /** By the name of the field. */
  readonly references: ReadonlyMap<string, Naming>;
  /** References of any table into this one, in the order in which they are looked at: what blocks the removal of a row. */
  readonly dependants: readonly Naming[];
  readonly statements: TableStatements;
};

/** A change, and the table that it is made in. */
export type Placed = { readonly table: CommitTable; readonly change: Change };

/** A unit, and its changes in their tables. */
export type Work = {
  readonly unit: Unit;
  readonly changes: readonly Placed[];
  /** Characters of its texts: what a batch is bounded by besides the number of units. */
  readonly characters: number;
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

/** The table that units append their events to. */
export function eventsOf(tables: readonly CommitTable[]): CommitTable {
  const events = tables.find(({ layout }) => layout.table.name === eventsTable);
  if (events === undefined) throw new TypeError('the layouts lack the table of events');
  return events;
}

/**
 * @throws TypeError for a table or a reference that is not declared, and for an event that is put like a row: rows of events are
 * appended by units and removed, never put
 */
export function resolveUnit(unit: Unit, byName: ReadonlyMap<string, CommitTable>): Work {
  const changes: Placed[] = [];
  let characters = 0;
  for (const change of unit.changes) {
    const { table: name, next } = change;
    const table = byName.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    changes.push({ table, change });
    if (next === null) continue;
    if (name === eventsTable) throw new TypeError('events are appended, not put');
    for (const { field } of next.references) {
      if (!table.references.has(field)) throw new TypeError(`${field} is not a reference of ${name}`);
    }
    characters += next.doc.length + (next.search?.length ?? 0);
  }
  for (const { doc } of unit.events) characters += doc.length;
  return { unit, changes, characters };
}
