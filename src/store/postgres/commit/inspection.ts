/**
 * The questions whose answers judging needs, each for the whole batch: the rows that units change, the undeleted rows
 * that they name, who holds the unique values that they want, how many rows name what they remove, and which events are known.
 * Asked while the lock is held, so that the answers stay true until the end of the transaction.
 */
import type { Scalar } from '../../../model/field.ts';
import { isLeaving } from '../../change-kind.ts';
import { rowOf } from '../../row-cells.ts';
import type { Row } from '../../store.ts';
import type { Cell, Rows } from '../connection/connection.ts';
import { type CommitTable, eventsOf, type Work } from './commit-table.ts';
import { fieldValues, Ledger, rowOfNext } from './ledger.ts';
import { isLookedUp } from './statements.ts';

export type Question = {
  readonly sql: string;
  readonly values: readonly (readonly Cell[])[];
  /** Enters the answer in the ledger. */
  readonly take: (rows: Rows) => void;
};

export type Inspection = { readonly ledger: Ledger; readonly questions: readonly Question[] };

export function inspect(works: readonly Work[], tables: readonly CommitTable[]): Inspection {
  const asked = tables.map((table) => new Asked(table));
  const events = eventsOf(tables);
  for (const { unit, changes } of works) {
    for (const { table, change } of changes) {
      const own = asked[table.place];
      own?.rows.add(change.id);
      if (isLeaving(change)) own?.leaving.add(change.id);
      if (change.next === null || change.next.deletedAt !== null) continue;
      own?.want(rowOfNext(change.id, 0, change.next));
      for (const { field, id } of change.next.references) {
        asked[table.references.get(field)?.to ?? -1]?.named.add(id);
      }
    }
    for (const { id } of unit.events) asked[events.place]?.rows.add(id);
  }
  const ledger = new Ledger(tables);
  return { ledger, questions: asked.flatMap((each) => each.questions(ledger)) };
}

/** What a batch asks of one table. */
class Asked {
  readonly #table: CommitTable;
  readonly rows = new Set<string>();
  readonly named = new Set<string>();
  readonly leaving = new Set<string>();
  /** Wanted values of each unique field. */
  readonly #wanted: readonly Set<Scalar>[];

  constructor(table: CommitTable) {
    this.#table = table;
    this.#wanted = table.layout.table.unique.map(() => new Set());
  }

  /** An undeleted row wants the values that it has in unique fields. */
  want(row: Row): void {
    const { unique } = this.#table.layout.table;
    if (unique.length === 0) return;
    for (const [at, value] of fieldValues(unique, row).entries()) {
      if (value !== null) this.#wanted[at]?.add(value);
    }
  }

  questions(ledger: Ledger): readonly Question[] {
    const table = this.#table;
    const { statements, layout } = table;
    const questions: Question[] = [];
    const ask = (sql: string, values: Iterable<Cell>, take: (row: readonly Cell[]) => void): void => {
      const list = [...values];
      if (list.length > 0) questions.push({ sql, values: [list], take: (rows) => rows.forEach(take) });
    };
    ask(statements.current, this.rows, (cells) => ledger.addRow(table, rowOf(cells)));
    const others = [...this.named].filter((id) => !this.rows.has(id));
    ask(statements.live, others, ([id]) => ledger.addLive(table, String(id)));
    for (const [at, field] of layout.table.unique.entries()) {
      if (!isLookedUp(field)) continue;
      ask(statements.holders[at] ?? '', this.#wanted[at] ?? [], ([id, value]) =>
        ledger.addHolder(table, at, value ?? null, String(id)),
      );
    }
    for (const [at, sql] of statements.namings.entries()) {
      ask(sql, this.leaving, ([id, count]) => ledger.addNamings(table, at, String(id), Number(count)));
    }
    return questions;
  }
}
