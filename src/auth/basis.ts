/**
 * Whether the rows that a verdict rests on are still what they were. Each table has a count of its changes: while the counts stand
 * still nothing needs to be read, and after a change each credential looks at its own rows once.
 */
import type { MaybePromise, Row, Store } from '../store/store.ts';
import type { Basis } from './verdict.ts';

export type WatchedTable = {
  readonly name: string;
  /** How often it has changed since this process looks, as far as that is known here. */
  changes: number;
  /** The last version that was read. */
  version: string | undefined;
};

export type WatchedTables = {
  /** Watches the table from now on, once for all who ask. */
  of(table: string): WatchedTable;
  close(): void;
};

/** @param onChange called after each change of a watched table */
export function watchTables(store: Pick<Store, 'onChange'>, onChange: () => void): WatchedTables {
  const tables = new Map<string, WatchedTable>();
  const stops: (() => void)[] = [];
  return {
    of(table) {
      const known = tables.get(table);
      if (known !== undefined) return known;
      const watched: WatchedTable = { name: table, changes: 0, version: undefined };
      tables.set(table, watched);
      stops.push(
        store.onChange(table, () => {
          watched.changes += 1;
          onChange();
        }),
      );
      return watched;
    },
    close() {
      for (const stop of stops) stop();
    },
  };
}

/** Grows with each change of one of them, and stands still otherwise. */
export function changesOf(tables: readonly WatchedTable[]): number {
  let sum = 0;
  for (const { changes } of tables) sum += changes;
  return sum;
}

/** Reads the rows, all in this turn of the event loop. A promise only where the store gives one. @throws StoreUnavailable */
export function stillHolds(store: Pick<Store, 'read'>, basis: readonly Basis[]): MaybePromise<boolean> {
  const waiting: Promise<boolean>[] = [];
  for (const each of basis) {
    const row = store.read(each.table, each.id);
    if (row instanceof Promise) waiting.push(row.then((found) => isSame(found, each)));
    else if (!isSame(row, each)) return false;
  }
  return waiting.length === 0 ? true : Promise.all(waiting).then((same) => !same.includes(false));
}

function isSame(row: Row | undefined, basis: Basis): boolean {
  return row !== undefined && row.rev === basis.rev;
}

/** Versions of tables, in the order of the tables; undefined where none is known. */
export type Versions = readonly (string | undefined)[];

/** The last that were read, be they of now or of before. */
export function knownVersions(tables: readonly WatchedTable[]): Versions {
  return tables.map(({ version }) => version);
}

/** Reads the versions, all in this turn of the event loop. @throws StoreUnavailable */
export async function readVersions(
  store: Pick<Store, 'version'>,
  tables: readonly WatchedTable[],
): Promise<Versions> {
  const versions = await Promise.all(tables.map(({ name }) => store.version(name)));
  for (const [index, table] of tables.entries()) table.version = versions[index];
  return versions;
}

/** Whether all are known, and no table has changed from one to the other. */
export function areSame(versions: Versions, heldAt: Versions): boolean {
  return versions.every((version, index) => version !== undefined && version === heldAt[index]);
}
