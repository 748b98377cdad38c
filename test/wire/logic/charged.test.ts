/** The memory of what hooks and functions of messages read, and of what changes of long documents make, on both stores. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';
import { until } from '../../harness/until.ts';
import { allOf } from '../received/messages.ts';

const config = fileURLToPath(new URL('./fixtures/charged.config.ts', import.meta.url));
const MiB = 1024 * 1024;
const merge = { 'Content-Type': 'application/merge-patch+json' };

/** Some were carried out, and the others refused with the time to try again. */
function assertSomeRefused(answers: readonly Answer[], made: number): void {
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)].sort(), [made, 503], statuses.join());
  for (const { status, headers } of answers) if (status === 503) assert.equal(headers['retry-after'], '1');
}

for (const engine of engineNames) {
  describe(`memory of functions and long documents on ${engine}`, () => {
    let server: RunningServer;
    const ids: string[] = [];

    const start = serversOn(engine, config);
    before(async () => {
      server = await start({ COMITY_MEMORY_BYTES_MAX: String(16 * MiB) });
      for (let made = 0; made < 4; made += 1) {
        const answer = await server.send('POST', '/api/v1/texts', { json: { text: 'x'.repeat(900_000) } });
        ids.push(String(answer.json().id));
      }
    });

    const post = (collection: string): Promise<Answer> =>
      server.send('POST', `/api/v1/${collection}`, { json: { title: 'one' } });
    const open = (gate: string): Promise<Answer> =>
      server.send('POST', '/api/v1/gates', { json: { title: gate } });
    const gauge = async (name: string): Promise<number> => {
      const { body } = await server.send('GET', '/metrics');
      const line = body.split('\n').find((each) => each.startsWith(`${name} `));
      return Number(line?.slice(name.length + 1));
    };

    test('a hook that finds no room for its page is refused, and its write with it', async () => {
      const answers = Array.from({ length: 4 }, () => post('hooked'));
      const isRefused = async (answer: Promise<Answer>): Promise<void> =>
        assert.equal((await answer).status, 503);
      await Promise.any(answers.map(isRefused));
      await open('hooked');
      assertSomeRefused(await Promise.all(answers), 201);
      assert.equal((await post('hooked')).status, 201, 'there is room again');
    });

    test('a function of a message that finds no room is handed the message again, without an attempt', async () => {
      for (const { status } of await Promise.all(Array.from({ length: 4 }, () => post('followed'))))
        assert.equal(status, 201);
      const held = 'comity_memory_bytes{use="background"}';
      await until(async () => (await gauge(held)) > 0);
      await open('followed');
      await until(
        async () => (await allOf(server, 'received?sender=subscriber:holds&status=processed')).length === 4,
      );
      for (const { attempts } of await allOf(server, 'received?sender=subscriber:holds'))
        assert.equal(attempts, 1);
      await until(async () => (await gauge(held)) === 0);
    });

    test('changes of long documents beyond what may wait are refused, and the others are made', async () => {
      const change = (_: unknown, number: number): Promise<Answer> =>
        server.send('PATCH', `/api/v1/texts/${ids[number % ids.length]}`, {
          body: JSON.stringify({ number }),
          headers: merge,
        });
      assertSomeRefused(await Promise.all(Array.from({ length: 100 }, change)), 200);
      await until(async () => (await gauge('comity_made_bytes')) === 0);
      assert.equal((await change(undefined, 1000)).status, 200, 'there is room again');
    });
  });
}
