/**
 * `comity migrate`: shows the changes that the schema in PostgreSQL needs, and makes them while servers keep serving.
 * The embedded store needs none of this: it migrates at start.
 */
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { type Address, describe } from '../store/postgres/connection/address.ts';
import { type MigrateOptions, migrateSchema, previewMigration } from '../store/postgres/schema/migrate.ts';
import type { Step } from '../store/postgres/schema/step.ts';
import { storeTables } from '../store-tables.ts';
import { isConfirmed } from './confirm.ts';
import { addressOrMistake, databaseFailure } from './database-failure.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { showProgress } from './progress.ts';
import { readConfiguration, tellWarnings } from './read-configuration.ts';
import type { Terminal } from './terminal.ts';

export type MigrateFlags = {
  readonly json: boolean;
  readonly dryRun: boolean;
  /** Does not ask for confirmation. */
  readonly yes: boolean;
  /** Drops no index, while processes with the old configuration still read by it. */
  readonly keepIndexes: boolean;
};

/** Resolves with 0 when the schema is up to date, and with 3 when a dry run found that it is not. */
export async function migrate(
  terminal: Terminal,
  options: WrittenSettings,
  flags: MigrateFlags,
  version: string,
): Promise<number> {
  const { configuration, settings, warnings } = await readConfiguration(terminal.environment, options);
  tellWarnings(terminal, warnings);
  const { databaseUrl, databaseSchema, databaseConnectTimeoutMs } = settings;
  if (databaseUrl === undefined) return tellEmbedded(terminal, flags);
  const address = addressOrMistake(databaseUrl);
  if (address instanceof CommandFailure) throw address;
  const migration: MigrateOptions = {
    schema: databaseSchema,
    tables: storeTables(configuration),
    connectTimeoutMs: databaseConnectTimeoutMs,
    program: version,
    keepsUndeclared: flags.keepIndexes,
  };
  const steps = await worded(settings, () => previewMigration(address, migration));
  if (flags.json) {
    const made = flags.dryRun
      ? steps.map((step) => ({ step }))
      : await make(terminal, address, migration, settings, ignore);
    tellJson(terminal, address, settings, made, flags);
  } else {
    tellPlan(terminal, address, settings, steps);
    if (flags.dryRun || steps.length === 0) return codeOf(steps, flags);
    if (!flags.yes && !(await isConfirmed(terminal, 'Continue?'))) return exitCodes.failed;
    await make(terminal, address, migration, settings, (line) => terminal.out(line));
  }
  return codeOf(steps, flags);
}

function codeOf(steps: readonly Step[], { dryRun }: MigrateFlags): number {
  return dryRun && steps.length > 0 ? exitCodes.pending : exitCodes.done;
}

type Made = { readonly step: Step; readonly durationMs?: number };

async function make(
  terminal: Terminal,
  address: Address,
  migration: MigrateOptions,
  settings: Settings,
  tell: (line: string) => void,
): Promise<readonly Made[]> {
  const made: Made[] = [];
  let label = '';
  const progress = showProgress(terminal.stderr, 'Building');
  await worded(settings, () =>
    migrateSchema(address, {
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
    }),
  ).finally(progress.end);
  tell(`The schema ${migration.schema} is up to date.`);
  return made;
}

async function worded<T>(settings: Settings, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw databaseFailure(error, settings) ?? error;
  }
}

function tellEmbedded(terminal: Terminal, { json }: MigrateFlags): number {
  if (json) terminal.out(JSON.stringify({ engine: 'sqlite', steps: [] }));
  else {
    terminal.out(
      'Nothing to do: the embedded store brings itself up to date when it starts (COMITY_DATABASE_URL is not set).',
    );
  }
  return exitCodes.done;
}

function tellPlan(
  terminal: Terminal,
  address: Address,
  { databaseSchema }: Settings,
  steps: readonly Step[],
): void {
  const where = `${describe(address)}, schema ${databaseSchema}`;
  if (steps.length === 0) {
    terminal.out(`Nothing to do: ${where} is up to date.`);
    return;
  }
  terminal.out(`Steps for ${where}; servers can keep using it meanwhile:`);
  for (const [at, { what }] of steps.entries()) terminal.out(`  ${at + 1}  ${what}`);
}

function tellJson(
  terminal: Terminal,
  address: Address,
  { databaseSchema }: Settings,
  made: readonly Made[],
  { dryRun }: MigrateFlags,
): void {
  const steps = made.map(({ step: { what, sql, transactional }, ...rest }) => ({
    what,
    transactional,
    sql,
    ...rest,
  }));
  const report = { engine: 'postgres', database: describe(address), schema: databaseSchema, dryRun, steps };
  terminal.out(JSON.stringify(report, undefined, 2));
}

function ignore(): void {
  // JSON is printed at the end.
}
