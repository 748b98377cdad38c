/**
 * POST to `/received/replay`: replays the messages that a filter finds (that of a JSON QUERY, §4.9), in the order of
 * receipt, at most `receivedReplayMax` per request. `more` reports that messages are left; the next request continues
 * after `lastId`, because the filter may find replayed messages again. A dry run counts. Messages whose body is gone or
 * whose sender is no longer declared are skipped and counted.
 */
import { type Static, Type } from 'typebox';
import type { Source } from '../../../config/senders.ts';
import type { Problem } from '../../../http/problem.ts';
import { type ActionLimits, actionResource } from '../../../kernel/action.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { permission } from '../../../model/access.ts';
import { type Field, idField } from '../../../model/field.ts';
import { atMoment, byId, type Filter } from '../../../model/filter.ts';
import { matches, memberAt } from '../../../model/matches.ts';
import { type Received, receivedDocument } from '../../../model/received.ts';
import { timeAfter } from '../../../resources/collection/row.ts';
import type { Served } from '../../../resources/collection/served-collection.ts';
import { compileJson } from '../../../resources/query/json-query.ts';
import type { QueryTextLimits } from '../../../resources/query/list-query.ts';
import { queryProblem } from '../../../resources/query/query-faults.ts';
import { pagesOf } from '../../../store/in-batches.ts';
import { overtaken } from '../../../store/lines.ts';
import { type Change, keptRow, type Row } from '../../../store/store.ts';
import { contentId, receivedContentsTable } from '../received-tables.ts';

type Limits = ActionLimits & {
  readonly query: QueryTextLimits;
  /** Messages that one request replays at most (`receivedReplayMax`). */
  readonly messagesMax: number;
};

/** Greatest `limit` of a request; a lower setting truncates the result, and `more` reports it. */
const limitMax = 1_000_000;

/** The filter is required, so that a replay of everything must be explicit: {}. */
const schema = Type.Object({
  filter: Type.Object(
    {},
    { additionalProperties: true, description: 'The filter of a QUERY in JSON; `{}` matches all messages.' },
  ),
  q: Type.Optional(Type.String({ description: 'As in a QUERY. The inbox has no text to search.' })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limitMax, description: 'Maximum number of messages.' }),
  ),
  dryRun: Type.Optional(Type.Boolean({ description: '`true`: only counts the matching messages.' })),
});

type Wanted = Static<typeof schema>;

const count = { type: 'integer', minimum: 0 };
const replayed = {
  schema: {
    type: 'object',
    properties: {
      dryRun: { type: 'boolean' },
      replayed: {
        ...count,
        description: 'Number of messages put back into the queue; in a dry run, of matching messages.',
      },
      skipped: {
        ...count,
        description: 'Number of messages whose body or sender no longer exists, or that changed meanwhile.',
      },
      more: { type: 'boolean', description: '`true`: other messages are left; send another request.' },
      lastId: { type: ['string', 'null'], description: 'Id of the last message examined.' },
    },
    required: ['dryRun', 'replayed', 'skipped', 'more', 'lastId'],
  },
  example: { dryRun: false, replayed: 42, skipped: 0, more: false, lastId: 'rec_01k1jx7v2mh5s8b4c9d0e6f3ga' },
};

export function replayByQueryResource(
  sources: ReadonlyMap<string, Source>,
  served: Served,
  limits: Limits,
): Resource {
  const { messagesMax } = limits;
  const { collection } = served;
  return actionResource(
    {
      path: `${served.path}/replay`,
      tag: collection,
      id: 'replayReceivedMessages',
      summary: 'Replay all messages that match a filter',
      description: `In the order of receipt, at most ${messagesMax} messages per request. If \`more\` is true, send another request with \`{"id": {"gt": lastId}}\` added to the filter.`,
      input: { name: 'Replay', schema, example: { filter: { sender: 'billing', status: 'failed' } } },
      output: replayed,
      codes: ['query_unprocessable'],
      permission: (principal) => permission(collection.access.update, 'update', principal),
      check: (wanted) => {
        const compiled = compile(served, limits.query, wanted);
        return compiled.ok ? undefined : queryProblem(compiled.faults);
      },
      handler: async ({ now }, wanted) => {
        const { limit = Number.POSITIVE_INFINITY, dryRun = false } = wanted;
        const most = dryRun ? limit : Math.min(limit, messagesMax);
        const filter = atMoment(filterOf(served, limits.query, wanted), now);
        return { content: await putBackAll(sources, served, { filter, limit: most, dryRun }) };
      },
    },
    limits,
  );
}

function compile(served: Served, limits: QueryTextLimits, { filter, q }: Wanted) {
  const query = q === undefined ? { filter } : { filter, q };
  return compileJson(query, served.listing.listable, limits);
}

function filterOf(served: Served, limits: QueryTextLimits, wanted: Wanted): Filter {
  const compiled = compile(served, limits, wanted);
  if (!compiled.ok) throw new Error('the filter of a checked replay must compile');
  return compiled.asked.filter;
}

type PuttingBack = {
  readonly filter: Filter;
  readonly limit: number;
  /** Counts the messages instead. */
  readonly dryRun: boolean;
};

/** The content of the response. */
export type PutBack = {
  readonly dryRun: boolean;
  /** Replayed messages; in a dry run, found ones. */
  readonly replayed: number;
  /** Messages that were found but could not be replayed. */
  readonly skipped: number;
  /** True if the filter finds more after `lastId`. */
  readonly more: boolean;
  /** The last message that was examined; null: none. */
  readonly lastId: string | null;
};

/** Messages in one unit: some milliseconds of the writer's time. */
const unitMessagesMax = 200;

/**
 * Replays every message that a filter finds, page by page in the order of receipt, each page as one unit. A message
 * that another writer changes meanwhile is read again, and left out if the filter no longer finds it.
 */
async function putBackAll(
  sources: ReadonlyMap<string, Source>,
  served: Served,
  { filter, limit, dryRun }: PuttingBack,
): Promise<PutBack> {
  const { store, collection } = served;
  if (dryRun) {
    const found = await store.count(collection.name, filter);
    return { dryRun, replayed: Math.min(found, limit), skipped: 0, more: found > limit, lastId: null };
  }
  const plan = store.plan({ table: collection.name, filter, sort: byId, limit: unitMessagesMax });
  let [replayed, looked, more] = [0, 0, false];
  let lastId: string | null = null;
  for await (const page of pagesOf(plan)) {
    const wanted = page.docs.slice(0, limit - looked);
    const ids = wanted.map((doc) => (JSON.parse(doc) as Received).id);
    if (ids.length > 0) replayed += await putBackUnit(sources, served, filter, ids);
    looked += wanted.length;
    more = page.more || wanted.length < page.docs.length;
    lastId = ids.at(-1) ?? lastId;
    if (looked >= limit) break;
  }
  return { dryRun, replayed, skipped: looked - replayed, more, lastId };
}

async function putBackUnit(
  sources: ReadonlyMap<string, Source>,
  served: Served,
  filter: Filter,
  ids: readonly string[],
): Promise<number> {
  const { store, collection } = served;
  const rows = await Promise.all(ids.map((id) => store.read(collection.name, id)));
  const found = rows.filter((row): row is Row => row !== undefined);
  const kept = await withContent(served, found);
  const changes = kept.flatMap((row) => changeOf(sources, served, filter, row));
  return store.lines.change(undefined, async () => {
    while (changes.length > 0) {
      const unit = { changes, events: [] };
      const commit = await store.commit(unit);
      if (commit.outcome === 'committed') break;
      if (commit.outcome !== 'superseded')
        throw new Error(`messages could not be put back: ${commit.outcome}`);
      const lost = overtaken(unit, commit);
      const again = commit.current === undefined ? [] : changeOf(sources, served, filter, commit.current);
      changes.splice(commit.change, 1, ...again);
      if (again.length > 0) return lost;
    }
    return changes.length;
  });
}

/** Empty if the filter no longer finds the message, or its sender is not declared. */
function changeOf(
  sources: ReadonlyMap<string, Source>,
  { clock, collection }: Served,
  filter: Filter,
  row: Row,
): readonly Change[] {
  const received = JSON.parse(row.doc) as Received;
  const value = (field: Field) => memberAt(received, field.path);
  const sender = sources.get(received.sender);
  if (sender === undefined || !matches(filter, { value, search: null })) return [];
  return [putBackChange(collection.name, row, sender, timeAfter(clock, row.updatedAt)).change];
}

/** Rows whose body is kept. Bodies are counted, not read: a page of them may hold gigabytes. */
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

/** @param at milliseconds since the epoch, not before the row's last change */
export function putBackChange(
  table: string,
  row: Row,
  { handOn }: Pick<Source, 'handOn'>,
  at: number,
): { readonly change: Change; readonly received: Received } {
  const now = new Date(at).toISOString();
  const received: Received = {
    ...(JSON.parse(row.doc) as Received),
    status: 'pending',
    scheduledAttempts: 0,
    dueAt: handOn.kind === 'inbox' ? null : now,
    lastError: null,
    updatedAt: now,
  };
  const next = keptRow(receivedDocument(received), row.owner, row.createdAt, at);
  return { change: { table, id: row.id, expect: { rev: row.rev }, next }, received };
}

/** The configuration no longer says how to hand on its messages. */
export const senderGone: Problem = { code: 'sender_unavailable' };

export const contentGone: Problem = { code: 'content_unavailable' };
