/**
 * All rows of a table in memory, each parsed once for as long as it stands. Reading all of them again costs a walk of the table, of which only
 * rows with a new revision are parsed.
 */
import { always, byId } from '../../../model/filter.ts';
import type { Keyset, Row, Store } from '../../../store/store.ts';

export type Kept<Value> = { readonly rev: number; readonly value: Value };

export type KeptRows<Value> = {
  readonly rows: ReadonlyMap<string, Kept<Value>>;
  /** Reads all of them. @throws StoreUnavailable; then it is as it was before */
  read(): Promise<void>;
  /** Reads those alone that are known to have changed. @throws StoreUnavailable */
  readSome(ids: readonly string[]): Promise<void>;
};

/** Some 0.1 ms on the calling thread with the embedded store. Secrets of an endpoint hold up to 176 KiB of header fields. */
const rowsPerRead = 32;

export function createKeptRows<Value>(
  store: Pick<Store, 'plan' | 'read'>,
  table: string,
  parse: (row: Row) => Value,
): KeptRows<Value> {
  const plan = store.plan({ table, filter: always, sort: byId, limit: rowsPerRead });
  let rows = new Map<string, Kept<Value>>();
  return {
    get rows() {
      return rows;
    },
    async read() {
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
    },
    async readSome(ids) {
      const found = await Promise.all(ids.map(async (id) => store.read(table, id)));
      for (const [index, id] of ids.entries()) {
        const row = found[index];
        if (row === undefined) rows.delete(id);
        else if (rows.get(id)?.rev !== row.rev) rows.set(id, { rev: row.rev, value: parse(row) });
      }
    },
  };
}
