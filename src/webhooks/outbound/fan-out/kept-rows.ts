/**
 * All rows of a table in memory, each parsed once for as long as it stands. Reading again costs a look at the table's version
 * where nothing changed, and otherwise a walk of the table, of which only rows with a new revision are parsed.
 */
import { always, byId } from '../../../model/filter.ts';
import type { Keyset, Row, Store } from '../../../store/store.ts';

export type Kept<Value> = { readonly rev: number; readonly value: Value };

export type KeptRows<Value> = {
  readonly rows: ReadonlyMap<string, Kept<Value>>;
  /** @throws StoreUnavailable; then it is as it was before. @returns whether anything is different now */
  read(): Promise<boolean>;
};

/** Some 0.5 ms on the calling thread with the embedded store. */
const rowsPerRead = 256;

export function createKeptRows<Value>(
  store: Pick<Store, 'plan' | 'version'>,
  table: string,
  parse: (row: Row) => Value,
): KeptRows<Value> {
  const plan = store.plan({ table, filter: always, sort: byId, limit: rowsPerRead });
  let rows: ReadonlyMap<string, Kept<Value>> = new Map();
  let version: string | undefined;
  return {
    get rows() {
      return rows;
    },
    async read() {
      // Before the rows: what changes meanwhile is read again the next time.
      const standing = await store.version(table);
      if (standing === version) return false;
      const found = new Map<string, Kept<Value>>();
      for (let position: Keyset = { from: 'start' }; ; ) {
        const part = await plan.rows(position);
        for (const row of part) {
          const kept = rows.get(row.id);
          found.set(row.id, kept?.rev === row.rev ? kept : { rev: row.rev, value: parse(row) });
        }
        const last = part.at(-1);
        if (last === undefined || part.length < rowsPerRead) break;
        position = { from: 'after', key: [last.id] };
        await new Promise((resolve) => setImmediate(resolve));
      }
      rows = found;
      version = standing;
      return true;
    },
  };
}
