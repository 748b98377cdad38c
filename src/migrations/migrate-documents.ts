/**
 * The documents of a store and the configuration that serves them, at the start of a program and for `comity migrate`: judges them, runs what
 * is pending, and remembers what the documents are then.
 */
import type { Change, Store } from '../store/store.ts';
import { type RunProgress, runCollection } from './collection-run.ts';
import { fingerprintOfShape, shapeOf } from './declared-shape.ts';
import { createDocumentWork, DocumentsUnfit, type DocumentWork, InlineWork } from './document-work.ts';
import {
  type Finding,
  isOfRespelling,
  type Judgement,
  judgeDocuments,
  type LookReport,
  lookAtDocuments,
  sentencesOf,
  shapeChange,
} from './judge-documents.ts';
import {
  type MadeRow,
  type MigrationServices,
  migratedCollection,
  migratedCollections,
  migrationState,
  type PendingRun,
  type RunRow,
  readMigrationRows,
  rowChange,
  rowRemoval,
} from './migration-state.ts';

export type Migrating = MigrationServices & {
  /** Nothing else writes to the store meanwhile. */
  readonly isAlone: boolean;
  /** Requests are served meanwhile by the same process. */
  readonly isBeside?: boolean;
  readonly onProgress?: (progress: RunProgress) => void;
  readonly onWaiting?: (collection: string) => void;
  readonly onRun?: (run: MadeRun) => void;
  /** A look at all documents of a collection, whose declaration has changed without a migration. */
  readonly onLook?: (report: LookReport) => void;
  readonly signal?: AbortSignal;
};

export type MadeRun = {
  readonly collection: string;
  readonly migrations: readonly string[];
  readonly documents: number;
  readonly changed: number;
  readonly durationMs: number;
  /** They were made before, and are again for documents that an old process wrote after them. */
  readonly isAgain: boolean;
  /** No migration ran, and nothing but date-times changed, which are kept in UTC now. */
  readonly isRespelling?: boolean;
};

/**
 * Judges the documents before anything is served.
 * @returns the findings with which it is served nevertheless, and what `migrateDocuments` would do
 * @throws DocumentsUnfit
 */
async function judgeAtStart(services: MigrationServices): Promise<readonly Finding[]> {
  const { observe, settings } = services;
  const { serveUnmigrated, development } = settings;
  const judgement = await judgeDocuments(services);
  const { findings } = judgement;
  await remember(services.store, judgement);
  for (const collection of judgement.extended) observe({ kind: 'documents-extended', collection });
  if (findings.length === 0) return findings;
  const mayRun = runsAtStart(services, findings);
  if (!mayRun && !serveUnmigrated && !development) throw new DocumentsUnfit(sentencesOf(findings));
  if (!mayRun) for (const sentence of sentencesOf(findings)) observe({ kind: 'documents-unfit', sentence });
  return findings;
}

/**
 * True if a start migrates: if its settings say so, or if the embedded store has date-times that are not kept in UTC, which it spells anew by itself
 * as it makes indexes.
 */
function runsAtStart({ store, settings }: MigrationServices, findings: readonly Finding[]): boolean {
  const { migrateAtStart, serveUnmigrated } = settings;
  if (findings.some(({ kind }) => kind === 'impossible')) return false;
  return migrateAtStart || (!store.shared && !serveUnmigrated && findings.every(isOfRespelling));
}

/** Each by itself: what another process has remembered in the meantime is no less true. */
async function remember(store: Store, { changes }: Pick<Judgement, 'changes'>): Promise<void> {
  for (const change of changes) await store.commit({ changes: [change], events: [] });
}

/**
 * Makes every pending migration, and looks at the documents of every collection whose declaration has changed otherwise.
 * @returns the runs that this process ended
 * @throws MigrationStopped, DocumentsUnfit, StoreUnavailable
 */
export async function migrateDocuments(migrating: Migrating): Promise<readonly MadeRun[]> {
  const work = createDocumentWork(migrating, migrating.isBeside === true);
  try {
    const done = await makePending(migrating, work);
    for (const stray of await findStrays(migrating, work)) {
      if (stray.migrations.length > 0) await beginAgain(migrating, stray);
      else done.push(...(await fillIn(migrating, stray, work)));
    }
    done.push(...(await makePending(migrating, work)));
    done.push(...(await lookAtChanged(migrating, work)));
    return done;
  } finally {
    await work.close();
  }
}

async function makePending(migrating: Migrating, work: DocumentWork): Promise<MadeRun[]> {
  const { store, configuration, observe, signal = new AbortController().signal } = migrating;
  const done: MadeRun[] = [];
  for (;;) {
    const rows = await readMigrationRows(store);
    const { runs, contradictions } = migrationState(configuration, rows);
    if (contradictions.length > 0) throw new DocumentsUnfit(contradictions);
    const [next] = runs;
    if (next === undefined) return done;
    const collection = migratedCollection(configuration, next.collection);
    if (collection === undefined) throw new Error(`no collection is named ${next.collection}`);
    const begun = rows.runs.get(next.collection);
    // Defaults are filled in at the end of these migrations as well.
    if (begun?.row.migrations.length === 0) await store.commit({ changes: [rowRemoval(begun)], events: [] });
    const startedAt = performance.now();
    const { onProgress = ignore, onWaiting = ignore } = migrating;
    const ended = await runCollection(
      { ...migrating, work, onProgress, onWaiting, signal },
      { collection, migrations: next.migrations, isLast: next.isLast },
    );
    if (ended === undefined) continue;
    const { documents, changed } = ended.row;
    const outcome = await store.commit({
      changes: [...(await endings(migrating, next, { documents, changed })), rowRemoval(ended)],
      events: [],
    });
    // Another process has ended the same run.
    if (outcome.outcome !== 'committed') continue;
    const run: MadeRun = {
      ...{ collection: collection.name, migrations: next.migrations.map(({ id }) => id), documents, changed },
      durationMs: Math.round(performance.now() - startedAt),
      isAgain: next.isAgain,
    };
    done.push(run);
    observe({ kind: 'documents-migrated', ...run });
    migrating.onRun?.(run);
  }
}

/**
 * Fills in the defaults of documents that do not fit without them, and keeps date-times in UTC, in a run without migrations.
 * @returns the run, unless another process ended it
 */
async function fillIn(
  migrating: Migrating,
  { collection: name, report }: Pick<Stray, 'collection' | 'report'>,
  work: DocumentWork,
): Promise<readonly MadeRun[]> {
  const { store, configuration, observe, signal = new AbortController().signal } = migrating;
  const collection = migratedCollection(configuration, name);
  if (collection === undefined) return [];
  const startedAt = performance.now();
  await beginAgain(migrating, { collection: name, migrations: [] });
  const { onProgress = ignore, onWaiting = ignore } = migrating;
  const ended = await runCollection(
    { ...migrating, work, onProgress, onWaiting, signal },
    { collection, migrations: [], isLast: true },
  );
  if (ended === undefined) return [];
  const { shapes } = await readMigrationRows(store);
  const shape = shapeChange(migrating, collection, shapes.get(name), { filled: true });
  await store.commit({ changes: [shape, rowRemoval(ended)], events: [] });
  const { documents, changed } = ended.row;
  const durationMs = Math.round(performance.now() - startedAt);
  const run: MadeRun = {
    ...{ collection: name, migrations: [], documents, changed, durationMs, isAgain: false },
    ...(report.respelt === report.unfit ? { isRespelling: true } : {}),
  };
  observe({ kind: 'documents-migrated', ...run });
  migrating.onRun?.(run);
  return [run];
}

function ignore(): void {
  // No callback was given.
}

/** Records the migrations, and what the documents are from now on. */
async function endings(
  { store, configuration, clock, program }: Migrating,
  { collection: name, migrations, isLast }: PendingRun,
  counts: { readonly documents: number; readonly changed: number },
): Promise<readonly Change[]> {
  const { made, shapes } = await readMigrationRows(store);
  const first = 1 + (made.at(-1)?.order ?? 0);
  const isMade = new Set(made.map(({ migration }) => migration));
  const ids = migrations.map(({ id }) => id);
  const changes = ids
    .filter((id) => !isMade.has(id))
    .map((migration, index) => {
      const row: MadeRow = {
        ...{ kind: 'made', migration, collection: name, order: first + index, ...counts },
        ...{ madeAt: new Date(clock()).toISOString(), program },
      };
      return rowChange(row, undefined, clock());
    });
  const collection = migratedCollection(configuration, name);
  if (!isLast || collection === undefined) return changes;
  return [...changes, shapeChange({ clock, program }, collection, shapes.get(name), { migrations: ids })];
}

/** Documents of a made migration that do not fit: an old process wrote them after it. */
type Stray = {
  readonly collection: string;
  readonly migrations: readonly string[];
  readonly report: LookReport;
};

/** Looks at all documents of collections that were migrated, where other processes may write. */
export async function findStrays(migrating: Migrating, work?: DocumentWork): Promise<readonly Stray[]> {
  const { store, configuration } = migrating;
  if (!store.shared) return [];
  const { shapes, runs } = await readMigrationRows(store);
  const strays: Stray[] = [];
  for (const [name, { row }] of shapes) {
    const collection = migratedCollection(configuration, name);
    const { migrations = [], filled = false } = row;
    const isPresent = collection !== undefined && row.fingerprint === fingerprintOfShape(shapeOf(collection));
    if (!isPresent || (migrations.length === 0 && !filled) || runs.has(name)) continue;
    const inline = work ?? new InlineWork(configuration, migrating.settings, undefined);
    const report = await lookAtDocuments(migrating, inline, { collection });
    if (report.unfit > 0) strays.push({ collection: name, migrations, report });
  }
  return strays;
}

async function beginAgain(
  { store, clock }: Migrating,
  { collection, migrations }: Pick<Stray, 'collection' | 'migrations'>,
): Promise<void> {
  const row: RunRow = {
    ...{ kind: 'run', collection, migrations, phase: 'final', began: null, after: null },
    ...{ documents: 0, changed: 0, runner: store.processId, startedAt: new Date(clock()).toISOString() },
  };
  await store.commit({ changes: [rowChange(row, undefined, clock())], events: [] });
}

/** @returns the runs that filled in defaults @throws DocumentsUnfit */
async function lookAtChanged(migrating: Migrating, work: DocumentWork): Promise<readonly MadeRun[]> {
  const { store, configuration } = migrating;
  const filled: MadeRun[] = [];
  // The bounded look of a start would be repeated here in full.
  const judgement = await judgeDocuments(migrating, 1);
  const lines: string[] = [];
  for (const finding of judgement.findings) {
    const collection =
      finding.kind === 'unsure' ? migratedCollection(configuration, finding.collection) : undefined;
    if (finding.kind !== 'unsure' || collection === undefined) {
      lines.push(...sentencesOf([finding]));
      continue;
    }
    const report = await lookAtDocuments(migrating, work, { collection });
    migrating.onLook?.(report);
    if (report.unfit > 0 && report.filled === report.unfit)
      filled.push(...(await fillIn(migrating, { collection: collection.name, report }, work)));
    else if (report.unfit === 0) {
      const known = judgement.rows.shapes.get(collection.name);
      await store.commit({ changes: [shapeChange(migrating, collection, known)], events: [] });
    } else lines.push(...sentencesOf([{ ...finding, report }]));
  }
  await remember(store, judgement);
  if (lines.length > 0) throw new DocumentsUnfit(lines);
  return filled;
}

type MigrationPreview = {
  readonly contradictions: readonly string[];
  /** Collections with pending migrations, or documents to be looked at; in the order in which they would be. */
  readonly reports: readonly (LookReport & { readonly migrations: readonly string[] })[];
};

/** What `migrateDocuments` would do. Changes nothing. */
export async function previewDocuments(
  migrating: Migrating,
  onProgress: (collection: string, documents: number) => void = ignore,
): Promise<MigrationPreview> {
  const { store, configuration } = migrating;
  const rows = await readMigrationRows(store);
  const { runs, contradictions } = migrationState(configuration, rows);
  const work = createDocumentWork(migrating, false);
  try {
    const reports: (LookReport & { readonly migrations: readonly string[] })[] = [];
    for (const collection of migratedCollections(configuration, rows.shapes).values()) {
      const { name } = collection;
      const migrations = runs
        .filter((run) => run.collection === name)
        .flatMap((run) => run.migrations.map(({ id }) => id));
      const run = rows.runs.get(name)?.row;
      const doneUntil = run?.phase === 'pass' ? run.after : null;
      const look = {
        collection,
        migrations,
        doneUntil,
        onProgress: (count: number) => onProgress(name, count),
      };
      reports.push({ ...(await lookAtDocuments(migrating, work, look)), migrations });
    }
    return { contradictions, reports };
  } finally {
    await work.close();
  }
}

type DocumentsAtStart = {
  /** Makes what is pending, unless it is served meanwhile. @param store appends events with their deliveries */
  beforeServing(store: Store): Promise<void>;
  /** Begins to make what is pending, beside requests. */
  besideServing(store: Store): void;
  /** Ends what runs beside requests, after its batch. */
  stop(): Promise<void>;
};

/** @throws DocumentsUnfit */
export async function judgeDocumentsAtStart(services: MigrationServices): Promise<DocumentsAtStart> {
  const { observe } = services;
  const { serveUnmigrated } = services.settings;
  const findings = await judgeAtStart(services);
  const isWanted = findings.length > 0 && runsAtStart(services, findings);
  const stopping = new AbortController();
  let running: Promise<unknown> | undefined;
  const run = (store: Store, isAlone: boolean) => {
    const isBeside = serveUnmigrated;
    const signal = stopping.signal;
    const migrating: Migrating = { ...services, store, isAlone, isBeside, signal };
    return migrateDocuments(migrating);
  };
  return {
    async beforeServing(store) {
      if (isWanted && !serveUnmigrated) await run(store, !store.shared);
    },
    besideServing(store) {
      if (!isWanted || !serveUnmigrated) return;
      running = run(store, false).catch((error: unknown) => {
        if (!stopping.signal.aborted) observe({ kind: 'operation-failed', operation: 'migration', error });
      });
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
