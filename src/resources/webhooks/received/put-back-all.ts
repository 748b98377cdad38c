/**
 * Puts back every message that a filter finds, page by page in the order of receipt, each page as one unit. A message that somebody changes
 * at the same moment is looked at again alone, and left out where the filter does not find it any more.
 */
import { type Field, idField } from '../../../model/field.ts';
import { byId, type Filter } from '../../../model/filter.ts';
import { matches, memberAt } from '../../../model/matches.ts';
import type { Received } from '../../../model/received.ts';
import { overtaken } from '../../../store/lines.ts';
import type { Change, Keyset, Row } from '../../../store/store.ts';
import { contentId, receivedContentsTable } from '../../../webhooks/inbound/tables.ts';
import { timeAfter } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import type { ReceivedResourcesOptions } from './options.ts';
import { putBackChange } from './put-back.ts';

export type PuttingBack = {
  readonly filter: Filter;
  /** Messages at most. */
  readonly limit: number;
  /** Counts what is found instead. */
  readonly dryRun: boolean;
};

export type PutBack = {
  readonly dryRun: boolean;
  /** Messages that were put back; in a dry run, that would be looked at. */
  readonly replayed: number;
  /** Messages that were found and could not be. */
  readonly skipped: number;
  /** Whether the filter finds more behind `lastId`. */
  readonly more: boolean;
  /** The last message that was looked at; null: none was. */
  readonly lastId: string | null;
};

/** Messages of one unit: some milliseconds of the writer's time. */
const unitMessagesMax = 200;

export async function putBackAll(
  options: ReceivedResourcesOptions,
  served: Served,
  { filter, limit, dryRun }: PuttingBack,
): Promise<PutBack> {
  const { store, collection } = served;
  if (dryRun) {
    const found = await store.count(collection.name, filter);
    return { dryRun, replayed: Math.min(found, limit), skipped: 0, more: found > limit, lastId: null };
  }
  const plan = store.plan({ table: collection.name, filter, sort: byId, limit: unitMessagesMax });
  let position: Keyset = { from: 'start' };
  let [replayed, looked, more] = [0, 0, true];
  let lastId: string | null = null;
  while (more && looked < limit) {
    const page = await plan.page(position);
    const wanted = page.docs.slice(0, limit - looked);
    if (wanted.length === 0) return { dryRun, replayed, skipped: looked - replayed, more: false, lastId };
    const ids = wanted.map((doc) => (JSON.parse(doc) as Received).id);
    replayed += await putBackUnit(options, served, filter, ids);
    looked += wanted.length;
    more = page.more || wanted.length < page.docs.length;
    lastId = ids.at(-1) ?? lastId;
    if (page.last !== null) position = { from: 'after', key: page.last };
  }
  return { dryRun, replayed, skipped: looked - replayed, more, lastId };
}

/** @returns how many were put back */
async function putBackUnit(
  options: ReceivedResourcesOptions,
  served: Served,
  filter: Filter,
  ids: readonly string[],
): Promise<number> {
  const { store, collection } = served;
  const rows = await Promise.all(ids.map((id) => store.read(collection.name, id)));
  const found = rows.filter((row): row is Row => row !== undefined);
  const kept = await withContent(served, found);
  const changes = kept.flatMap((row) => changeOf(options, served, filter, row));
  return store.lines.change(undefined, async () => {
    while (changes.length > 0) {
      const unit = { changes, events: [] };
      const commit = await store.commit(unit);
      if (commit.outcome === 'committed') break;
      if (commit.outcome !== 'superseded')
        throw new Error(`messages could not be put back: ${commit.outcome}`);
      const lost = overtaken(unit, commit);
      const again = commit.current === undefined ? [] : changeOf(options, served, filter, commit.current);
      changes.splice(commit.change, 1, ...again);
      if (again.length > 0) return lost;
    }
    return changes.length;
  });
}

/** None where the filter does not find the message any more, or nobody would take it. */
function changeOf(
  { senders }: ReceivedResourcesOptions,
  { clock, collection }: Served,
  filter: Filter,
  row: Row,
): readonly Change[] {
  const received = JSON.parse(row.doc) as Received;
  const value = (field: Field) => memberAt(received, field.path);
  const sender = senders.get(received.sender);
  if (sender === undefined || !matches(filter, { value, search: null })) return [];
  return [putBackChange(collection.name, row, sender, timeAfter(clock, row.updatedAt)).change];
}

/** Those whose body is there. They are counted, not read: a page of them may hold gigabytes. */
async function withContent({ store }: Served, rows: readonly Row[]): Promise<readonly Row[]> {
  const ids = rows.map(contentIdOf);
  if (rows.length === 0 || (await isThere(ids)) === new Set(ids).size) return rows;
  const counts = await Promise.all(ids.map((id) => isThere([id])));
  return rows.filter((_row, index) => counts[index] === 1);

  function isThere(values: readonly string[]) {
    return store.count(receivedContentsTable, { op: 'in', field: idField, values });
  }
}

function contentIdOf({ doc }: Row): string {
  const { sender, dedupeKey } = JSON.parse(doc) as Received;
  return contentId(sender, dedupeKey);
}
