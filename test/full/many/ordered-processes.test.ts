/** The order by key with two processes on one database: each takes writes, and handles or delivers events, and one of them ends in between. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { listen } from '../../harness/listening.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { allOf } from '../../wire/received/messages.ts';

const config = fileURLToPath(new URL('../../wire/logic/fixtures/subscribers.config.ts', import.meta.url));
const count = 12;

test('events of one key keep their order across two processes, retries and a kill', async () => {
  const database = await databaseOfProgram(config);
  const folder = temporaryFolder();
  const env = { COMITY_DATABASE_URL: database.url };
  const start = () => spawnServer({ config, env, folder });
  const servers: ServerProcess[] = [await start(), await start()];
  const [first = assert.fail(), second = assert.fail()] = servers;
  const write = async (server: ServerProcess, from: number, end: number): Promise<void> => {
    for (let at = from; at < end; at += 1) {
      const name = at % 4 === 1 ? 'fails' : 'step';
      for (const queue of ['red', 'blue']) {
        const into = servers.length === 2 && at % 2 === 1 ? second : server;
        const json = { title: `${name} ${at}`, queue };
        assert.equal((await into.send('POST', '/api/v1/tickets', { json })).status, 201);
      }
    }
  };
  try {
    await write(first, 0, count / 2);
    await second.kill();
    servers.pop();
    await write(first, count / 2, count);
    for (const queue of ['red', 'blue']) {
      const steps = () => allOf(first, `steps?queue=${queue}`);
      await until(async () => (await steps()).length === count, `all of ${queue} are done`, 60_000);
      assert.deepEqual(
        (await steps()).map(({ title }) => Number(String(title).split(' ')[1])),
        Array.from({ length: count }, (_, at) => at),
      );
    }
    await first.stop();
  } finally {
    for (const server of servers) await server.kill();
    await database.dispose();
  }
});

const orders = fileURLToPath(new URL('../../wire/webhooks/fixtures/orders.config.ts', import.meta.url));
const changes = 250;

type Answer = { readonly status: number; readonly body: string };

test('deliveries of one key keep their order across two processes, 1,000 changes of four rows and a kill', {
  timeout: 240_000,
}, async (t) => {
  const received = new Map<string, number[]>();
  const receiver = createServer(async (request, response) => {
    const { data } = (await json(request)) as {
      readonly data: { readonly id: string; readonly number: number };
    };
    received.set(data.id, [...(received.get(data.id) ?? []), data.number]);
    response.writeHead(204).end();
  });
  const { url } = await listen(receiver, t);
  const database = await databaseOfProgram(orders);
  const folder = temporaryFolder();
  const env = {
    ...{ COMITY_DATABASE_URL: database.url, COMITY_EGRESS_ALLOW: '127.0.0.0/8' },
    ...{ COMITY_RATE_LIMIT_WRITES: '0', COMITY_RATE_LIMIT_READS: '0' },
  };
  const start = () => spawnServer({ config: orders, env, folder });
  const [first, second]: readonly ServerProcess[] = [await start(), await start()];
  assert.ok(first !== undefined && second !== undefined);
  try {
    const endpoint = { url, events: ['orders.*'], orderBy: '/id' };
    assert.equal((await first.send('POST', '/api/v1/endpoints', { json: endpoint })).status, 201);
    const ids = await Promise.all(
      Array.from({ length: 4 }, async (_, at) => {
        const sent = { number: 0, state: 'new', customer: { id: String(at) } };
        const made = await first.send('POST', '/api/v1/orders', { json: sent });
        assert.equal(made.status, 201, made.body);
        return String((JSON.parse(made.body) as { readonly id: string }).id);
      }),
    );
    let isKilled = false;
    await Promise.all(
      ids.map(async (id) => {
        const change = (into: ServerProcess, number: number): Promise<Answer> =>
          into.send('PATCH', `/api/v1/orders/${id}`, { json: { number } });
        for (let number = 1; number <= changes; number += 1) {
          const into: ServerProcess = number % 2 === 0 && !isKilled ? second : first;
          const answer: Answer = await change(into, number).catch(
            (): Promise<Answer> => change(first, number),
          );
          assert.equal(answer.status, 200, answer.body);
          if (number !== changes / 2 || isKilled) continue;
          isKilled = true;
          await second.kill();
        }
      }),
    );
    const isComplete = () => ids.every((id) => received.get(id)?.at(-1) === changes);
    await until(isComplete, 'every last change is delivered', 120_000);
    for (const id of ids) {
      // What was sent and not yet noted when its process was killed is sent again.
      const numbers = (received.get(id) ?? []).filter((number, at, all) => number !== all[at - 1]);
      assert.deepEqual(
        numbers,
        Array.from({ length: changes + 1 }, (_, number) => number),
      );
    }
    await first.stop();
  } finally {
    for (const server of [first, second]) await server.kill();
    await database.dispose();
  }
});
