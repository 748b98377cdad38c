/** GET /operations (§4.12.6) over the running program. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const path = '/api/v1/operations';

let program: RunningServer;
let client: Client;

before(async () => {
  program = await startServer();
  client = openClient(program.port);
});

after(async () => {
  client?.close();
  await program?.stop();
});

type Page = { items: { id: string; status: string }[]; nextCursor: string | null };

test('lists asynchronous requests for administrators, with pages and the newest first', async () => {
  const ids: string[] = [];
  for (const name of ['one', 'two', 'three']) {
    const answer = await program.send('POST', '/api/v1/categories', {
      ...{ json: { name }, headers: { Prefer: 'respond-async' } },
    });
    assert.equal(answer.status, 202);
    ids.push(String(answer.headers.location).split('/').at(-1) ?? '');
  }
  const first = (await program.send('GET', `${path}?sort=-id&limit=2`)).json() as Page;
  assert.deepEqual(
    first.items.map(({ id }) => id),
    [ids[2], ids[1]],
  );
  const cursor = encodeURIComponent(first.nextCursor ?? '');
  const second = (await program.send('GET', `${path}?sort=-id&limit=2&cursor=${cursor}`)).json() as Page;
  assert.deepEqual(
    second.items.map(({ id }) => id),
    [ids[0]],
  );
  await until(async () => {
    const { items } = (await program.send('GET', path)).json() as Page;
    return items.every(({ status }) => status === 'succeeded');
  });
  const counted = await program.send('GET', path, { headers: { Prefer: 'count=exact' } });
  assert.equal(counted.headers['x-total-count'], '3');
  assert.equal((await program.send('GET', `${path}?status=pending`)).status, 400);
  assert.equal((await client.ask('GET', path)).status, 401);
  const { token } = await register(client, 'ada@operations.example', 'correct horse battery staple');
  assert.equal(
    (await client.ask('GET', path, { headers: { Authorization: `Bearer ${token}` } })).status,
    403,
  );
});
