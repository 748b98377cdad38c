/**
 * The proof that a crash loses no event: the program is killed at random moments while clients write, and what a receiver got is held
 * against the log. A life is the time from one start of the program to its kill.
 *
 * - Every event that stands in the log comes to every endpoint; every write that was acknowledged has its event there.
 * - In one life no event comes twice. One that comes again in a later life was on its way, or its answer was, when the program was
 *   killed: there are no more of them than may be under way and be written down at once, and the log holds one attempt for each.
 * - What comes again is the same, octet by octet, under the same id; and nothing comes that is not in the log.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { type Received, type Receiver, startReceiver } from '../../../examples/receiver/start-receiver.ts';
import type { Delivery } from '../../../src/model/delivery.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually, until } from '../../harness/until.ts';
import { allItems, items, localEgress, makeEndpoint } from './program-with-receiver.ts';

const base = '/api/v1';
const writers = 8;
/** One answers at once; one keeps answers on their way for a while. */
const paths = ['/ok/quick', '/slow/25/late'];
/** Attempts under way at once: so few that others wait when the program is killed. As many again may be written down. */
const inFlightMax = 4;
const unsettledMax = 2 * inFlightMax;

export type CrashOptions = {
  readonly rounds: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Of ten restarts, so many are killed again while they catch up. */
  readonly killsAgainOfTen: number;
};

export type CrashFigures = {
  readonly rounds: number;
  kills: number;
  acknowledged: number;
  /** Events of the log: those that were acknowledged, and those whose acknowledgement was cut off. */
  events: number;
  /** Requests that the receiver got. */
  received: number;
  /** Of those, events that had come before. */
  duplicates: number;
  /** The most of them that one kill made. */
  duplicatesOfKillMax: number;
  /** The longest time between the coming of such an event and the kill. */
  ageOfDuplicateMsMax: number;
  /** Deliveries that a kill had left to do. */
  leftToDo: number;
  lost: number;
};

const fewAtATime = { COMITY_WEBHOOK_IN_FLIGHT_MAX: String(inFlightMax) };

/** What came of one event at one endpoint: in which lives, and with which content. */
type Came = { readonly lives: number[]; readonly body: string; lastAt: number };

/** What the program has gone through, life by life. Times are milliseconds since the epoch. */
type Lives = {
  readonly killedAt: number[];
  /** When nothing of that life could come any more. */
  readonly overAt: number[];
  /** Events of that life which came again. */
  readonly duplicates: number[];
};

/** @throws AssertionError at the first thing that does not hold */
export async function crashRounds({ rounds, env, killsAgainOfTen }: CrashOptions): Promise<CrashFigures> {
  const counted: CrashFigures = {
    ...{ rounds, kills: 0, acknowledged: 0, events: 0, received: 0, leftToDo: 0, lost: 0 },
    ...{ duplicates: 0, duplicatesOfKillMax: 0, ageOfDuplicateMsMax: 0 },
  };
  const folder = temporaryFolder();
  const came = new Map<string, Came>();
  const lives: Lives = { killedAt: [], overAt: [], duplicates: [] };
  const receiver = await startReceiver({ onReceived: (one) => note(came, one, lives, counted) });
  const start = (): Promise<ServerProcess> =>
    spawnServer({ folder, env: { ...localEgress, ...fewAtATime, ...env } });
  let program = await start();
  const kill = async (): Promise<void> => {
    lives.killedAt.push(Date.now());
    await program.kill();
    // What the killed one had sent is still read. Connections are taken in order: once ours is, all of its own were.
    await headOf(receiver);
    await receiver.idle();
    lives.overAt.push(Date.now());
    counted.kills += 1;
  };
  try {
    for (const path of paths) await makeEndpoint({ program, receiver }, `${receiver.url}${path}`);
    for (let round = 1; round <= rounds; round += 1) {
      const acknowledged = new Set<string>();
      const agent = new Agent({ keepAlive: true, maxSockets: writers });
      const writing = Array.from({ length: writers }, (_, writer) =>
        writeUntilKilled({ port: program.port, agent, round, writer, acknowledged }),
      );
      // A program that has just started on a busy machine may answer little within the pause.
      const begun = until(() => acknowledged.size >= writers, 'the round has begun');
      await Promise.race([begun, Promise.all(writing)]);
      await pause(0, 300);
      await kill();
      await Promise.all(writing);
      agent.destroy();
      if (Math.random() * 10 < killsAgainOfTen) {
        program = await start();
        await pause(0, 200);
        await kill();
      }
      program = await start();
      counted.acknowledged += acknowledged.size;
      await checkRound({ program, receiver, round, acknowledged, came, counted });
      checkLives(came);
    }
    await checkLog(program);
    checkLives(came);
    const most = counted.duplicatesOfKillMax;
    assert.ok(most <= unsettledMax, `${most} came again after a kill, ${unsettledMax} may be unsettled`);
    await program.stop();
  } finally {
    await program.kill();
    await receiver.close();
  }
  return counted;
}

function note(came: Map<string, Came>, one: Received, lives: Lives, counted: CrashFigures): void {
  counted.received += 1;
  assert.equal(one.verdict, 'verified');
  const key = `${one.path} ${one.id}`;
  const before = came.get(key);
  const life = lives.overAt.filter((overAt) => overAt < one.at).length;
  if (before === undefined) {
    came.set(key, { lives: [life], body: one.body, lastAt: one.at });
    return;
  }
  assert.equal(one.body, before.body, `${key} came again with other content`);
  const earlier = before.lives.at(-1) ?? 0;
  const ofKill = (lives.duplicates[earlier] ?? 0) + 1;
  lives.duplicates[earlier] = ofKill;
  counted.duplicates += 1;
  counted.duplicatesOfKillMax = Math.max(counted.duplicatesOfKillMax, ofKill);
  const age = (lives.killedAt[earlier] ?? one.at) - before.lastAt;
  counted.ageOfDuplicateMsMax = Math.max(counted.ageOfDuplicateMsMax, age);
  before.lives.push(life);
  before.lastAt = one.at;
}

type Writing = {
  readonly port: number;
  readonly agent: Agent;
  readonly round: number;
  readonly writer: number;
  /** Ids of the resources whose write was answered. */
  readonly acknowledged: Set<string>;
};

/** Every second writer posts events, the others write resources, one after the other without pause, until the connection breaks. */
async function writeUntilKilled(writing: Writing): Promise<void> {
  const { port, agent, round, writer, acknowledged } = writing;
  for (let turn = 0; ; turn += 1) {
    const id = `r${round}-w${writer}-${turn}`;
    const event = { type: 'crash.survived', data: { object: { id } } };
    const status = await (writer % 2 === 0
      ? ask(port, agent, 'POST', `${base}/events`, event)
      : ask(port, agent, 'PUT', `${base}/articles/${id}`, { title: id, published: true })
    ).catch(() => undefined);
    if (status === undefined) return;
    assert.equal(status, writer % 2 === 0 ? 202 : 201);
    acknowledged.add(id);
  }
}

function ask(port: number, agent: Agent, method: string, path: string, json: unknown): Promise<number> {
  const body = JSON.stringify(json);
  const headers = {
    Authorization: `Bearer ${adminKey}`,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent, method, path, headers }, (answer) => {
      answer.on('error', reject);
      answer.on('end', () => (answer.complete ? resolve(answer.statusCode ?? 0) : reject(new Error('cut'))));
      answer.resume();
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

type Round = {
  readonly program: ServerProcess;
  readonly receiver: Receiver;
  readonly round: number;
  readonly acknowledged: ReadonlySet<string>;
  readonly came: ReadonlyMap<string, Came>;
  readonly counted: CrashFigures;
};

type Event = { readonly id: string; readonly data: { readonly object: { readonly id: string } } };

async function checkRound({ program, receiver, round, acknowledged, came, counted }: Round): Promise<void> {
  const keysOf = ({ id }: Event): readonly string[] => paths.map((path) => `${path} ${id}`);
  const log = await allItems<Event>(program, `${base}/events?data.object.id[like]=r${round}-%25`);
  counted.events += log.length;
  const objects = new Set(log.map(({ data }) => data.object.id));
  for (const id of acknowledged) assert.ok(objects.has(id), `${id} was acknowledged and has no event`);
  assert.equal(objects.size, log.length, 'a write has two events');
  assert.ok(acknowledged.size > 0, 'the round wrote something');

  const wanted = log.flatMap(keysOf);
  counted.leftToDo += wanted.filter((key) => !came.has(key)).length;
  const missing = (): readonly string[] => wanted.filter((key) => !came.has(key));
  const patience = AbortSignal.timeout(20_000);
  await Promise.race([
    receiver.until(() => missing().length === 0),
    new Promise((resolve) => patience.addEventListener('abort', resolve)),
  ]);
  counted.lost += missing().length;
  assert.deepEqual(
    missing().slice(0, 10),
    [],
    `of ${wanted.length} deliveries ${missing().length} were lost`,
  );
}

function checkLives(came: ReadonlyMap<string, Came>): void {
  for (const [key, { lives }] of came) {
    assert.equal(new Set(lives).size, lives.length, `${key} came twice in one life: ${lives.join(', ')}`);
  }
}

/** Once nothing is on its way any more, every delivery was acknowledged in the one attempt that is written down. */
async function checkLog(program: ServerProcess): Promise<void> {
  const count = async (filter: string): Promise<number> =>
    (await items<Delivery>(program, `${base}/deliveries?${filter}&limit=1`)).length;
  const settled = async (): Promise<true | undefined> =>
    (await count('status[ne]=delivered')) === 0 ? true : undefined;
  await eventually(settled, 'deliveries that were answered are not settled');
  assert.equal(await count('attemptCount[ne]=1'), 0, 'an attempt that was written down was made again');
}

function headOf(receiver: Receiver): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request(`${receiver.url}/log`, { method: 'HEAD', agent: false }, (answer) => {
      answer.resume().on('end', resolve);
    });
    asked.on('error', reject).end();
  });
}

function pause(least: number, most: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, least + Math.random() * (most - least)));
}
