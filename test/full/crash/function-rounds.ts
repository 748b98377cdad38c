/**
 * The proof that subscribers and jobs are exact: the program is killed at random moments while writes come in, and what
 * stands at the end is held against what was answered.
 *
 * - Every write that was answered has one entry, every run of the job too, and the sum is that of the entries.
 * - Entries of one line are in the order of their writes.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { allOf, quiet } from '../../wire/received/messages.ts';

export const countingConfig = fileURLToPath(
  new URL('../../wire/logic/fixtures/counting.config.ts', import.meta.url),
);

const writers = 6;
/** In which one message at least must be done. */
const patienceMs = 120_000;

export type FunctionFigures = { kills: number; acknowledged: number; runs: number; leftToDo: number };

export async function functionCrashRounds(options: {
  readonly rounds: number;
  readonly env?: Readonly<Record<string, string>>;
}): Promise<FunctionFigures> {
  const folder = temporaryFolder();
  const start = () => spawnServer({ folder, env: options.env ?? {}, config: countingConfig });
  const figures: FunctionFigures = { kills: 0, acknowledged: 0, runs: 0, leftToDo: 0 };
  const acknowledged = new Map<string, number>();
  let program = await start();
  try {
    for (let round = 0; round < options.rounds; round += 1) {
      const ended = new AbortController();
      const writing = Array.from({ length: writers }, (_, line) =>
        keepWriting(program, ended.signal, acknowledged, line),
      );
      const least = acknowledged.size + writers;
      const begun = until(() => acknowledged.size >= least, 'the round has begun');
      await Promise.race([begun, Promise.all(writing)]);
      await delay(400 + Math.random() * 700);
      await program.kill();
      figures.kills += 1;
      ended.abort();
      await Promise.all(writing);
      program = await start();
      figures.leftToDo += (await allOf(program, 'received?status=pending&fields=id')).length;
    }
    await quiet(program, 'sender=subscriber:book&status=pending', patienceMs);
    await judge(program, acknowledged, figures);
    await program.stop();
  } finally {
    await program.kill();
  }
  return figures;
}

/** Each writer has a line of its own, and half of its writes have none. */
async function keepWriting(
  program: ServerProcess,
  signal: AbortSignal,
  acknowledged: Map<string, number>,
  writer: number,
): Promise<void> {
  while (!signal.aborted) {
    const amount = 1 + Math.floor(Math.random() * 9);
    const line = Math.random() < 0.5 ? { line: `line ${writer}` } : {};
    try {
      const answer = await program.send('POST', '/api/v1/amounts', { json: { amount, ...line } });
      if (answer.status === 503) continue;
      assert.equal(answer.status, 201);
      acknowledged.set(String(answer.json().id), amount);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // The connection broke with the program; whether the write was committed is not known.
    }
    await delay(40);
  }
}

async function judge(
  program: ServerProcess,
  acknowledged: ReadonlyMap<string, number>,
  figures: FunctionFigures,
): Promise<void> {
  const amounts = await allOf(program, 'amounts?sort=id');
  const byId = new Map(amounts.map((each) => [String(each.id), each]));
  for (const id of acknowledged.keys()) assert.ok(byId.has(id), `${id} was answered and is gone`);
  // The job goes on: its entries and the sum are of one moment only in one list.
  const moment = async () => {
    const entries = await allOf(program, 'entries?sort=id');
    const sum = Number((await program.send('GET', '/api/v1/sums/all')).json().amount);
    return { entries, sum, total: entries.reduce((before, { amount }) => before + Number(amount), 0) };
  };
  let found = await moment();
  for (let tries = 0; tries < 5 && found.sum !== found.total; tries += 1) found = await moment();
  assert.equal(found.sum, found.total, 'the sum is not that of the entries');
  const ofWrites = found.entries.filter(({ of }) => byId.has(String(of)));
  assert.deepEqual(ofWrites.map(({ of }) => of).sort(), [...byId.keys()].sort(), 'writes and entries differ');
  const runs = await allOf(program, 'received?sender=job:tick');
  const ofRuns = found.entries.filter(({ amount }) => Number(amount) === 1000);
  assert.equal(ofRuns.length + ofWrites.length, found.entries.length);
  const processed = new Set(
    runs.filter(({ status }) => status === 'processed').map((each) => each.dedupeKey),
  );
  for (const { of } of ofRuns) processed.delete(of);
  assert.ok(processed.size <= 1, `runs without an entry: ${[...processed]}`);
  for (let writer = 0; writer < writers; writer += 1) {
    const line = `line ${writer}`;
    const written = amounts.filter((each) => each.line === line).map(({ id }) => id);
    const booked = ofWrites.filter((each) => each.line === line).map(({ of }) => of);
    assert.deepEqual(booked, written, `${line} is out of order`);
  }
  figures.acknowledged = acknowledged.size;
  figures.runs = ofRuns.length;
}
