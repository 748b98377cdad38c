/**
 * A long deletion is killed at random moments (§4.7.6). While it is under way the named document exists and some of its
 * dependants do; after the restart it goes on, and each of them is deleted once. One round, five in the full tier.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/cascade.config.ts', import.meta.url));
const rounds = roundsOf(1, 5);
const comments = 200;
const folder = temporaryFolder();
const options = { config, folder, env: { COMITY_CASCADE_MAX: '5' } };
let program: ServerProcess | undefined;
after(() => program?.kill());

for (let round = 1; round <= rounds; round += 1) {
  test(`round ${round}: a long deletion goes on after a kill, and deletes each document once`, async () => {
    let server = await spawnServer(options);
    program = server;
    const make = async (collection: string, json: object): Promise<string> => {
      const answer = await server.send('POST', `/api/v1/${collection}`, { json });
      assert.equal(answer.status, 201, answer.body);
      return String(answer.json().id);
    };
    const ticket = await make('tickets', { subject: 'long' });
    const ids = new Set<string>();
    for (let made = 0; made < comments; made += 20) {
      const some = Array.from({ length: 20 }, (_, n) => make('comments', { text: `${n}`, ticketId: ticket }));
      for (const id of await Promise.all(some)) ids.add(id);
    }
    const left = async (): Promise<number> => {
      const list = await server.send('GET', `/api/v1/comments?ticketId=${ticket}&limit=1000&fields=id`);
      return (list.json().items as unknown[]).length;
    };
    const accepted = await server.send('DELETE', `/api/v1/tickets/${ticket}`);
    assert.equal(accepted.status, 202, accepted.body);
    for (let kills = 0; kills < 2; kills += 1) {
      await pause(Math.random() * 30);
      await server.kill();
      server = await spawnServer(options);
      program = server;
      const { status } = await server.send('GET', `/api/v1/tickets/${ticket}`);
      if (status === 404) assert.equal(await left(), 0);
    }
    const location = String(accepted.headers.location);
    await until(async () => (await server.send('GET', location)).status === 303);
    assert.equal((await server.send('GET', `/api/v1/tickets/${ticket}`)).status, 404);
    assert.equal(await left(), 0);
    const events = await server.send('GET', '/api/v1/events?type=comments.deleted&limit=1000&sort=-id');
    const deleted = (events.json().items as { data: { object: { id: string } } }[])
      .map(({ data }) => data.object.id)
      .filter((id) => ids.has(id));
    assert.deepEqual([deleted.length, new Set(deleted).size], [comments, comments]);
    await server.kill();
  });
}
