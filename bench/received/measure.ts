/** The rows of webhooks in, as text: what is accepted, what more stored keys cost, and how soon the answer comes while handlers are stuck. */
import { medianOf, type Spread } from '../cell.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { latencies, megabytes, spreadText, verdict } from '../table.ts';
import { growthMost, receivedTargets } from '../targets.ts';
import { measureRates, type Rate, type Rates, rateRows } from './rates.ts';
import { type Acknowledged, measureStuck, stuckSenders } from './stuck.ts';

/** A cell that is shorter than this only shows that everything runs. */
const smokeMs = 500;
const generatorBusyMost = 0.95;

const stuckTitles = {
  standard: 'wait to be marked',
  waiting: 'are given to a function that never ends',
  looping: 'are given to a function that keeps its thread',
} as const;

/** Says the rows, and returns every figure of them. */
export async function measureReceived(run: Run): Promise<unknown> {
  say(run, ...machine(run));
  const isSmoke = run.options.measuredMs < smokeMs;
  const numbers = run.options.rows[run.store];
  const [few, many] = [Math.min(...numbers), Math.max(...numbers)];
  const rows = isSmoke ? rateRows.filter(({ sendings }) => sendings > 1) : rateRows;
  const rates = await measureRates(run, rows, few === many ? [few] : [few, many]);
  sayRates(run, rates);
  const half = Math.ceil(medianOf(firstOf(rates).comity, perSecond) / 2);
  const stuck = await measureStuck(run, half, isSmoke ? ['looping'] : stuckSenders);
  sayStuck(run, stuck, half);
  return { report: run.report, store: run.store, ...rates, memoryBytes: [...rates.memoryBytes], half, stuck };
}

function firstOf({ rates }: Rates): Rate {
  const [first] = rates;
  if (first === undefined) throw new Error('nothing was received');
  return first;
}

function perSecond({ requestsPerSecond }: { readonly requestsPerSecond: number }): number {
  return requestsPerSecond;
}

function sayRates(run: Run, { rates, growth, memoryBytes }: Rates): void {
  say(
    run,
    '',
    'Messages of 1 KiB, verified, told apart and durable before they are answered:',
    '',
    '| signed by | keys stored | Comity/floor (spread) | target | Comity/s | floor/s | Comity p50/p90/p99/max ms | floor p50/p90/p99/max ms | CPU us Comity, floor |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rates.map(rateLine),
    '',
  );
  if (growth !== undefined) {
    const [few, many] = [...memoryBytes.keys()].map((count) => count.toLocaleString('en'));
    const verdictText = verdict(growth.comity.median <= growthMost);
    say(
      run,
      `a message with ${many} keys stored costs ${spreadText(growth.comity)} times what it costs with ${few}, target <= ${growthMost} ${verdictText}; the floor's ${spreadText(growth.floor)} times`,
    );
  }
  for (const { row, processedPerSecond } of rates) {
    if (row.isHandled !== true) continue;
    say(run, `of those handed to a function, ${whole(processedPerSecond)} a second were processed`);
  }
  const memory = [...memoryBytes].map(
    ([count, bytes]) => `${megabytes(bytes)} MB with ${count.toLocaleString('en')} keys`,
  );
  say(run, `memory afterwards, without mapped files: ${memory.join(', ')}`, generatorLine(rates));
}

function rateLine({ row, keys, comity, floor, toFloor }: Rate): string {
  const least = receivedTargets.toFloorLeast;
  const target = row.isHandled === true ? 'none' : `>= ${least} ${verdict(toFloor.median >= least)}`;
  const processor = [comity, floor].map((cell) =>
    medianOf(cell, ({ processorUsPerRequest }) => processorUsPerRequest ?? Number.NaN).toFixed(1),
  );
  const cells = [
    ...[row.title, keys.toLocaleString('en'), spreadText(toFloor), target],
    ...[comity, floor].map((cell) => medianOf(cell, perSecond).toFixed(0)),
    ...[latencies(comity), latencies(floor), processor.join(', ')],
  ];
  return `| ${cells.join(' | ')} |`;
}

function generatorLine(rates: readonly Rate[]): string {
  const samples = rates.flatMap(({ comity, floor }) => [...comity.samples, ...floor.samples]);
  const busy = Math.max(...samples.map(({ generatorBusy }) => generatorBusy));
  const warning = busy > generatorBusyMost ? ': TOO BUSY, the figures above are partly its own' : '';
  return `Load generator, which signs: at most ${(busy * 100).toFixed(0)} % of its processor${warning}.`;
}

function sayStuck(run: Run, stuck: readonly Acknowledged[], half: number): void {
  const most = receivedTargets.stuckP99MsMost;
  for (const { sender, p50Ms, p99Ms, perSecond: reached } of stuck) {
    const judged = sender === 'standard' ? '' : `, target < ${most} ${verdict(p99Ms.median < most)}`;
    say(
      run,
      `at ${half}/s, while messages ${stuckTitles[sender]}: answered after p50 ${spreadText(p50Ms)} ms, p99 ${spreadText(p99Ms)} ms${judged}; ${whole(reached)}/s were`,
    );
  }
}

function whole(spread: Spread): string {
  return `${Math.round(spread.median)} (${Math.round(spread.least)}-${Math.round(spread.most)})`;
}
