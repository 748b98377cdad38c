/**
 * The whole of it: processes on one database under mixed load, killed one after the other and started again, the database
 * (a server of its own) restarted and the network cut meanwhile; then the proof. `mixed-load.test.ts` runs it for seconds, test/soak for as long as one likes.
 */
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { type Client, createClient, type Violations } from './client.ts';
import { type Fleet, startFleet } from './fleet.ts';
import { createJournal } from './journal.ts';
import { work } from './load.ts';
import { type Network, networkBefore } from './network.ts';
import { proveEvents, proveOperations, proveWrites } from './proof.ts';
import { startTail } from './tail.ts';

export type ShowOptions = {
  readonly processes: number;
  readonly workers: number;
  readonly tails: number;
  readonly loadMs: number;
  /** The load goes on until so many processes were killed, however slow the machine is to start them again. */
  readonly killsMin: number;
  /** And until so many requests had no answer, because a process died or lost its network. */
  readonly brokenMin: number;
  /** Whether operations are among the load; those that a dead process left take half a minute more. */
  readonly operations: boolean;
  /** Restarts of the database, spread over the load; each in another way. */
  readonly databaseRestarts: number;
};

export type Shown = {
  readonly violations: readonly string[];
  /** Figures of the run, for people, and to see that it was one. */
  readonly figures: Readonly<Record<string, number>>;
};

const base = '/api/v1';
const contestedResources = 4;
const killPauseMsMin = 300;
const killPauseMsSpread = 1200;
// A connection that stood for less than a second counts as a failed attempt, and the next is made after a pause.
const cutPauseMsMin = 1200;
const cutPauseMsSpread = 1800;
const cutHoldMsMax = 30;
const databaseAwayMs = 700;
const loadMsMore = 60_000;
const ways = ['immediate', 'kill', 'fast'] as const;

export async function show(options: ShowOptions): Promise<Shown> {
  const cluster = await ownCluster({ max_connections: '100' });
  const violations: Violations = [];
  let fleet: Fleet | undefined;
  let network: Network | undefined;
  try {
    network = await networkBefore(cluster.url);
    fleet = await startFleet(network.url, options.processes);
    return await run(fleet, network, options, violations, async (way) => {
      await (way === 'kill' ? cluster.kill() : cluster.stop(way));
      await pause(databaseAwayMs);
      await cluster.start();
    });
  } finally {
    await fleet?.stop();
    await network?.close();
    await cluster.dispose();
  }
}

async function run(
  fleet: Fleet,
  network: Network,
  options: ShowOptions,
  violations: Violations,
  restartDatabase: (way: (typeof ways)[number]) => Promise<void>,
): Promise<Shown> {
  const collection = `${base}/products`;
  const category = await fleet.pick().send('POST', `${base}/categories`, { json: { name: 'C' } });
  const categoryId = String(category.json().id);
  const contested: string[] = [];
  for (let index = 0; index < contestedResources; index += 1) {
    const json = { name: `contested ${index}`, price: 1, categoryId, tags: [] };
    contested.push(String((await fleet.pick().send('POST', collection, { json })).headers.location));
  }
  const { items } = (await fleet.pick().send('GET', `${base}/events?limit=1`)).json();
  const first = String((items as { id: string }[])[0]?.id);
  const journal = createJournal(contested, violations);
  const client = createClient(fleet, violations);
  const tails = Array.from({ length: options.tails }, () => startTail(fleet, first));

  const end = Date.now() + options.loadMs;
  const ended = { kills: 0, stops: 0, cuts: 0 };
  const isEnough = () => ended.kills >= options.killsMin && client.counts.broken >= options.brokenMin;
  const goesOn = () => Date.now() < end || (!isEnough() && Date.now() < end + loadMsMore);
  const { operations } = options;
  const load = { client, journal, violations, collection, categoryId, operations, goesOn };
  const workers = Promise.all(Array.from({ length: options.workers }, (_, worker) => work(load, worker)));
  const killing = killRepeatedly(fleet, client, violations, goesOn, ended);
  const restarting = restartRepeatedly(options, restartDatabase);
  const cutting = cutRepeatedly(network, goesOn, ended);
  await Promise.all([workers, killing, restarting, cutting]);

  await proveOperations(fleet.pick(), journal, violations);
  const last = await client.insist('POST', collection, {
    json: { name: 'the last', price: 1, categoryId },
    headers: { 'Idempotency-Key': '"the last"' },
  });
  if (last?.status !== 201) throw new Error(`the service did not recover: ${last?.status} ${last?.body}`);
  const path = String(last.headers.location);
  journal.standing.set(path, { path, name: 'the last', etag: String(last.headers.etag) });
  const id = String(last.json().id);
  for (const [index, tail] of tails.entries()) {
    const saw = await tail.saw(({ data }) => data.includes(id));
    if (!saw) violations.push(`tail ${index} did not see the last event`);
    await tail.stop();
  }
  const seen = tails.map(({ events }) => events);
  for (const program of fleet.running) await proveWrites(program, collection, journal, violations);
  await proveEvents(fleet.pick(), `${base}/events`, first, seen, journal, violations);
  for (const death of fleet.deaths) violations.push(`a process ended by itself: ${death}`);
  const attempts = [...journal.contested.values()].flat();
  return {
    violations,
    figures: {
      ...client.counts,
      ...ended,
      versions: journal.versions,
      operations: journal.accepted.size,
      standing: journal.standing.size,
      deleted: journal.deleted.size,
      unknown: journal.perhapsMade.size + journal.perhapsDeleted.size,
      changesMade: attempts.filter(({ fate }) => fate === 'made').length,
      changesLost: attempts.filter(({ fate }) => fate === 'not-made').length,
      changesUnknown: attempts.filter(({ fate }) => fate === 'unknown').length,
      events: seen[0]?.length ?? 0,
      streamConnections: tails.reduce((sum, { connections }) => sum + connections, 0),
    },
  };
}

async function killRepeatedly(
  fleet: Fleet,
  client: Client,
  violations: Violations,
  goesOn: () => boolean,
  ended: { kills: number; stops: number },
): Promise<void> {
  while (goesOn()) {
    await pause(killPauseMsMin + Math.random() * killPauseMsSpread);
    const how = Math.random() < 0.75 ? 'kill' : 'stop';
    const code = await fleet.restart(client.busiest(), how);
    if (how === 'kill') ended.kills += 1;
    else ended.stops += 1;
    if (how === 'stop' && code !== 0) violations.push(`a process that was told to stop ended with ${code}`);
  }
}

/** The network loses what the database answers, and a moment later every connection to it: what was sent may have been done. */
async function cutRepeatedly(
  network: Network,
  goesOn: () => boolean,
  ended: { cuts: number },
): Promise<void> {
  while (goesOn()) {
    await pause(cutPauseMsMin + Math.random() * cutPauseMsSpread);
    await network.cut(Math.random() * cutHoldMsMax);
    ended.cuts += 1;
  }
}

async function restartRepeatedly(
  { databaseRestarts, loadMs }: ShowOptions,
  restart: (way: (typeof ways)[number]) => Promise<void>,
): Promise<void> {
  for (let index = 0; index < databaseRestarts; index += 1) {
    await pause(loadMs / (databaseRestarts + 1));
    await restart(ways[index % ways.length] ?? 'immediate');
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
