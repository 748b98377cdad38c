/** The part of `comity migrate` that is the schema in PostgreSQL: shows the changes that it needs, and makes them while servers keep serving. */
import { type Address, describe } from '../store/postgres/connection/address.ts';
import { type MigrateOptions, migrateSchema, previewMigration } from '../store/postgres/schema/migrate.ts';
import type { Step } from '../store/postgres/schema/step.ts';
import { showProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';

export type SchemaPlace = { readonly address: Address; readonly migration: MigrateOptions };

export type MadeStep = { readonly step: Step; readonly durationMs?: number };

export function previewSchema({ address, migration }: SchemaPlace): Promise<readonly Step[]> {
  return previewMigration(address, migration);
}

export function describePlace({ address, migration }: SchemaPlace): string {
  return `${describe(address)}, schema ${migration.schema}`;
}

export async function makeSteps(
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

export function tellPlan(terminal: Terminal, place: SchemaPlace, steps: readonly Step[]): void {
  terminal.out(`Steps for ${describePlace(place)}; servers can keep using it meanwhile:`);
  for (const [at, { what }] of steps.entries()) terminal.out(`  ${at + 1}  ${what}`);
  const searched = steps.flatMap(({ fills }) => (fills === undefined ? [] : [fills.table.name]));
  if (searched.length === 0) return;
  terminal.out(
    `Servers of another declaration answer q of ${searched.join(', ')} with 503 from the first step on.`,
  );
}

/** Members of the report by `--json`. */
export function schemaReport({ address, migration }: SchemaPlace, made: readonly MadeStep[]) {
  return {
    ...{ engine: 'postgres', database: describe(address), schema: migration.schema },
    steps: made.map(({ step: { what, sql, transactional }, ...rest }) => ({
      ...{ what, transactional, sql },
      ...rest,
    })),
  };
}
