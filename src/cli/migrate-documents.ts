/** The part of `comity migrate` that is documents: which store, with which indexes, and what is printed about it. */
import { randomInt } from 'node:crypto';
import { forgetStarts } from '../migrations/collection-run.ts';
import {
  countOf,
  isHopeless,
  judgeDocuments,
  type LookReport,
  sentencesOf,
} from '../migrations/judge-documents.ts';
import {
  findStrays,
  type MadeRun,
  type Migrating,
  migrateDocuments,
  previewDocuments,
} from '../migrations/migrate-documents.ts';
import { createIdSource } from '../model/id.ts';
import { createLog } from '../observe/log.ts';
import { createMetrics } from '../observe/metrics.ts';
import { fanOut, type Observation } from '../observe/observation.ts';
import { lookForDuplicates, openLookingStore, openPlainStore } from '../open-store.ts';
import { packageVersion } from '../package-version.ts';
import { composeMounted } from '../running.ts';
import type { Store } from '../store/store.ts';
import { storeTables } from '../store-tables.ts';
import type { Reading } from './read-configuration.ts';
import { onInterrupt, showProgress, showStatusLine, type Terminal } from './terminal.ts';

export type DocumentsReport = {
  readonly reports: readonly (LookReport & { readonly migrations: readonly string[] })[];
  readonly made: readonly MadeRun[];
  readonly contradictions?: readonly string[];
  /** Sentences about unique fields with equal values. */
  readonly duplicates?: readonly string[];
};

const nothing: DocumentsReport = { reports: [], made: [] };

export function isPending({ reports, contradictions = [], duplicates = [] }: DocumentsReport): boolean {
  return (
    contradictions.length + duplicates.length > 0 ||
    reports.some(({ migrations, unfit }) => migrations.length > 0 || unfit > 0)
  );
}

/** Looks at every document, beside running servers and without a change of the store. */
export async function previewStore(terminal: Terminal, reading: Reading): Promise<DocumentsReport> {
  const store = await openLookingStore(reading.configuration, reading.settings, ignore);
  if (store === undefined) return nothing;
  const status = showStatusLine(terminal.stderr);
  try {
    const preview = await previewDocuments(optionsOf(reading, store), (collection, documents) =>
      status.show(`${collection}: ${documents.toLocaleString('en')} documents`),
    );
    const migrated = preview.reports.filter(({ migrations }) => migrations.length > 0);
    const except = new Set(migrated.map(({ collection }) => collection));
    const duplicates = await lookForDuplicates(reading.configuration, reading.settings, except);
    return { ...preview, duplicates, made: [] };
  } finally {
    status.end();
    await store.close();
  }
}

export type LookedStore = {
  /** A sentence for each collection whose documents need something. */
  readonly lines: readonly string[];
  /** Sentences about unique fields with equal values, which no migration that is declared changes. */
  readonly duplicates: readonly string[];
  /** The sentences about documents that no run makes fit. */
  readonly hopeless: readonly string[];
  /** A sentence for each collection whose search texts are not those of the declaration. */
  readonly searches: readonly string[];
  /** Nothing new has to be remembered either. */
  readonly isKnown: boolean;
};

/** Judges the documents as a start does. */
export async function lookAtStore(reading: Reading): Promise<LookedStore> {
  const store = await openLookingStore(reading.configuration, reading.settings, ignore);
  if (store === undefined) return { lines: [], duplicates: [], hopeless: [], searches: [], isKnown: true };
  try {
    const options = optionsOf(reading, store);
    const { findings, changes, state } = await judgeDocuments(options);
    const except = new Set(state.runs.map(({ collection }) => collection));
    const duplicates = await lookForDuplicates(reading.configuration, reading.settings, except);
    const strays = (await findStrays(options)).map(
      ({ collection, migrations, report }) =>
        `${collection}: ${countOf(report.unfit, true)} written by an old process after ${migrations.join(', ') || 'documents were completed'}`,
    );
    const lines = [...sentencesOf(findings), ...strays];
    const searches = await unreadySearches(reading, store);
    const hopeless = [...sentencesOf(findings.filter(isHopeless)), ...duplicates];
    return { lines, duplicates, hopeless, searches, isKnown: changes.length === 0 };
  } finally {
    await store.close();
  }
}

async function unreadySearches({ configuration }: Reading, store: Store): Promise<readonly string[]> {
  const names: string[] = [];
  for (const { name, words } of storeTables(configuration))
    if (words !== undefined && (await store.holdsDocuments(name))) names.push(name);
  const { tables } = await store.report(names);
  const maker = store.shared
    ? 'comity migrate, and then by servers with this configuration'
    : 'the next start';
  return tables
    .filter(({ indexes }) => indexes.some(({ kind, stands }) => kind === 'search' && !stands))
    .map(({ name }) => `${name}: search texts are made by ${maker}; until then q is 503`);
}

function ignore(): void {
  // Nothing is printed about a store that is only looked at.
}

function optionsOf(reading: Reading, store: Store): Migrating {
  const { configuration, settings, module } = reading;
  return {
    ...{ settings, configuration, module, store, clock: Date.now, observe: ignore },
    ...{ program: packageVersion(), isAlone: !store.shared },
    newId: createIdSource(Date.now, () => randomInt(32)),
  };
}

const indexesMax = 1000;

/**
 * Finds the indexes that stored documents do not fit yet, by making the others.
 * @param hasDocuments false: documents that do not fit an index are a failure
 */
export async function lateIndexes(
  hasDocuments: boolean,
  make: (late: ReadonlySet<string>) => Promise<void>,
): Promise<ReadonlySet<string>> {
  const late = new Set<string>();
  for (;;) {
    try {
      await make(late);
      return late;
    } catch (error) {
      const index = unfitIndexOf(error);
      if (!hasDocuments || index === undefined || late.has(index) || late.size >= indexesMax) throw error;
      late.add(index);
    }
  }
}

function unfitIndexOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'store_unfit_rows') return undefined;
  return 'index' in error && typeof error.index === 'string' ? error.index : undefined;
}

/**
 * Migrates, and looks at collections that have changed.
 * @param lateInSchema indexes that the schema in PostgreSQL does not have yet
 * @throws MigrationStopped, DocumentsUnfit
 */
export async function makeDocuments(
  terminal: Terminal,
  reading: Reading,
  lateInSchema: ReadonlySet<string>,
  tell: (line: string) => void,
): Promise<DocumentsReport> {
  const { configuration, settings } = reading;
  const opened: { store?: Store } = {};
  const late = await lateIndexes(true, async (found) => {
    const all = new Set([...lateInSchema, ...found]);
    opened.store = await openPlainStore(configuration, settings, ignore, { late: all });
  });
  if (opened.store === undefined) return nothing;
  const report = await migrateStore(terminal, reading, opened.store, tell);
  // The embedded store makes its indexes when it is opened: now that documents fit, or else it says which do not.
  if (late.size > 0 && settings.databaseUrl === undefined)
    await (await openPlainStore(configuration, settings, ignore)).close();
  return report;
}

/** @param store is closed at the end */
async function migrateStore(
  terminal: Terminal,
  reading: Reading,
  store: Store,
  tell: (line: string) => void,
): Promise<DocumentsReport> {
  const told = (run: MadeRun): void => tell(runSentence(run));
  const reports: LookReport[] = [];
  try {
    const interrupt = new AbortController();
    const forget = onInterrupt(() => interrupt.abort(new Error('interrupted; run it again to go on')));
    const progress = showProgress(terminal.stderr, 'Migrating');
    try {
      const options = optionsOf(reading, store);
      await forgetStarts(options);
      const { state } = await judgeDocuments(options, 1);
      const appends = state.runs.some(({ migrations }) => migrations.some(({ events }) => events));
      if (appends) {
        await store.close();
        return { reports: [], made: await migrateMounted(terminal, reading, told) };
      }
      const totals = new Map<string, number>();
      for (const { collection } of terminal.stderr.isTTY ? state.runs : [])
        totals.set(collection, await store.count(collection, { op: 'always' }));
      const made = await migrateDocuments({
        ...options,
        signal: interrupt.signal,
        onProgress: ({ collection, documents }) => progress.advance(documents, totals.get(collection) ?? 0),
        onWaiting: (collection) =>
          terminal.err(`comity: another process migrates ${collection}; waiting for it to end`),
        onRun: (run) => {
          progress.end();
          told(run);
        },
        onLook: (report) => {
          reports.push(report);
          if (report.unfit === 0)
            tell(`${report.collection}: all ${report.documents.toLocaleString('en')} documents fit`);
        },
      });
      return { made, reports: reports.map((report) => ({ ...report, migrations: [] })) };
    } finally {
      progress.end();
      forget();
    }
  } finally {
    await store.close();
  }
}

/** Within the whole program, which makes deliveries of the events. It sends what is due meanwhile, as a server does. */
async function migrateMounted(
  terminal: Terminal,
  reading: Reading,
  tell: (run: MadeRun) => void,
): Promise<readonly MadeRun[]> {
  const made: MadeRun[] = [];
  const log = createLog({
    level: 'warn',
    ...(terminal.log === undefined ? {} : { destination: terminal.log }),
  });
  const take = (observation: Observation): void => {
    if (observation.kind !== 'documents-migrated') return;
    const { kind: _, ...run } = observation;
    made.push(run);
    tell(run);
  };
  const settings = { ...reading.settings, migrateAtStart: true, serveUnmigrated: false };
  const observe = fanOut(log, take);
  const program = await composeMounted({ ...reading, settings, observe, metrics: createMetrics() });
  await program.stop('migrated');
  return made;
}

function runSentence({
  collection,
  migrations,
  documents,
  changed,
  durationMs,
  isAgain,
  isRespelling,
}: MadeRun): string {
  const rate =
    durationMs === 0 ? '' : `, ${Math.round((1000 * documents) / durationMs).toLocaleString('en')} a second`;
  const of = documents.toLocaleString('en');
  if (isRespelling)
    return `${collection}: date-times of ${countOf(changed, true)} are kept in UTC now  (${durationMs} ms)`;
  if (migrations.length === 0)
    return `${collection}: defaults filled in ${countOf(changed, true)}  (${durationMs} ms)`;
  if (isAgain)
    return `${collection}: ${migrations.join(', ')} changed ${countOf(changed, true)} written after it  (${durationMs} ms)`;
  return `${collection}: ${migrations.join(', ')} changed ${changed.toLocaleString('en')} of ${of} documents  (${durationMs} ms${rate})`;
}

export function tellPreview(
  terminal: Terminal,
  { reports, contradictions = [], duplicates = [] }: DocumentsReport,
): void {
  for (const line of [...contradictions, ...duplicates]) terminal.out(line);
  for (const report of reports) {
    const {
      collection,
      documents,
      unfit,
      filled,
      respelt,
      migrations,
      changedBy,
      faults,
      failing,
      failures,
    } = report;
    if (unfit === 0 && migrations.length === 0) continue;
    terminal.out(
      `${collection}: ${unfit.toLocaleString('en')} of ${documents.toLocaleString('en')} documents do not fit`,
    );
    tellKinds(terminal, faults);
    if (filled > respelt) terminal.out(`  defaults would fill in ${countOf(filled - respelt, true)}`);
    if (respelt > 0) terminal.out(`  date-times would be kept in UTC in ${countOf(respelt, true)}`);
    for (const id of migrations)
      terminal.out(`  migration ${id} would change ${(changedBy.get(id) ?? 0).toLocaleString('en')}`);
    if (failing > 0) {
      terminal.out(`  the migration would stop at ${failing.toLocaleString('en')}:`);
      tellKinds(terminal, failures);
    }
  }
}

function tellKinds(terminal: Terminal, kinds: LookReport['faults']): void {
  for (const { pointer, message, count, examples } of kinds) {
    const what = [pointer, message].filter((part) => part !== '').join(' ');
    terminal.out(`  ${count.toLocaleString('en')}: ${what}, such as ${examples.join(', ')}`);
  }
}
