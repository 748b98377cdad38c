/**
 * Encrypts the rows of some tables: a store whose `commit` seals their documents and whose reads unseal them, transparently for its
 * callers. One row of the store, the key row, names the active key and holds a check text sealed with it. On start Comity compares it with
 * the given keys, and seals every row that is in plain text or under another key.
 * The key row decides which key seals, not the settings of a process. So processes that share a store and get a new key one after the other
 * all use the old key until `rotateSecretKey` names the new one.
 */
import { always, byId } from '../../model/filter.ts';
import { rowBatches } from '../in-batches.ts';
import { type CommitStage, type ReadStage, seenCommit, withReadStage, withStages } from '../stages.ts';
import type { Store } from '../store.ts';
import {
  KeyRing,
  readKeyFile,
  replaceKeyFile,
  type SealOptions,
  SecretKeyFailure,
  secretKeyOf,
} from './secret-key-ring.ts';

/** Each up to 176 KiB. */
const rowsPerRead = 32;
const rowsAtOnce = 64;

/**
 * Opens the store's keys, seals rows that are not sealed with the active key, and returns the sealing store.
 * @throws SecretKeyFailure if the given keys are not those of the store
 */
export async function sealStore<S extends Store>(store: S, options: SealOptions): Promise<S> {
  const ring = new KeyRing(options);
  await ring.open(store);
  const rows = await resealRows(store, ring, options);
  if (rows > 0) options.observe({ kind: 'secrets-encrypted', rows, key: ring.active });
  const sealed = sealedStore(store, ring, options);
  if (!store.shared) return sealed;
  const look = (): void => {
    ring.follow(store).catch((error: unknown) => {
      options.observe({ kind: 'store-failed', what: 'following the key of secrets', error });
    });
  };
  const forget = store.onChange(options.keyTable, look);
  return {
    ...sealed,
    close() {
      forget();
      return store.close();
    },
  };
}

function sealedStore<S extends Store>(store: S, ring: KeyRing, { tables }: SealOptions): S {
  const stage: ReadStage = {
    tables,
    document: (table, id, doc) => ring.unseal(table, id, doc),
    paged(table) {
      throw new TypeError(`${table} cannot be read by pages, because its rows are encrypted; read rows`);
    },
  };
  const seal: CommitStage = (unit, commit) =>
    unit.changes.some(({ table }) => tables.has(table))
      ? commit(ring.sealUnit(unit)).then((result) => seenCommit(result, unit, stage))
      : commit(unit);
  return withReadStage(withStages(store, seal), stage);
}

/** Seals every row that is plain or under another key, unless a concurrent change did. @returns the number of rows sealed */
async function resealRows(
  store: Store,
  ring: KeyRing,
  { tables }: Pick<SealOptions, 'tables'>,
  onSealed: (rows: number) => void = ignore,
): Promise<number> {
  let sealed = 0;
  for (const table of tables.keys()) {
    const plan = store.plan({ table, filter: always, sort: byId, limit: rowsPerRead });
    for await (const rows of rowBatches(plan, rowsPerRead)) {
      const changes = rows.map((row) => ring.resealing(table, row)).filter((change) => change !== undefined);
      for (let at = 0; at < changes.length; at += rowsAtOnce) {
        const units = changes.slice(at, at + rowsAtOnce).map((change) => ({ changes: [change], events: [] }));
        const commits = await Promise.all(units.map((unit) => store.commit(unit)));
        sealed += commits.filter(({ outcome }) => outcome === 'committed').length;
        onSealed(sealed);
      }
    }
  }
  return sealed;
}

export type Rotation = {
  readonly key: string;
  readonly rows: number;
};

export type RotateOptions = SealOptions & {
  /** Time for other processes on the store to learn of the new key. */
  readonly settleMs: number;
  readonly onSealed: (rows: number) => void;
};

/**
 * Makes the given key, or a new one in the key file, the active key, and seals every row with it. Other processes may use the store
 * meanwhile if all have both keys. After an interruption, run it again: it continues with the remaining rows.
 * @param store the unsealed store
 * @throws SecretKeyFailure
 */
export async function rotateSecretKey(store: Store, options: RotateOptions): Promise<Rotation> {
  const ring = new KeyRing(options);
  await ring.open(store);
  const inFile = options.given.length === 0;
  if (inFile) addKeyToFile(options);
  const next = inFile ? readKeyFile(options.file)[0] : options.given[0];
  if (next === undefined)
    throw new SecretKeyFailure(`the key file ${options.file} was removed; restore your copy of it`);
  const fresh = new KeyRing(options);
  const changed = await fresh.replace(store, next);
  let rows = await resealRows(store, fresh, options, options.onSealed);
  if (changed && store.shared) {
    // Until they learn of the change, other processes seal with the previous key.
    await new Promise((resolve) => setTimeout(resolve, options.settleMs));
    rows += await resealRows(store, fresh, options, (more) => options.onSealed(rows + more));
  }
  if (inFile) replaceKeyFile(options.file, [next]);
  return { key: next.id, rows };
}

/** A file with several keys is left from an interrupted rotation: its first key is new already. */
function addKeyToFile({ file, random }: RotateOptions): void {
  const keys = readKeyFile(file);
  if (keys.length === 1) replaceKeyFile(file, [secretKeyOf(random(32)), ...keys]);
}

function ignore(): void {
  // The caller does not count rows.
}
