/**
 * `npm run bench`: Comity against the least programs that do the same I/O, as ratios within one run, over each store and at several
 * numbers of stored rows; and besides its sender of webhooks, with a peer, its receiver, and its connections,
 * with peers. Prints tables with the machine and the settings.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measureBulk } from './bulk/measure.ts';
import { measureRounds } from './cell.ts';
import { compareCommits } from './compare.ts';
import { measureConnections } from './connections/measure.ts';
import { measureFiles } from './files/measure.ts';
import { measureFunctions } from './functions/measure.ts';
import { figures, generatorLine, machine, type Run, say, writeDocs } from './measured-run.ts';
import { measureMigrations } from './migrations/measure.ts';
import {
  type BenchOptions,
  type ConnectionRowName,
  isConnectionRow,
  isWebhookRow,
  type RowName,
  readOptions,
  type StoreName,
  usage,
} from './options.ts';
import { preparePairs } from './pairs.ts';
import { detectPinning } from './pin.ts';
import { postgresEngine } from './postgres-engine.ts';
import { measureReceived } from './received/measure.ts';
import { measureRelations } from './relations/measure.ts';
import { measureSearch } from './search/measure.ts';
import { measureSingleFigures } from './single-figures.ts';
import { sqliteEngine } from './sqlite-engine.ts';
import { growthTable, ratioTable } from './table.ts';
import { measureWebhooks } from './webhooks/measure.ts';

async function main(options: BenchOptions): Promise<void> {
  const results: unknown[] = [];
  for (const store of options.stores) {
    // Connections have nothing to do with the kind of store.
    if (store === 'sqlite' || options.noise || options.only.some((name) => !isConnectionRow(name)))
      results.push(await measureStore(options, store));
  }
  if (options.jsonFile !== undefined) writeFileSync(options.jsonFile, JSON.stringify(results, undefined, 2));
}

/** @returns every figure of the run */
async function measureStore(options: BenchOptions, store: StoreName): Promise<unknown> {
  const pinning = detectPinning();
  const folder = mkdtempSync(join(tmpdir(), 'comity-bench-'));
  const engine = store === 'sqlite' ? sqliteEngine(pinning, folder) : await postgresEngine(pinning, folder);
  const run: Run = {
    options,
    store,
    engine,
    pinning,
    folder,
    subjects: [],
    comities: new Map(),
    report: [],
  };
  try {
    if (options.compare !== undefined) return await compareWith(run, options.compare);
    const requests = isAnyRequest(options) ? await measureRequests(run) : undefined;
    if (options.noise) return requests;
    const webhooks = options.only.some(isWebhookRow)
      ? await measureApart(run, 'webhooks', measureWebhooks)
      : undefined;
    const received = options.only.includes('received')
      ? await measureApart(run, 'received', measureReceived)
      : undefined;
    const functions = options.only.includes('functions')
      ? await measureApart(run, 'functions', measureFunctions)
      : undefined;
    const bulk = options.only.includes('bulk') ? await measureApart(run, 'bulk', measureBulk) : undefined;
    const search = options.only.includes('search')
      ? await measureApart(run, 'search', measureSearch)
      : undefined;
    const migrations = options.only.includes('migrations')
      ? await measureApart(run, 'migrations', measureMigrations)
      : undefined;
    const relations = options.only.includes('relations')
      ? await measureApart(run, 'relations', measureRelations)
      : undefined;
    const connections: Record<string, unknown> = {};
    for (const name of options.only.filter(isConnectionRow)) {
      if (store === 'sqlite')
        connections[name] = await measureApart(run, name, (apart) => measureConnections(apart, name));
    }
    // Octets have nothing to do with the kind of store.
    const files =
      store === 'sqlite' && options.only.includes('files')
        ? await measureApart(run, 'files', measureFiles)
        : undefined;
    const others = { functions, bulk, search, migrations, relations, files };
    return { requests, webhooks, received, ...others, connections };
  } finally {
    await Promise.all(run.subjects.map(({ server }) => server.stop()));
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compareWith(run: Run, ref: string): Promise<unknown> {
  const losses = await compareCommits(run, ref);
  if (losses.length > 0) {
    process.exitCode = 1;
    process.stderr.write(`costs more than a fifth more than at ${ref}: ${losses.join('; ')}\n`);
  }
  return { losses };
}

/** Measures what has a report and programs of its own. */
async function measureApart(
  run: Run,
  name:
    | 'webhooks'
    | 'received'
    | 'functions'
    | 'bulk'
    | 'search'
    | 'migrations'
    | 'relations'
    | 'files'
    | ConnectionRowName,
  measure: (run: Run) => Promise<unknown>,
): Promise<unknown> {
  const apart: Run = { ...run, subjects: [], comities: new Map(), report: [] };
  const figures = await measure(apart);
  if (run.options.writeDocs) writeDocs(apart, isConnectionRow(name) ? name : `${name}-${run.store}`);
  return figures;
}

/** Rows with a report of their own. */
const apart: ReadonlySet<RowName> = new Set([
  'received',
  'functions',
  'bulk',
  'search',
  'migrations',
  'relations',
  'files',
]);

/** Everything but webhooks out and in and connections, which have programs of their own. */
function isAnyRequest({ only, noise }: BenchOptions): boolean {
  return noise || only.some((name) => !isWebhookRow(name) && !isConnectionRow(name) && !apart.has(name));
}

/** @returns every figure of the requests; all that was started for them has ended */
async function measureRequests(run: Run): Promise<unknown> {
  const { options, store } = run;
  try {
    say(run, ...machine(run));
    const trouble = options.noise ? 'asked for by --noise' : await startComities(run);
    if (trouble !== undefined)
      say(
        run,
        '',
        `Comity is not measured (${trouble}).`,
        'The floors run against themselves instead: this is the noise.',
      );
    const pairs = await preparePairs(run, trouble !== undefined);
    await measureRounds(
      pairs.flatMap(({ floor, comity }) => [floor, comity]),
      options.rounds,
      options.settlingRounds,
      (round) => process.stderr.write(`${store}: round ${round + 1} of ${options.rounds}\n`),
    );
    say(
      run,
      '',
      ...ratioTable(pairs, store, trouble !== undefined),
      '',
      ...growthTable(pairs, trouble !== undefined),
    );
    say(run, generatorLine(pairs, store));
    if (trouble === undefined) await measureSingleFigures(run);
    if (options.writeDocs && trouble === undefined) writeDocs(run, store);
    else if (options.writeDocs) say(run, 'docs/performance.md is left as it was: Comity was not measured.');
    return figures(run, pairs);
  } finally {
    await Promise.all(run.subjects.map(({ server }) => server.stop()));
  }
}

/** Undefined when Comity runs with each number of rows, else why it does not. */
async function startComities(run: Run): Promise<string | undefined> {
  try {
    for (const rows of run.options.rows[run.store]) {
      const subject = await run.engine.startComity(rows);
      run.subjects.push(subject);
      run.comities.set(rows, subject);
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.message.trim().split('\n')[0] ?? error.name) : String(error);
  }
}

if (process.argv.includes('--help')) process.stdout.write(`${usage}\n`);
else await main(readOptions(process.argv.slice(2)));
