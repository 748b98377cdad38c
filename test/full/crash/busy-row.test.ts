/**
 * Kills while many clients change one row: each change is computed from the one before it, which is not committed yet (decision 0061). After the
 * restart every acknowledged change is there once, and so is its event.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const config = fileURLToPath(new URL('../../wire/fixtures/busy.config.ts', import.meta.url));
const rounds = roundsOf(2, 3);
const clients = 40;
const folder = temporaryFolder();
const env = { COMITY_RATE_LIMIT_WRITES: '0', COMITY_RATE_LIMIT_READS: '0' };
const headers = { 'Content-Type': 'application/json-patch+json' };

let program: ServerProcess | undefined;
after(async () => {
  await program?.kill();
});

test('every acknowledged change of a busy row is there after a kill, once, with its event', async (t) => {
  for (let round = 1; round <= rounds; round += 1) {
    const running = await spawnServer({ folder, config, env });
    program = running;
    const made = await running.send('POST', '/api/v1/tallies', { json: { marks: [] } });
    const path = `/api/v1/tallies/${String(made.json().id)}`;
    const acknowledged = new Map<string, string>();
    const changing = Array.from({ length: clients }, async (_, client) => {
      for (let turn = 0; ; turn += 1) {
        const mark = `${client}.${turn}`;
        const body = JSON.stringify([{ op: 'add', path: '/marks/-', value: mark }]);
        const answer = await running.send('PATCH', path, { headers, body }).catch(() => undefined);
        if (answer === undefined) return;
        // The row is full at 5,000 marks, or the server is ending.
        if (answer.status !== 200) return void assert.equal(answer.status, 422, answer.body);
        acknowledged.set(mark, String(answer.headers.etag));
      }
    });
    while (acknowledged.size < clients) await pause(5);
    await pause(Math.random() * 200);
    await running.kill();
    await Promise.all(changing);

    const restarted = await spawnServer({ folder, config, env });
    program = restarted;
    const marks = (await restarted.send('GET', path)).json().marks as readonly string[];
    assert.equal(new Set(marks).size, marks.length, 'none twice');
    const kept = new Set(marks);
    assert.deepEqual(
      [...acknowledged.keys()].filter((mark) => !kept.has(mark)),
      [],
    );
    assert.equal(new Set(acknowledged.values()).size, acknowledged.size, 'each has a version of its own');
    // Each client had one change under way.
    assert.ok(marks.length <= acknowledged.size + clients, `${marks.length} of ${acknowledged.size}`);
    assert.equal(await eventCount(restarted, String(made.json().id)), marks.length);
    t.diagnostic(`${acknowledged.size} acknowledged, ${marks.length} made`);
    assert.equal(await restarted.stop(), 0);
  }
});

/** Events of changes of the row. */
async function eventCount(server: ServerProcess, id: string): Promise<number> {
  let count = 0;
  for (
    let target: string | undefined = '/api/v1/events?type=tallies.updated&limit=1000';
    target !== undefined;
  ) {
    const page = await server.send('GET', target);
    assert.equal(page.status, 200, page.body);
    const items = page.json().items as readonly { data: { object: { id: string } } }[];
    count += items.filter(({ data }) => data.object.id === id).length;
    target = /<([^>]+)>; rel="?next"?/.exec(String(page.headers.link ?? ''))?.[1];
  }
  return count;
}
