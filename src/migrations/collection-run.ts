/**
 * One run: the pending migrations of a collection in one pass over its documents, in batches. The position is a row that commits with each
 * batch, so that a run which ended at any moment goes on where it was, and of two processes one makes each batch.
 *
 *   pass    every document last written before the run goes through the migrations; one written since does if it does not fit
 *   final   all documents are read once more, and those that do not fit go through: an old process may have written behind the position
 *
 * Both expect each row as it was read. A document that changed meanwhile is migrated again from its new state.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { DeclaredMigration } from '../config/migrations.ts';
import type { Collection } from '../model/collection.ts';
import { idField, type Scalar } from '../model/field.ts';
import { allOf, byId, equals } from '../model/filter.ts';
import { compareText, matches, memberAt } from '../model/matches.ts';
import { givenUpText, startsMax } from '../model/starts-max.ts';
import { eventOf } from '../resources/collection/row.ts';
import { listOfNames } from '../store/declared-indexes.ts';
import { documentKey } from '../store/page-of-rows.ts';
import {
  type Change,
  type Commit,
  type EventEntry,
  type ListQuery,
  type Row,
  type Store,
  StoreUnavailable,
} from '../store/store.ts';
import {
  type Candidate,
  DocumentsUnfit,
  type DocumentWork,
  type Migrated,
  MigrationStopped,
} from './document-work.ts';
import {
  type Known,
  type MigrationServices,
  type RunRow,
  readMigrationRows,
  readRun,
  rowChange,
} from './migration-state.ts';

export type RunProgress = {
  readonly collection: string;
  readonly documents: number;
  readonly changed: number;
};

type Running = MigrationServices & {
  readonly work: DocumentWork;
  /** True if no other process and no request writes meanwhile: no final pass is needed. */
  readonly isAlone: boolean;
  readonly onProgress: (progress: RunProgress) => void;
  readonly onWaiting: (collection: string) => void;
  readonly signal: AbortSignal;
};

type RunTask = {
  readonly collection: Collection;
  readonly migrations: readonly DeclaredMigration[];
  /** No further migration of the collection is pending. */
  readonly isLast: boolean;
};

/** More only if old processes write without end. */
const finalPassesMax = 5;
const silentMs = 15_000;
const lookMs = 200;

type Ended = Known<RunRow>;

/**
 * @returns the row of the run when all documents are done; undefined if another process ended the run
 * @throws MigrationStopped, DocumentsUnfit, StoreUnavailable
 */
export async function runCollection(running: Running, task: RunTask): Promise<Ended | undefined> {
  try {
    return await runPasses(running, task);
  } catch (error) {
    await giveBack(running, task).catch(ignore);
    throw error;
  }
}

/** Runs that every start has ended the process of are tried again. */
export async function forgetStarts(running: Pick<Running, 'store' | 'clock'>): Promise<void> {
  const { runs } = await readMigrationRows(running.store);
  for (const known of runs.values()) {
    if ((known.row.starts ?? 0) >= startsMax) await moveTo(running, known, { ...known.row, starts: 0 });
  }
}

/** A run that ends in order is no start that ended its process. */
async function giveBack(running: Running, { collection }: RunTask): Promise<void> {
  const known = await readRun(running.store, collection.name);
  if (known === undefined || known.row.runner !== running.store.processId) return;
  const { starts = 0 } = known.row;
  if (starts > 0) await moveTo(running, known, { ...known.row, starts: starts - 1 });
}

function ignore(): void {
  // A start that stays counts one too many.
}

async function runPasses(running: Running, task: RunTask): Promise<Ended | undefined> {
  let known = await beginRun(running, task);
  for (let done = 0; known !== undefined; ) {
    const ended = await walk(running, task, known);
    if (ended === undefined) {
      known = await awaitRun(running, task);
      continue;
    }
    const { row } = ended;
    const changedInPass = row.changed - known.row.changed;
    const isDone = row.phase === 'final' && (changedInPass === 0 || done >= finalPassesMax);
    if (isDone || running.isAlone) return ended;
    done += 1;
    known =
      (await moveTo(running, ended, { ...row, phase: 'final', after: null })) ??
      (await awaitRun(running, task));
  }
  return undefined;
}

async function beginRun(running: Running, task: RunTask): Promise<Ended | undefined> {
  const { store, clock } = running;
  if ((await readRun(store, task.collection.name)) === undefined) {
    const row: RunRow = {
      ...{ kind: 'run', collection: task.collection.name, phase: 'pass' },
      migrations: task.migrations.map(({ id }) => id),
      ...{ began: null, after: null, documents: 0, changed: 0 },
      ...{ runner: store.processId, startedAt: new Date(clock()).toISOString() },
    };
    await store.commit({ changes: [rowChange(row, undefined, clock())], events: [] });
  }
  return awaitRun(running, task);
}

/** Waits until the run is this process's own: another runs it until it ends, or does nothing for 15 seconds. */
async function awaitRun(running: Running, { collection }: RunTask): Promise<Ended | undefined> {
  const { store, signal } = running;
  let since = performance.now();
  let seen = -1;
  for (let isTold = false; ; ) {
    signal.throwIfAborted();
    const known = await readRun(store, collection.name);
    if (known === undefined) return undefined;
    const { row, rev } = known;
    if (row.runner === store.processId && row.began !== null) return known;
    if (rev !== seen) since = performance.now();
    seen = rev;
    const isFree =
      row.runner === store.processId ||
      performance.now() - since > silentMs ||
      (await store.hasEnded(row.runner));
    if (isFree) {
      const { starts = 0 } = row;
      if (starts >= startsMax) throw new DocumentsUnfit([givenUpSentence(row)]);
      const taken = { ...row, runner: store.processId, began: row.began ?? rev, starts: starts + 1 };
      const moved = await moveTo(running, known, taken);
      if (moved !== undefined) return moved;
      continue;
    }
    if (!isTold) running.onWaiting(collection.name);
    isTold = true;
    await pause(lookMs, undefined, { signal });
  }
}

function givenUpSentence({ collection, migrations, after }: RunRow): string {
  const what = migrations.length === 0 ? 'filled in what a declaration adds' : `ran ${migrations.join(', ')}`;
  const where = after === null ? 'at the first documents' : `behind the document ${after}`;
  return `${collection}: ${givenUpText(what)} ${where}; find in its log what ended it, or give it more memory or smaller batches (COMITY_MIGRATION_BATCH_DOCUMENTS_MAX), and run "comity migrate", which tries again`;
}

async function moveTo(
  { store, clock }: Pick<Running, 'store' | 'clock'>,
  known: Ended,
  row: RunRow,
): Promise<Ended | undefined> {
  const change = rowChange(row, known, clock());
  const commit = await store.commit({ changes: [change], events: [] });
  return commit.outcome === 'committed' ? { ...known, row, rev: commit.rev } : undefined;
}

/** Walks the documents of one phase to their end. @returns undefined if another process goes on in its place */
async function walk(running: Running, task: RunTask, from: Ended): Promise<Ended | undefined> {
  const { store, settings, signal } = running;
  const { name } = task.collection;
  const query: ListQuery = {
    ...{ table: name, filter: { op: 'always' }, sort: byId },
    ...{ limit: settings.migrationBatchDocumentsMax, bytesMax: settings.migrationBatchBytesMax },
  };
  const plan = store.plan(query);
  const until = await lastId(store, name);
  let known = from;
  for (;;) {
    signal.throwIfAborted();
    const { after } = known.row;
    const page = await plan.page(after === null ? { from: 'start' } : { from: 'after', key: [after] });
    const ids = page.docs.map((doc) => String(documentKey(byId, doc)[0]));
    if (ids.length === 0) return known;
    const next = await moveBatch(running, task, known, ids);
    if (next === undefined) return undefined;
    known = next;
    const { documents, changed } = known.row;
    running.onProgress({ collection: name, documents, changed });
    // What is created meanwhile is left to the next phase: an old process may create faster than this one migrates.
    if (!page.more || until === undefined || compareText(ids.at(-1) ?? '', until) >= 0) return known;
  }
}

async function lastId(store: Store, table: string): Promise<string | undefined> {
  const backwards: ListQuery['sort'] = [{ field: idField, direction: 'desc' }];
  const plan = store.plan({ table, filter: { op: 'always' }, sort: backwards, limit: 1 });
  const [doc] = (await plan.page({ from: 'start' })).docs;
  return doc === undefined ? undefined : String(documentKey(byId, doc)[0]);
}

const attemptsInOneMax = 3;

/** Commits the documents and the position together; in smaller units if clients keep changing some of them. */
async function moveBatch(
  running: Running,
  task: RunTask,
  from: Ended,
  ids: readonly string[],
): Promise<Ended | undefined> {
  let known = from;
  let size = ids.length;
  let attempts = 0;
  for (let start = 0; start < ids.length; ) {
    running.signal.throwIfAborted();
    const some = ids.slice(start, start + size);
    const outcome = await attemptBatch(running, task, known, some);
    if (outcome === 'lost') return undefined;
    if (outcome === 'overtaken') {
      attempts += 1;
      if (attempts % attemptsInOneMax === 0) size = Math.max(1, Math.floor(size / 2));
      continue;
    }
    known = outcome;
    start += some.length;
  }
  return known;
}

async function attemptBatch(
  running: Running,
  task: RunTask,
  known: Ended,
  ids: readonly string[],
): Promise<Ended | 'overtaken' | 'lost'> {
  const { store, work, clock } = running;
  const { collection, migrations, isLast } = task;
  const { row } = known;
  const read = await Promise.all(ids.map((id) => store.read(collection.name, id)));
  const rows = read.filter((each) => each !== undefined && each.deletedAt === null) as readonly Row[];
  const candidates = rows.map((each) => candidateOf(each, row));
  const now = clock();
  const results =
    candidates.length === 0
      ? []
      : await work.migrate({
          ...{ collection: collection.name, migrations: row.migrations, isLast, candidates, now },
        });
  const { changes, events } = changesOf(running, task, rows, results);
  const moved: RunRow = {
    ...row,
    after: ids.at(-1) ?? row.after,
    documents: row.documents + (row.phase === 'pass' ? rows.length : changes.length),
    changed: row.changed + changes.length,
    starts: 0,
  };
  const unit = {
    changes: [...changes, rowChange(moved, known, now)],
    events: migrations.some((each) => each.events) ? events : [],
  };
  const commit = await commitPatiently(running, unit);
  if (commit === undefined) return 'lost';
  if (commit.outcome === 'committed') return { ...known, row: moved, rev: commit.rev };
  if (commit.outcome === 'superseded') return commit.change < changes.length ? 'overtaken' : 'lost';
  throw await refusalOf(running, task, changes, commit);
}

function candidateOf({ id, doc, owner, createdAt, updatedAt, rev }: Row, run: RunRow): Candidate {
  const isOlder = run.phase === 'pass' && run.began !== null && rev <= run.began;
  return { id, doc, owner, createdAt, updatedAt, isOlder };
}

function changesOf(
  { clock, newId }: Running,
  { collection, migrations }: RunTask,
  rows: readonly Row[],
  results: readonly Migrated[],
): { readonly changes: readonly Change[]; readonly events: readonly EventEntry[] } {
  const changes: Change[] = [];
  const events: EventEntry[] = [];
  for (const [index, result] of results.entries()) {
    const row = rows[index];
    if (row === undefined || result.kind === 'stays') continue;
    if (result.kind === 'failed') {
      const { migration, pointer, message } = result.failure;
      const of = migration === undefined ? 'does not fit after its migration' : `fails in ${migration}`;
      const why = [pointer, message].filter((part) => part !== '').join(' ');
      throw stoppedAt(
        migrations,
        `${collection.name}/${row.id} ${migrations.length === 0 ? '' : `${of}: `}${why}`,
      );
    }
    changes.push({ table: collection.name, id: row.id, expect: { rev: row.rev }, next: result.next });
    events.push(
      eventOf({ collection, newId }, 'updated', { id: row.id, row: result.next }, clock(), result.before),
    );
  }
  return { changes, events };
}

async function refusalOf(
  { store }: Running,
  { collection, migrations }: RunTask,
  changes: readonly Change[],
  commit: Exclude<Commit, { outcome: 'committed' | 'superseded' }>,
): Promise<Error> {
  const change = changes[commit.change];
  const at = `${collection.name}/${change?.id}`;
  if (commit.outcome === 'taken') {
    const holder = await holderOf(store, collection, changes, { change, names: commit.fields });
    const pointers = commit.fields.map((name) => `/${name}`);
    const isOne = pointers.length === 1;
    return stoppedAt(
      migrations,
      `${at} ${listOfNames(pointers)} must be unique${isOne ? '' : ' together'}, and ${holder === undefined ? 'another document' : `${collection.name}/${holder}`} has its ${isOne ? 'value' : 'values'}`,
    );
  }
  const reference = collection.references.find(({ field }) => field === commit.field);
  return stoppedAt(
    migrations,
    `${at} /${commit.field} names a document that does not exist in ${reference?.collection ?? 'its collection'}`,
  );
}

/** Without a migration there is none to correct: the documents do not fit the declaration. */
function stoppedAt(migrations: RunTask['migrations'], sentence: string): Error {
  if (migrations.length > 0) return new MigrationStopped(sentence);
  const remedy =
    'correct it with a server of the earlier declaration (on PostgreSQL after "comity migrate" with that), or declare a migration';
  return new DocumentsUnfit([`${sentence}; ${remedy}`]);
}

/** The id of the document that has the values of the unique fields, in the store or by an earlier change of the unit. */
async function holderOf(
  store: Store,
  { name: table, unique }: Collection,
  changes: readonly Change[],
  { change, names }: { readonly change: Change | undefined; readonly names: readonly string[] },
): Promise<string | undefined> {
  const fields = unique.findLast((each) => each.map(({ name }) => name).join() === names.join());
  if (fields === undefined || change?.next == null) return undefined;
  const document: unknown = JSON.parse(change.next.doc);
  const filter = allOf(
    fields.map((field) => equals(field, (memberAt(document, field.path) ?? null) as Scalar)),
  );
  const earlier = changes.find(
    ({ id, next }) =>
      id !== change.id &&
      next !== null &&
      matches(filter, { value: ({ path }) => memberAt(JSON.parse(next.doc), path), search: null }),
  );
  if (earlier !== undefined) return earlier.id;
  const { docs } = await store.plan({ table, filter, sort: byId, limit: 2 }).page({ from: 'start' });
  return docs.map((doc) => String(documentKey(byId, doc)[0])).find((id) => id !== change.id);
}

const attemptsMax = 6;

/** @returns undefined if a commit whose answer was lost may have been made: the position shows it */
async function commitPatiently(
  { store, signal }: Running,
  unit: Parameters<Store['commit']>[0],
): Promise<Commit | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const commit = await store.commit(unit);
      const isOwn = commit.outcome === 'superseded' && attempt > 1;
      return isOwn ? undefined : commit;
    } catch (error) {
      const isPassing = error instanceof StoreUnavailable && error.fault === undefined;
      if (!isPassing || attempt >= attemptsMax) throw error;
      await pause(lookMs * 2 ** attempt, undefined, { signal });
    }
  }
}
