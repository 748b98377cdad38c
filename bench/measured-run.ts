/**
 * What one run of the benchmark holds: its options, what was started, and the report so far.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spreadOf } from './cell.ts';
import type { Engine, Subject } from './engine.ts';
import type { BenchOptions, ConnectionRowName, StoreName } from './options.ts';
import type { Pinning } from './pin.ts';
import { type Pair, spreadText } from './table.ts';

export type Run = {
  readonly options: BenchOptions;
  readonly store: StoreName;
  readonly engine: Engine;
  readonly pinning: Pinning;
  readonly folder: string;
  readonly subjects: Subject[];
  readonly comities: Map<number, Subject>;
  readonly report: string[];
};

const generatorBusyMost = 0.95;
const otherBusyMost = 0.1;
const docsFile = fileURLToPath(new URL('../docs/performance.md', import.meta.url));

export function say(run: Run, ...lines: readonly string[]): void {
  run.report.push(...lines);
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** What it ran on, in one line. */
export function hardware({ pinning }: Pick<Run, 'pinning'>): string {
  const processors = cpus();
  return `Node ${process.version}, ${process.platform} ${process.arch}, ${processors.length} x ${processors[0]?.model.trim() ?? 'unknown'}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB; ${pinning.words}.`;
}

export function machine(run: Run): readonly string[] {
  const { options, engine } = run;
  return [
    hardware(run),
    `${options.connections} connections with one request outstanding each; ${options.rounds} interleaved rounds of ${options.measuredMs / 1000} s after ${options.warmupMs / 1000} s, and ${options.settlingRounds} thrown away before them; medians, spread in brackets; rate limits off; ${engine.words}.`,
  ];
}

/** A load generator without room to spare would measure itself. */
export function generatorLine(pairs: readonly Pair[], store: StoreName): string {
  const busy = pairs.flatMap(({ comity, floor }) =>
    [...comity.samples, ...floor.samples].map((sample) => sample.generatorBusy),
  );
  const most = Math.max(0, ...busy);
  const warning = most > generatorBusyMost ? ': TOO BUSY, the figures above are partly its own' : '';
  return `Load generator: at most ${(most * 100).toFixed(0)} % of its processor${warning}. ${otherLine(pairs, store)}`;
}

/** Says how quiet the machine was: ratios of a busy one scatter. */
function otherLine(pairs: readonly Pair[], store: StoreName): string {
  const cells = pairs.flatMap(({ comity, floor }) => [comity, floor]);
  const other = spreadOf(
    cells.flatMap(({ samples }) => samples.map(({ otherBusy }) => otherBusy ?? Number.NaN)),
  );
  if (store === 'postgres') return `PostgreSQL and other programs kept ${spreadText(other)} processors busy.`;
  const warning = other.median > otherBusyMost ? ': TOO BUSY, run again on a quiet machine' : '';
  return `Other programs kept ${spreadText(other)} processors busy${warning}.`;
}

export function figures(run: Run, pairs: readonly Pair[]): unknown {
  const cells = pairs.flatMap(({ comity, floor }) => [comity, floor]);
  return {
    report: run.report,
    store: run.store,
    options: run.options,
    cells: cells.map(({ name, side, rows, samples }) => ({ name, side, rows, samples })),
  };
}

/** Replaces what stands between the marks of the table. */
export function writeDocs(
  { report }: Run,
  table:
    | StoreName
    | ConnectionRowName
    | `${'webhooks' | 'received' | 'functions' | 'bulk' | 'search' | 'migrations' | 'relations' | 'files'}-${StoreName}`,
): void {
  const docsBegin = `<!-- bench:${table}:begin -->`;
  const docsEnd = `<!-- bench:${table}:end -->`;
  mkdirSync(dirname(docsFile), { recursive: true });
  const section = `${docsBegin}\n${report.join('\n')}\n${docsEnd}`;
  const old = existsSync(docsFile) ? readFileSync(docsFile, 'utf8') : '';
  const begin = old.indexOf(docsBegin);
  const end = old.indexOf(docsEnd);
  if (begin < 0 || end < begin)
    appendFileSync(docsFile, `${old === '' ? '# Performance\n' : ''}\n${section}\n`);
  else writeFileSync(docsFile, old.slice(0, begin) + section + old.slice(end + docsEnd.length));
}
