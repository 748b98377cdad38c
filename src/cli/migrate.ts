/**
 * `comity migrate`: brings a store to the configuration. On PostgreSQL first its schema, while servers keep serving; then, on both stores,
 * the documents (src/migrations). Indexes that stored documents do not fit yet are made after the documents.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { WrittenSettings } from '../config/load-settings.ts';
import { DocumentsUnfit } from '../migrations/document-work.ts';
import { type Address, describe } from '../store/postgres/connection/address.ts';
import { type MigrateOptions, migrateSchema, previewMigration } from '../store/postgres/schema/migrate.ts';
import type { Step } from '../store/postgres/schema/schema-plan.ts';
import { storeTables } from '../store-tables.ts';
import { backup } from './backup.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import {
  type DocumentsReport,
  isPending,
  lateIndexes,
  lookAtStore,
  makeDocuments,
  previewStore,
  tellPreview,
} from './migrate-documents.ts';
import { chosenStore, type Reading, readConfiguration, tellWarnings } from './read-configuration.ts';
import { addressOrMistake, startFailure } from './start-failure.ts';
import { isConfirmed, showProgress, type Terminal } from './terminal.ts';

export type MigrateFlags = {
  readonly json: boolean;
  readonly dryRun: boolean;
  /** Does not ask for confirmation. */
  readonly yes: boolean;
  /** Drops no index, while processes with the old configuration still read by it. */
  readonly keepIndexes: boolean;
  /** A file that gets a copy of the store first. */
  readonly backup?: string | undefined;
};

/** Resolves with 0 when the store is up to date, and with 3 when a dry run found that it is not. */
export async function migrate(
  terminal: Terminal,
  options: WrittenSettings,
  flags: MigrateFlags,
  version: string,
): Promise<number> {
  const { warnings, ...read } = await readConfiguration(terminal.environment, options);
  tellWarnings(terminal, warnings);
  const reading: Reading = { ...read, warnings, settings: chosenStore(read.settings, options) };
  try {
    const place = schemaPlaceOf(reading, flags, version);
    return await (flags.dryRun
      ? preview(terminal, reading, place, flags)
      : make(terminal, reading, place, { ...flags, options }));
  } catch (error) {
    throw migrationFailure(startFailure(error, reading.settings));
  }
}

/** Undefined: the embedded store, which creates its tables when it is opened. */
function schemaPlaceOf(
  { configuration, settings }: Reading,
  { keepIndexes }: MigrateFlags,
  version: string,
): SchemaPlace | undefined {
  const { databaseUrl, databaseSchema, databaseConnectTimeoutMs } = settings;
  if (databaseUrl === undefined) return undefined;
  const address = addressOrMistake(databaseUrl);
  if (address instanceof CommandFailure) throw address;
  const migration = {
    ...{ schema: databaseSchema, tables: storeTables(configuration), program: version },
    ...{ connectTimeoutMs: databaseConnectTimeoutMs, keepsUndeclared: keepIndexes },
  };
  return { address, migration };
}

/** Words that a stopped migration and unfit documents end the command with. */
function migrationFailure(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof DocumentsUnfit) return error;
  if (!('code' in error)) return error;
  if (error.code === 'migration_stopped') {
    const message = `the migration stopped at ${error.message}; documents before it are migrated, and the rest as they were: correct the migration or the document, and run it again`;
    return new CommandFailure(message, { cause: error });
  }
  if (error.code === 'store_folder_in_use') {
    const message = `${error.message}: stop the server first, or start it with --migrate`;
    return new CommandFailure(message, { cause: error });
  }
  return error;
}

async function preview(
  terminal: Terminal,
  reading: Reading,
  place: SchemaPlace | undefined,
  { json }: MigrateFlags,
): Promise<number> {
  const steps = place === undefined ? [] : await previewSchema(place);
  const documents = await previewStore(terminal, reading);
  const isUpToDate = steps.length === 0 && !isPending(documents);
  if (json)
    tellJson(
      terminal,
      place,
      steps.map((step) => ({ step })),
      documents,
      true,
    );
  else if (isUpToDate) tellNothing(terminal, place, documents);
  else {
    if (place !== undefined && steps.length > 0) tellPlan(terminal, place, steps);
    tellPreview(terminal, documents);
  }
  return isUpToDate ? exitCodes.done : exitCodes.pending;
}

type Making = MigrateFlags & { readonly options: WrittenSettings };

async function make(
  terminal: Terminal,
  reading: Reading,
  place: SchemaPlace | undefined,
  { json, yes, backup: file, options }: Making,
): Promise<number> {
  const tell = (line: string): void => {
    if (!json) terminal.out(line);
  };
  const steps = place === undefined ? [] : await previewSchema(place);
  const looked = await lookAtStore(reading);
  // No step leads past them, and after some of them a server of the earlier declaration, which could correct them, would not start.
  if (looked.hopeless.length > 0 && !reading.settings.serveUnmigrated)
    throw new DocumentsUnfit(looked.hopeless);
  const hasDocuments = looked.lines.length > 0;
  if (steps.length === 0 && !hasDocuments && looked.isKnown) {
    if (json) tellJson(terminal, place, [], { reports: [], made: [] }, false);
    else tellNothing(terminal, place, undefined);
    return exitCodes.done;
  }
  if (!json) {
    if (place !== undefined && steps.length > 0) tellPlan(terminal, place, steps);
    for (const line of looked.lines) terminal.out(line);
    if (hasDocuments && file === undefined && terminal.stdout.isTTY)
      terminal.out('There is no way back: --backup FILE keeps a copy of the store as it is now.');
    const isAsked = steps.length > 0 || hasDocuments;
    if (isAsked && !yes && !(await isConfirmed(terminal, 'Continue?'))) return exitCodes.failed;
  }
  if (file !== undefined && holdsStore(reading))
    await backup(json ? quiet(terminal) : terminal, file, options, { json: false });
  const { madeSteps, documents } = await makeAll(terminal, reading, place, { tell, isPending: hasDocuments });
  if (json) tellJson(terminal, place, madeSteps, documents, false);
  return exitCodes.done;
}

function holdsStore({ settings: { databaseUrl, data } }: Reading): boolean {
  return databaseUrl !== undefined || existsSync(join(resolve(data), 'comity.db'));
}

function quiet(terminal: Terminal): Terminal {
  return { ...terminal, out: () => undefined };
}

type Telling = { readonly tell: (line: string) => void; readonly isPending: boolean };

/** The schema without what stored documents do not fit yet, the documents, and then the rest of the schema. */
async function makeAll(
  terminal: Terminal,
  reading: Reading,
  place: SchemaPlace | undefined,
  { tell, isPending: hasDocuments }: Telling,
) {
  const madeSteps: MadeStep[] = [];
  const makeSchema = async (late: ReadonlySet<string>, keepsUndeclared: boolean): Promise<void> => {
    if (place === undefined) return;
    const tables = storeTables(reading.configuration, late);
    const migration = { ...place.migration, tables, keepsUndeclared };
    madeSteps.push(...(await makeSteps(terminal, { ...place, migration }, tell)));
  };
  const keeps = place?.migration.keepsUndeclared === true;
  const late = await lateIndexes(hasDocuments, (found) => makeSchema(found, keeps || hasDocuments));
  const documents = await makeDocuments(terminal, reading, late, tell);
  if (place !== undefined && hasDocuments) await makeSchema(new Set(), keeps);
  if (place !== undefined && madeSteps.length > 0)
    tell(`The schema ${place.migration.schema} is up to date.`);
  return { madeSteps, documents };
}

function tellNothing(
  terminal: Terminal,
  place: SchemaPlace | undefined,
  documents: DocumentsReport | undefined,
): void {
  const counted = documents?.reports.reduce((sum, each) => sum + each.documents, 0) ?? 0;
  const fit = counted === 0 ? '' : `; all ${counted.toLocaleString('en')} documents fit`;
  if (place !== undefined) terminal.out(`Nothing to do: ${describePlace(place)} is up to date${fit}.`);
  else {
    terminal.out(
      `Nothing to do: the embedded store brings itself up to date when it starts (COMITY_DATABASE_URL is not set)${fit}.`,
    );
  }
}

function tellJson(
  terminal: Terminal,
  place: SchemaPlace | undefined,
  made: readonly MadeStep[],
  documents: DocumentsReport,
  dryRun: boolean,
): void {
  const schema = place === undefined ? { engine: 'sqlite', steps: [] } : schemaReport(place, made);
  const reports = documents.reports.map(({ changedBy, ...report }) => ({
    ...report,
    changedBy: Object.fromEntries(changedBy),
  }));
  const { made: runs, contradictions = [], duplicates = [] } = documents;
  const told = dryRun ? { reports, contradictions, duplicates } : { runs };
  terminal.out(JSON.stringify({ ...schema, dryRun, documents: told }, undefined, 2));
}

// The part of `comity migrate` that is the schema in PostgreSQL: shows the changes that it needs, and makes them while servers keep serving.

type SchemaPlace = { readonly address: Address; readonly migration: MigrateOptions };

type MadeStep = { readonly step: Step; readonly durationMs?: number };

function previewSchema({ address, migration }: SchemaPlace): Promise<readonly Step[]> {
  return previewMigration(address, migration);
}

function describePlace({ address, migration }: SchemaPlace): string {
  return `${describe(address)}, schema ${migration.schema}`;
}

async function makeSteps(
  terminal: Terminal,
  { address, migration }: SchemaPlace,
  tell: (line: string) => void,
): Promise<readonly MadeStep[]> {
  const made: MadeStep[] = [];
  let label = '';
  const progress = showProgress(terminal.stderr, 'Building');
  await migrateSchema(address, {
    ...migration,
    onWaiting: () => terminal.err('comity: another process migrates this schema; waiting for it to end'),
    onStep: (_, at, of) => {
      label = `${at}/${of}`;
    },
    ...(terminal.stderr.isTTY && { onProgress: progress.advance }),
    onStepDone: (step, durationMs) => {
      progress.end();
      made.push({ step, durationMs: Math.round(durationMs) });
      tell(`${label}  ${step.what}  (${Math.round(durationMs)} ms)`);
    },
  }).finally(progress.end);
  return made;
}

function tellPlan(terminal: Terminal, place: SchemaPlace, steps: readonly Step[]): void {
  terminal.out(`Steps for ${describePlace(place)}; servers can keep using it meanwhile:`);
  for (const [at, { what }] of steps.entries()) terminal.out(`  ${at + 1}  ${what}`);
  const searched = steps.flatMap(({ fills }) => (fills === undefined ? [] : [fills.table.name]));
  if (searched.length === 0) return;
  terminal.out(
    `Servers of another declaration answer q of ${searched.join(', ')} with 503 from the first step on.`,
  );
}

/** Members of the report by `--json`. */
function schemaReport({ address, migration }: SchemaPlace, made: readonly MadeStep[]) {
  return {
    ...{ engine: 'postgres', database: describe(address), schema: migration.schema },
    steps: made.map(({ step: { what, sql, transactional }, ...rest }) => ({
      ...{ what, transactional, sql },
      ...rest,
    })),
  };
}
