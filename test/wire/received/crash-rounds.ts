/**
 * The proof that what was answered 2xx is handled, and its writes made once: the program is killed at random moments while messages come in and
 * handlers run, and what stands at the end is held against what was answered.
 *
 * - Every message that was answered is `processed` in the end, and is there once, however often it was sent.
 * - Its handler's entry stands once, and the sum of all amounts is that of the entries: nothing was written twice, or by halves.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import {
  allOf,
  bankMessage,
  ledgerConfig,
  ledgerEnvironment,
  type Message,
  quiet,
  sendToBank,
} from './messages.ts';

const writers = 8;
/** Of a message in ten, how long its handler takes. */
const pauseMs = 60;
/** In which one message at least must be done. */
const patienceMs = 120_000;

export type CrashFigures = {
  kills: number;
  /** Requests that were answered 204. */
  acknowledged: number;
  /** Of these, messages that were there already. */
  repeated: number;
  /** Messages in the inbox at the end. */
  messages: number;
  /** Of them, messages that a kill had left to do. */
  leftToDo: number;
  /** Attempts at them, of which a kill may cut one off without a trace. */
  attempts: number;
};

export async function crashRounds(options: {
  readonly rounds: number;
  readonly env?: Readonly<Record<string, string>>;
}): Promise<CrashFigures> {
  const folder = temporaryFolder();
  const env = { ...ledgerEnvironment, ...options.env };
  const start = () => spawnServer({ folder, env, config: ledgerConfig });
  const figures: CrashFigures = {
    ...{ kills: 0, acknowledged: 0, repeated: 0, messages: 0, leftToDo: 0, attempts: 0 },
  };
  const acknowledged = new Map<string, Message>();
  let program = await start();
  try {
    for (let round = 0; round < options.rounds; round += 1) {
      const handled = async () => (await allOf(program, 'received?status=processed&fields=id')).length;
      const before = await handled();
      const ended = new AbortController();
      const sending = Array.from({ length: writers }, () =>
        keepSending(program, ended.signal, acknowledged, figures),
      );
      const begun = until(async () => (await handled()) > before, 'a message is handled');
      await Promise.race([begun, Promise.all(sending)]);
      await delay(Math.random() * 400);
      await program.kill();
      figures.kills += 1;
      ended.abort();
      await Promise.all(sending);
      program = await start();
      const waiting = await allOf(program, 'received?status=pending&fields=id');
      figures.leftToDo += waiting.length;
    }
    await quiet(program, 'status=pending', patienceMs);
    await judge(program, acknowledged, figures);
    await program.stop();
  } finally {
    await program.kill();
  }
  return figures;
}

/** New messages, and now and then one that was answered before. */
async function keepSending(
  program: ServerProcess,
  signal: AbortSignal,
  acknowledged: Map<string, Message>,
  figures: CrashFigures,
): Promise<void> {
  while (!signal.aborted) {
    const known = [...acknowledged.values()];
    const repeated = known.length > 0 && Math.random() < 0.2;
    const pause = Math.random() < 1 / 10 ? { pauseMs } : {};
    const message = repeated
      ? (known[Math.floor(Math.random() * known.length)] ?? bankMessage({ amount: 1 }))
      : bankMessage({ amount: 1 + Math.floor(Math.random() * 9), ...pause });
    try {
      const { status } = await sendToBank(program, message);
      if (status === 503) continue;
      assert.equal(status, 204);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // The connection broke with the program; whether the message was kept is not known.
      continue;
    }
    figures.acknowledged += 1;
    if (repeated) figures.repeated += 1;
    acknowledged.set(message.id, message);
  }
}

async function judge(
  program: ServerProcess,
  acknowledged: ReadonlyMap<string, Message>,
  figures: CrashFigures,
): Promise<void> {
  const inbox = await allOf(program, 'received');
  const entries = await allOf(program, 'entries');
  const processed = new Map(inbox.map((each) => [String(each.dedupeKey), each]));
  assert.equal(processed.size, inbox.length, 'a message is there twice');
  for (const id of acknowledged.keys()) {
    assert.equal(
      processed.get(id)?.status,
      'processed',
      `${id} was answered and is ${processed.get(id)?.status}`,
    );
  }
  const booked = new Map(entries.map((each) => [String(each.message), Number(each.amount)]));
  assert.deepEqual([...booked.keys()].sort(), [...processed.keys()].sort(), 'messages and entries differ');
  const sum = (await program.send('GET', '/api/v1/sums/all')).json();
  assert.equal(
    sum.amount,
    [...booked.values()].reduce((one, other) => one + other, 0),
  );
  figures.messages = inbox.length;
  figures.attempts = inbox.reduce((attempts, each) => attempts + Number(each.attempts), 0);
}
