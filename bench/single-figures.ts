/**
 * The figures that have no floor: reads with a credential, reads while some log in, reads under a scan, idle memory, time to ready.
 */
import { measureAuthenticated } from './authenticated.ts';
import { measureBusyOwnRows } from './busy-own-rows.ts';
import { crowdOfClients, measureBusyRow } from './busy-row.ts';
import { spreadOf } from './cell.ts';
import { measureCommits } from './commits.ts';
import type { Subject } from './engine.ts';
import { measureLogins } from './logins.ts';
import { type Run, say } from './measured-run.ts';
import { planFor } from './pairs.ts';
import { measureScale } from './scale.ts';
import { measureScan } from './scan.ts';
import { megabytes, spreadText, verdict } from './table.ts';
import {
  busyRowLeast,
  busyRowP99Most,
  idleMemoryBytesMax,
  loginsP99Most,
  readyMsMax,
  scanP99Most,
} from './targets.ts';

const readyRoundsMax = 5;

/** Credentials, logins, scan, scaling, idle memory and time to ready: figures of Comity alone. */
export async function measureSingleFigures(run: Run): Promise<void> {
  const { options, pinning } = run;
  const rows = Math.max(...options.rows[run.store]);
  const subject = run.comities.get(rows);
  if (options.only.includes('authenticated')) await measureAuthenticated(run);
  if (subject !== undefined && options.only.includes('logins')) await sayLogins(run, subject, rows);
  if (subject !== undefined && options.only.includes('scan')) {
    const plan = { ...planFor(run, subject, rows), ratePerSecond: options.scanReadsPerSecond };
    const scan = await measureScan(pinning, plan, options.rounds);
    say(
      run,
      `p99 of reads by id at ${options.scanReadsPerSecond}/s over ${rows.toLocaleString('en')} rows: ${spreadText(milliseconds(scan.quietP99Us))} ms quiet, ` +
        `${spreadText(milliseconds(scan.scannedP99Us))} ms under a scan (${scan.searches} searches): ratio ${spreadText(scan.ratio)}, ` +
        `target <= ${scanP99Most} ${verdict(scan.ratio.median <= scanP99Most)}`,
    );
  }
  if (subject !== undefined && options.only.includes('busy-row')) await sayBusyRow(run, subject, rows);
  if (subject !== undefined && options.only.includes('busy-own-rows')) await measureBusyOwnRows(run, subject);
  if (options.only.includes('scale')) await measureScale(run);
  if (run.store === 'postgres' && options.only.includes('commits')) await measureCommits(run);
  for (const [rowsHere, { idleMemoryBytes }] of run.comities) {
    const met = idleMemoryBytes !== undefined && idleMemoryBytes < idleMemoryBytesMax;
    say(
      run,
      `idle memory with ${rowsHere.toLocaleString('en')} rows: ${megabytes(idleMemoryBytes)} MB, target < ${megabytes(idleMemoryBytesMax)} ${verdict(met)}`,
    );
  }
  await sayReady(run);
}

/** A first start makes the schema; every later one finds it. */
async function sayReady(run: Run): Promise<void> {
  const firstMs: number[] = [];
  const againMs: number[] = [];
  for (let round = 0; round < Math.min(readyRoundsMax, run.options.rounds); round += 1) {
    for (const [list, start] of [
      [firstMs, run.engine.startEmpty],
      [againMs, run.engine.startAgain],
    ] as const) {
      const { server } = await start();
      list.push(server.readyMs);
      await server.stop();
    }
  }
  const again = spreadOf(againMs);
  const judged = `target < ${readyMsMax} ${verdict(again.median < readyMsMax)}`;
  say(
    run,
    `process start to ready, ms: ${spreadText(again)}, ${judged}; the first over nothing ${spreadText(spreadOf(firstMs))}`,
  );
}

async function sayBusyRow(run: Run, subject: Subject, rows: number): Promise<void> {
  const { pinning, options } = run;
  const plan = planFor(run, subject, rows, 'change');
  const figures = await measureBusyRow(pinning, plan, options.rounds);
  const isMet = figures.ratio.median >= busyRowLeast;
  const isFair = figures.crowdP99ByMedian.median <= busyRowP99Most;
  say(
    run,
    `changes of one row by ${plan.connections} clients: ${spreadText(figures.one)} a second, of 200 rows ${spreadText(figures.many)}: ` +
      `ratio ${spreadText(figures.ratio)}, target >= ${busyRowLeast} ${verdict(isMet)}`,
    `changes of one row by ${crowdOfClients} clients, none refused: ${spreadText(figures.crowd)} a second, p99 ` +
      `${spreadText(figures.crowdP99ByMedian)} times the median, target <= ${busyRowP99Most} ${verdict(isFair)}`,
  );
}

async function sayLogins(run: Run, subject: Subject, rows: number): Promise<void> {
  const plan = { ...planFor(run, subject, rows), ratePerSecond: run.options.scanReadsPerSecond };
  const { quietP99Us, busyP99Us, ratio, loginsPerSecond } = await measureLogins(run, subject, plan);
  say(
    run,
    `p99 of reads by id at ${plan.ratePerSecond}/s over ${rows.toLocaleString('en')} rows: ${spreadText(milliseconds(quietP99Us))} ms quiet, ` +
      `${spreadText(milliseconds(busyP99Us))} ms while eight accounts log in again and again (${spreadText(loginsPerSecond)} logins a second): ` +
      `ratio ${spreadText(ratio)}, target <= ${loginsP99Most} ${verdict(ratio.median <= loginsP99Most)}`,
  );
}

function milliseconds(spread: { readonly median: number; readonly least: number; readonly most: number }) {
  return { median: spread.median / 1000, least: spread.least / 1000, most: spread.most / 1000 };
}
