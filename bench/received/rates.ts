/**
 * How many messages a second are verified, told apart and durable: Comity against a floor that does the same, in turn within each round, by
 * several schemes; and the same with more keys stored.
 */
import { type Cell, measureRounds, ratioSpread, type Sample, type Spread, spreadOf } from '../cell.ts';
import { measureLoad } from '../measured-load.ts';
import type { Run } from '../measured-run.ts';
import type { ServerProcess } from '../server-process.ts';
import type { SigningScheme } from './messages.ts';
import { receivedPlan } from './received-plan.ts';
import { checkKept, type Side, startSide, stopSide } from './side.ts';

export type RateRow = {
  readonly title: string;
  /** As in the path of Comity. */
  readonly sender: string;
  readonly scheme: SigningScheme;
  /** How often each message is sent. */
  readonly sendings: number;
  /** Whether a function is given each message; the floor does nothing of the kind. */
  readonly isHandled?: boolean;
};

export const rateRows: readonly [RateRow, ...RateRow[]] = [
  { title: 'standard', sender: 'standard', scheme: 'standard', sendings: 1 },
  { title: 'standard, each sent twice', sender: 'standard', scheme: 'standard', sendings: 2 },
  { title: 'timestamped', sender: 'timestamped', scheme: 'timestamped', sendings: 1 },
  { title: 'plain', sender: 'plain', scheme: 'plain', sendings: 1 },
  {
    title: 'standard, handed to a function',
    sender: 'handled',
    scheme: 'standard',
    sendings: 1,
    isHandled: true,
  },
];

export type Rate = {
  readonly row: RateRow;
  readonly keys: number;
  readonly comity: Cell;
  readonly floor: Cell;
  readonly toFloor: Spread;
  /** Messages a second that the function was done with, from the first to the last; NaN where there is none. */
  readonly processedPerSecond: Spread;
};

export type Rates = {
  readonly rates: readonly Rate[];
  /** Cost of a message with the most keys against the fewest: Comity, floor; undefined where one number was asked for. */
  readonly growth: { readonly comity: Spread; readonly floor: Spread } | undefined;
  /** What is Comity's own with each number of keys, at the end. */
  readonly memoryBytes: ReadonlyMap<number, number>;
};

/** @param keys numbers of stored keys, each with a database of its own; with all but the first, the first row alone is measured */
export async function measureRates(
  run: Run,
  rows: readonly RateRow[],
  keys: readonly number[],
): Promise<Rates> {
  const sides: Side[] = [];
  try {
    for (const count of keys) sides.push(await startSide(run, count));
    const measured = sides.flatMap((side, at) =>
      rows.filter((_, place) => at === 0 || place === 0).map((row) => cellsOf(run, side, row)),
    );
    await measureRounds(
      measured.flatMap(({ comity, floor }) => [comity, floor]),
      run.options.rounds,
      run.options.settlingRounds,
      (round) => process.stderr.write(`${run.store}: receiving, round ${round + 1}\n`),
    );
    const rates = measured.map(({ rate }) => rate());
    const [few, many] = [rates[0], rates.find(({ keys: count }) => count === keys.at(-1))];
    const memoryBytes = sides.map(
      ({ keys: count, program }) => [count, program.server.ownMemoryBytes() ?? Number.NaN] as const,
    );
    await Promise.all(sides.map(checkKept));
    return {
      rates,
      growth: few === undefined || many === undefined || few === many ? undefined : growthOf(few, many),
      memoryBytes: new Map(memoryBytes),
    };
  } finally {
    await Promise.all(sides.map(stopSide));
  }
}

function growthOf(few: Rate, many: Rate): { readonly comity: Spread; readonly floor: Spread } {
  const perSecond = (sample: Sample): number => sample.requestsPerSecond;
  return {
    comity: ratioSpread(few.comity, many.comity, perSecond),
    floor: ratioSpread(few.floor, many.floor, perSecond),
  };
}

type Measured = { readonly comity: Cell; readonly floor: Cell; rate(): Rate };

function cellsOf(run: Run, side: Side, row: RateRow): Measured {
  const processed: number[] = [];
  const cell = (of: Cell['side'], server: ServerProcess, measure: () => Promise<Sample>): Cell => ({
    ...{ name: row.title, kind: 'received', side: of, rows: side.keys, samples: [], measure },
    memoryBytes: server.memoryBytes,
  });
  const comity = cell('comity', side.program.server, async () => {
    const { sample, processedPerSecond } = await measureComity(run, side, row);
    processed.push(processedPerSecond);
    return sample;
  });
  const floor = cell('floor', side.floor, async () => {
    const { sample } = await measureLoad(run, side.floor, receivedPlan(run, side.floor, row, row.scheme));
    return sample;
  });
  const rate = (): Rate => ({
    ...{ row, keys: side.keys, comity, floor },
    toFloor: ratioSpread(comity, floor, (sample) => sample.requestsPerSecond),
    processedPerSecond: spreadOf(processed.slice(-run.options.rounds)),
  });
  return { comity, floor, rate };
}

/** @throws where what the program counted is not what was answered */
async function measureComity(
  run: Run,
  { program }: Side,
  row: RateRow,
): Promise<{ readonly sample: Sample; readonly processedPerSecond: number }> {
  const before = await program.counted(row.sender);
  const startedMs = performance.now();
  const { sample, result } = await measureLoad(
    run,
    program.server,
    receivedPlan(run, program.server, row, row.sender),
  );
  const after = await program.counted(row.sender);
  const accepted = after.accepted - before.accepted;
  const duplicate = after.duplicate - before.duplicate;
  // Also counts those whose response the round did not wait for: each connection may end between a message and its repetition.
  const repeated = accepted * (row.sendings - 1);
  const cut = run.options.connections * (row.sendings - 1);
  if (accepted + duplicate < result.answersTotal || duplicate > repeated || duplicate < repeated - cut)
    throw new Error(
      `${row.title}: ${result.answersTotal} were answered, ${accepted} accepted, and ${duplicate} known before`,
    );
  if (row.isHandled !== true) return { sample, processedPerSecond: Number.NaN };
  await program.awaitProcessed(row.sender, after.accepted);
  const elapsedS = (performance.now() - startedMs) / 1000;
  return { sample, processedPerSecond: (after.accepted - before.processed) / elapsedS };
}
