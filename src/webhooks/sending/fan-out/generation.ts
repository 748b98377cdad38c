/**
 * The generation of the endpoints: the greatest number among the rows of its table, which never change. Every change of
 * what is sent where adds the next number in its own unit; a unit that has matched endpoints expects the next number to
 * be absent.
 *
 * A number must not be removed while a process may be behind it: one that knows generation 5 would miss 6 and 7 if 7
 * had removed 6. So numbers stay for a day, and a process whose last read is older than an hour reads before it relies
 * on it (directory.ts).
 *
 * The row of a number names the endpoints and owners that its unit changed, so that a directory reads only these, and a
 * change costs the same however many endpoints exist. If a row names nothing, or one is missing, everything is read.
 *
 * A failover that loses the last numbers gives them again, to other changes. So a generation is a number with the revision of its row, which
 * never comes again: units on a shared store expect that row too, and a directory that knew another row reads everything.
 */
import { idField } from '../../../model/field.ts';
import { always, byId } from '../../../model/filter.ts';
import { type Change, keptRow, type Plan, type Row, type Store } from '../../../store/store.ts';
import { endpointGenerationTable, endpointSecretsTable, endpointsCollection } from '../sending-tables.ts';

/** Changed endpoints and owners, by id. */
export type Named = { readonly endpoints: readonly string[]; readonly owners: readonly string[] };

export type Generation = {
  readonly number: number;
  /** Revision of the row of the number. */
  readonly rev: number;
  /** Changes since the generation passed to `read`; `all`: unknown. */
  readonly changed: Named | 'all';
  /** The changes by which a unit expects that this generation has not ended, and was not lost. */
  readonly guards: readonly Change[];
  /**
   * Returns the changes that end this generation.
   * @param at milliseconds since the epoch
   * @param unit its other changes; undefined: they are not named
   */
  next(at: number, unit?: readonly Change[]): readonly Change[];
};

type KnownGeneration = Pick<Generation, 'number' | 'rev'>;

export type GenerationReader = {
  /** Reads the current generation, and creates the first. @param since the known one @throws StoreUnavailable */
  read(since: KnownGeneration | undefined): Promise<Generation>;
};

const table = endpointGenerationTable;
/** Numbers compare as texts. */
const digits = 15;
/** A day: no process relies on an older read. */
const keptMs = 86_400_000;
/** Generations since the last read, above which everything is read. */
const passedMax = 256;
/** Endpoints and owners that one row may name. */
const namedMax = 1000;
/** Old numbers that a change removes: more than the one it adds, so that they become fewer. */
const removedAtOnce = 2;

/** @param ownerTables tables whose row ids are those of owners */
export function createGenerationReader(
  store: Store,
  clock: () => number,
  ownerTables: readonly string[],
): GenerationReader {
  // With the known one before them.
  const passed = store.plan({ table, filter: always, sort: byId, limit: passedMax + 1 });
  const newest = store.plan({
    table,
    filter: always,
    sort: [{ field: idField, direction: 'desc' }],
    limit: 1,
  });
  // One more than may be removed: the newest never is.
  const oldest = store.plan({ table, filter: always, sort: byId, limit: removedAtOnce + 1 });

  return {
    async read(since) {
      for (;;) {
        const [[last], old] = await Promise.all([
          newest.rows({ from: 'start' }),
          oldest.rows({ from: 'start' }),
        ]);
        if (last !== undefined) {
          const known = { number: Number(last.id), rev: last.rev };
          const changed = await changedBetween(passed, since, known);
          return { ...known, changed, ...endingOf(store, known, old, ownerTables) };
        }
        // Superseded: another process created it.
        await store.commit({ changes: [numberChange(1, clock(), undefined)], events: [] });
      }
    },
  };
}

function endingOf(
  { shared }: Pick<Store, 'shared'>,
  { number, rev }: KnownGeneration,
  old: readonly Row[],
  ownerTables: readonly string[],
): Pick<Generation, 'guards' | 'next'> {
  const ended = (at: number): readonly Row[] =>
    old.filter((row) => row.id !== idOf(number) && row.createdAt < at - keptMs);
  // Under a store of this process alone nothing is lost while it is open.
  const stands: readonly Change[] = shared
    ? [{ table, id: idOf(number), expect: { rev }, next: null, stays: true }]
    : [];
  return {
    guards: [{ table, id: idOf(number + 1), expect: { absent: true }, next: null }, ...stands],
    next: (at, unit) => [
      numberChange(number + 1, at, unit === undefined ? undefined : namesOf(unit, ownerTables)),
      ...stands,
      ...ended(at).map(removal),
    ],
  };
}

async function changedBetween(
  passed: Plan,
  since: KnownGeneration | undefined,
  { number, rev }: KnownGeneration,
): Promise<Named | 'all'> {
  if (since === undefined || number < since.number || number - since.number > passedMax) return 'all';
  if (since.number === number) return since.rev === rev ? { endpoints: [], owners: [] } : 'all';
  const [known, ...rows] = await passed.rows({ from: 'after', key: [idOf(since.number - 1)] });
  if (known?.id !== idOf(since.number) || known.rev !== since.rev) return 'all';
  const names = rows
    .filter(({ id }) => id <= idOf(number))
    .map(({ doc }) => JSON.parse(doc) as Partial<Named>);
  if (names.length < number - since.number) return 'all';
  const endpoints = new Set<string>();
  const owners = new Set<string>();
  for (const named of names) {
    if (named.endpoints === undefined || named.owners === undefined) return 'all';
    for (const id of named.endpoints) endpoints.add(id);
    for (const id of named.owners) owners.add(id);
  }
  return { endpoints: [...endpoints], owners: [...owners] };
}

/** Undefined if they are too many for one row. */
function namesOf(unit: readonly Change[], ownerTables: readonly string[]): Named | undefined {
  const endpoints = new Set<string>();
  const owners = new Set<string>();
  for (const change of unit) {
    const isEndpoint = change.table === endpointsCollection.name || change.table === endpointSecretsTable;
    if (isEndpoint) endpoints.add(change.id);
    else if (ownerTables.includes(change.table)) owners.add(change.id);
  }
  if (endpoints.size + owners.size > namedMax) return undefined;
  return { endpoints: [...endpoints], owners: [...owners] };
}

function idOf(number: number): string {
  return String(number).padStart(digits, '0');
}

function numberChange(number: number, at: number, named: Named | undefined): Change {
  const doc = JSON.stringify(named ?? {});
  return { table, id: idOf(number), expect: { absent: true }, next: keptRow(doc, null, at, at) };
}

function removal({ id, rev }: Row): Change {
  return { table, id, expect: { rev }, next: null };
}
