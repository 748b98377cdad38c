/**
 * Many documents at once over one connection: bulk creates against single creates, documents a minute, and an aggregate
 * over them against the same grouping in SQL by a client of the database itself.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { Agent, request } from 'undici';
import { spreadOf } from '../cell.ts';
import { adminKey, environmentAt, type Place } from '../engine.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { spreadText, verdict } from '../table.ts';
import { aggregateLeast, bulkLeast, bulkMinuteLeast } from '../targets.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const itemsPerRequest = 1000;
const documents = 50_000;
const text = 'Enamelled kettle, 1.5 litres, in the colours of the season';
const groups = 50;
const msPerMinute = 60_000;

export async function measureBulk(run: Run): Promise<unknown> {
  say(run, ...machine(run), '');
  const place = run.engine.newPlace();
  const server = await startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...environmentAt(place),
    COMITY_CONFIG: join(root, 'bench', 'functions', 'comity.config.ts'),
    HANDLED_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  });
  const agent = new Agent({ connections: 1, pipelining: 1 });
  try {
    const creates = await measureCreates(run, server, agent);
    const aggregates = await measureAggregates(run, server, agent, place);
    return { report: run.report, store: run.store, creates, aggregates };
  } finally {
    await agent.close();
    await server.stop();
  }
}

async function measureCreates(run: Run, server: ServerProcess, agent: Agent): Promise<unknown> {
  const singles: number[] = [];
  const bulks: number[] = [];
  let made = 0;
  for (let round = -run.options.settlingRounds; round < run.options.rounds || made < documents; round += 1) {
    const single = await rateOf(run, async () => {
      await send(server, agent, 'POST', 'plain', { text, count: 1 });
      return 1;
    });
    const bulk = await rateOf(run, async () => {
      const items = Array.from({ length: itemsPerRequest }, (_, at) => ({ text, count: at % groups }));
      await send(server, agent, 'POST', 'plain/bulk', { items });
      made += itemsPerRequest;
      return itemsPerRequest;
    });
    if (round < 0) continue;
    singles.push(single);
    bulks.push(bulk);
  }
  const ratio = spreadOf(bulks.map((rate, round) => rate / (singles[round] ?? Number.NaN)));
  const minute = spreadOf(bulks.map((rate) => rate * (msPerMinute / 1000)));
  say(
    run,
    `bulk creates of ${itemsPerRequest} against single creates, over one connection: ${spreadText(ratio)}, target >= ${bulkLeast} ${verdict(ratio.median >= bulkLeast)}`,
    `documents a minute by bulk creates over one connection: ${minute.median.toFixed(0)}, target >= ${bulkMinuteLeast} ${verdict(minute.median >= bulkMinuteLeast)}`,
  );
  return { singles, bulks };
}

/** @returns what was done in a second */
async function rateOf(run: Run, act: () => Promise<number>): Promise<number> {
  const begun = performance.now();
  let done = 0;
  while (performance.now() - begun < run.options.measuredMs) done += await act();
  return (done * 1000) / (performance.now() - begun);
}

async function measureAggregates(
  run: Run,
  server: ServerProcess,
  agent: Agent,
  place: Place,
): Promise<unknown> {
  const floor = await openFloor(place);
  const ours: number[] = [];
  const floors: number[] = [];
  try {
    for (let round = -run.options.settlingRounds; round < run.options.rounds; round += 1) {
      // Another text each time, so that no result is kept.
      const least = -1 - round - run.options.settlingRounds;
      const query = {
        filter: { count: { gt: least } },
        groupBy: ['count'],
        aggregate: { count: { notes: true }, sum: { total: 'count' } },
      };
      const own = await msOf(() => send(server, agent, 'QUERY', 'plain', query));
      const plain = await msOf(() => floor.query(least));
      if (round < 0) continue;
      ours.push(own);
      floors.push(plain);
    }
  } finally {
    await floor.close();
  }
  const ratio = spreadOf(floors.map((ms, round) => ms / (ours[round] ?? Number.NaN)));
  say(
    run,
    `an aggregate in ${groups} groups against the same SQL by a client of the database: ${spreadText(ratio)} ` +
      `(${spreadOf(ours).median.toFixed(0)} and ${spreadOf(floors).median.toFixed(0)} ms), target >= ${aggregateLeast} ${verdict(ratio.median >= aggregateLeast)}`,
  );
  return { ours, floors };
}

async function msOf(act: () => unknown): Promise<number> {
  const begun = performance.now();
  await act();
  return performance.now() - begun;
}

type Floor = {
  readonly query: (least: number) => unknown;
  readonly close: () => unknown;
};

async function openFloor(place: Place): Promise<Floor> {
  if (place.store === 'sqlite') {
    const database = new DatabaseSync(join(place.folder, 'comity.db'), { readOnly: true });
    const value = "json_extract(doc, '$.count')";
    const statement = database.prepare(
      `SELECT ${value}, count(*), sum(${value}) FROM plain WHERE deleted_at IS NULL AND ${value} > ? GROUP BY 1`,
    );
    return { query: (least) => statement.all(least), close: () => database.close() };
  }
  const client = new pg.Client({ connectionString: place.url });
  await client.connect();
  const value = "((doc::jsonb ->> 'count')::float8)";
  const sql = `SELECT ${value}, count(*), sum(${value}) FROM "${place.schema}".plain WHERE deleted_at IS NULL AND ${value} > $1 GROUP BY 1`;
  return { query: (least) => client.query(sql, [least]), close: () => client.end() };
}

async function send(
  { host, port }: ServerProcess,
  dispatcher: Agent,
  method: 'POST' | 'QUERY',
  path: string,
  content: object,
): Promise<void> {
  const { statusCode, body } = await request(`http://${host}:${port}/api/v1/${path}`, {
    method: method as 'POST',
    dispatcher,
    headers: { 'X-API-Key': adminKey, 'Content-Type': 'application/json' },
    body: JSON.stringify(content),
  });
  const answer = await body.text();
  if (statusCode >= 300)
    throw new Error(`${method} ${path} is answered with status ${statusCode}: ${answer}`);
}
