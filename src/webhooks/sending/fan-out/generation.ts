/**
 * The generation of the endpoints: the revision of one row. Every change of what is sent where writes the row in its own unit; a unit that
 * has matched endpoints expects the row as it was when they were read. A revision never comes again, so a process that is behind, or that
 * read a change which a failover lost, is refused.
 *
 * The row names the endpoints and owners that the last units changed, so that a directory reads only these, and a change costs the same
 * however many endpoints exist. A directory that is further behind reads everything.
 */
import { always, byId } from '../../../model/filter.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import { type CommitStage, type CommitUnit, commitAdding } from '../../../store/stages.ts';
import {
  type Change,
  type ChangeLines,
  type Commit,
  keptRow,
  type Row,
  type Store,
  type Unit,
} from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import {
  endpointSecretsTable,
  endpointsCollection,
  generationLine,
  generationRow,
} from '../sending-tables.ts';

/** Changed endpoints and owners, by id. */
export type Named = { readonly endpoints: readonly string[]; readonly owners: readonly string[] };

/** The document of the row: the changes of the last units, each with the generation that it ended. */
type Ended = Named & { readonly rev: number };
type GenerationDocument = { readonly ended: readonly Ended[] };

export type Generation = {
  /** Revision of the row. */
  readonly rev: number;
  /** Changes since the generation passed to `readGeneration`; `all`: unknown. */
  readonly changed: Named | 'all';
  /** Returns the change that ends this generation. @param unit the other changes of its unit; undefined: not named */
  end(at: number, unit?: readonly Change[]): Change;
};

/**
 * Units that the row names; a directory that is further behind reads everything. Each change of an endpoint reads and
 * writes the document: 3 KB, about 30 µs.
 */
const endedMax = 40;
/** Endpoints and owners that the row names. */
const namedMax = 1000;
const rowsPerRead = 256;

/**
 * Reads the current generation, and creates the first.
 * @param since revision of the known one
 * @param ownerTables tables whose row ids are those of owners
 * @throws StoreUnavailable
 */
export async function readGeneration(
  store: Pick<Store, 'read' | 'commit' | 'plan'>,
  clock: () => number,
  ownerTables: readonly string[],
  since: number | undefined,
): Promise<Generation> {
  for (;;) {
    const row = await store.read(generationRow.table, generationRow.id);
    if (row !== undefined) {
      const { ended } = JSON.parse(row.doc) as GenerationDocument;
      return {
        rev: row.rev,
        changed: changedSince(since, row.rev, ended),
        end: (at, unit) =>
          ending(row, unit === undefined ? [] : named(ended, row.rev, unit, ownerTables), at),
      };
    }
    await removeNumbers(store);
    const at = clock();
    const next = keptRow(documentOf([]), null, at, at);
    // Superseded: another process created it.
    await store.commit({ changes: [{ ...generationRow, expect: { absent: true }, next }], events: [] });
  }
}

/** Returns the change by which a unit expects that the generation has not ended. */
export function guardOf({ rev }: Pick<Generation, 'rev'>): Change {
  return { ...generationRow, expect: { rev }, next: null, stays: true };
}

/** Earlier versions numbered the generations, and kept a row for each. */
async function removeNumbers(store: Pick<Store, 'commit' | 'plan'>): Promise<void> {
  const plan = store.plan({ table: generationRow.table, filter: always, sort: byId, limit: rowsPerRead });
  for await (const rows of rowBatches(plan, rowsPerRead)) {
    const numbers = rows.filter(({ id }) => id !== generationRow.id);
    await Promise.all(
      numbers.map(({ id, rev }) => {
        const change = { table: generationRow.table, id, expect: { rev }, next: null };
        return store.commit({ changes: [change], events: [] });
      }),
    );
  }
}

function changedSince(since: number | undefined, rev: number, ended: readonly Ended[]): Named | 'all' {
  if (since === rev) return { endpoints: [], owners: [] };
  const from = ended.findIndex((each) => each.rev === since);
  if (from < 0) return 'all';
  const passed = ended.slice(from);
  const endpoints = new Set(passed.flatMap((each) => each.endpoints));
  const owners = new Set(passed.flatMap((each) => each.owners));
  return { endpoints: [...endpoints], owners: [...owners] };
}

function ending({ rev, createdAt, updatedAt }: Row, ended: readonly Ended[], at: number): Change {
  const next = keptRow(documentOf(ended), null, createdAt, Math.max(at, updatedAt));
  return { ...generationRow, expect: { rev }, next };
}

function documentOf(ended: readonly Ended[]): string {
  return JSON.stringify({ ended } satisfies GenerationDocument);
}

/** Adds the names of a unit, and leaves out the oldest ones that are too many. */
function named(
  ended: readonly Ended[],
  rev: number,
  unit: readonly Change[],
  ownerTables: readonly string[],
): readonly Ended[] {
  const endpoints = new Set<string>();
  const owners = new Set<string>();
  for (const { table, id } of unit) {
    if (isOfEndpoints(table)) endpoints.add(id);
    else if (ownerTables.includes(table)) owners.add(id);
  }
  const all = [...ended, { rev, endpoints: [...endpoints], owners: [...owners] }].slice(-endedMax);
  let names = 0;
  const excess = all.findLastIndex((each) => {
    names += each.endpoints.length + each.owners.length;
    return names > namedMax;
  });
  return all.slice(excess + 1);
}

function isOfEndpoints(table: string): boolean {
  return table === endpointsCollection.name || table === endpointSecretsTable;
}

/*
 * The stage of the commit that ends the generation: in every unit that changes endpoints or their secrets, and in units
 * that say so because they change the rights of owners (`generationChanges`). The change is that which is right at the
 * commit, so a race with another endpoint causes no conflict and no failed If-Match.
 *
 * The units of one process wait for each other in one line, because one of two concurrent ones would be superseded.
 * When the commit resolves, this process sends accordingly; other processes do as soon as the store notifies them.
 */

export function generationStage(
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  lines: Pick<ChangeLines, 'hold'>,
): CommitStage {
  return (unit, commit) => {
    if (!unit.changes.some(({ table }) => isGeneration(table) || isOfEndpoints(table))) return commit(unit);
    return lines.hold(generationLine, false, (checkTime) => commitNext(unit, commit, directory, checkTime));
  };
}

async function commitNext(
  { changes, events }: Unit,
  commit: CommitUnit,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  checkTime: () => void,
): Promise<Commit> {
  const own = [...changes.entries()].filter(([, { table }]) => !isGeneration(table));
  const unit = { changes: own.map(([, change]) => change), events };
  for (;;) {
    checkTime();
    const result = await commitAdding(unit, directory.generationChanges(unit.changes), commit);
    if (result.outcome === 'added-refused') {
      await directory.refresh();
      continue;
    }
    if (result.outcome === 'committed') {
      // A failure is ignored: the caller must get its response, since there is no other way to learn a new secret. The directory repeats it.
      await directory.refresh().catch(() => undefined);
      return result;
    }
    const { change } = result;
    return { ...result, change: own[change]?.[0] ?? change - own.length + changes.length };
  }
}

function isGeneration(table: string): boolean {
  return table === generationRow.table;
}
