/** The restoration of softly deleted documents (§4.7.9) over the running program. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const cards = '/api/v1/cards';

let program: RunningServer;
let client: Client;
let ada: Readonly<Record<string, string>>;
let grace: Readonly<Record<string, string>>;

before(async () => {
  program = await startServer({
    config: fileURLToPath(new URL('./fixtures/restore.config.ts', import.meta.url)),
  });
  client = openClient(program.port);
  const signIn = async (name: string) => {
    const { token } = await register(client, `${name}@cards.example`, 'correct horse battery staple');
    return { Authorization: `Bearer ${token}` };
  };
  ada = await signIn('ada');
  grace = await signIn('grace');
});

after(async () => {
  client?.close();
  await program?.stop();
});

type Document = { readonly id: string; readonly createdAt: string } & Record<string, unknown>;

const ask = (method: string, path: string, headers = ada, json?: unknown) =>
  client.ask(method, path, json === undefined ? { headers } : { headers, json });

async function deleted(members: object): Promise<Document & { readonly path: string }> {
  const created = (await ask('POST', cards, ada, members)).json() as Document;
  const path = `${cards}/${created.id}`;
  assert.equal((await ask('DELETE', path)).status, 204);
  return { ...created, path };
}

test('restores a softly deleted document as it was, with an event, for those who may delete it', async () => {
  const { path, ...card } = await deleted({ title: 'Queen of hearts', code: 'QH' });
  assert.equal((await ask('GET', path)).status, 404);
  const restored = await ask('POST', `${path}/restore`);
  assert.equal(restored.status, 200, restored.body);
  const { updatedAt: _, ...shown } = restored.json();
  const { updatedAt: __, ...former } = card;
  assert.deepEqual(shown, former);
  const read = await ask('GET', path);
  assert.equal(read.headers.etag, restored.headers.etag);
  assert.deepEqual(read.json(), restored.json());
  const list = (await ask('GET', `${cards}?code=QH`)).json() as { items: unknown[] };
  assert.equal(list.items.length, 1);
  const { items } = (await program.send('GET', '/api/v1/events?sort=-id&limit=1')).json() as {
    items: { type: string; data: { object: Document } }[];
  };
  assert.equal(items[0]?.type, 'cards.created');
  assert.equal(items[0]?.data.object.id, card.id);
  assert.equal((await ask('PATCH', path, ada, { title: 'Mine' })).status, 200, 'its owner is as before');
});

test('refuses to restore what is live, unknown, in conflict with another document or closed to the caller', async () => {
  const { path } = await deleted({ title: 'Ace', code: 'ACE' });
  assert.equal((await ask('POST', `${path}/restore`, grace)).status, 403);
  assert.equal((await ask('POST', `${path}/restore`, {})).status, 401);
  assert.equal((await ask('POST', `${cards}/none/restore`)).status, 404);
  const taken = (await ask('POST', cards, ada, { title: 'Another ace', code: 'ACE' })).json() as Document;
  const conflict = await ask('POST', `${path}/restore`);
  assert.equal(conflict.status, 409);
  assert.equal(conflict.json().code, 'unique_taken');
  await ask('DELETE', `${cards}/${taken.id}`);
  assert.equal((await ask('POST', `${path}/restore`)).status, 200);
  assert.equal((await ask('POST', `${path}/restore`)).status, 404, 'it is live');
  const others = await ask('POST', '/api/v1/plain', ada, { title: 'x' });
  const { id } = others.json() as Document;
  assert.equal((await ask('POST', `/api/v1/plain/${id}/restore`)).status, 404, 'no soft deletion');
});

test('restores once of many requests at once', async () => {
  const { path } = await deleted({ title: 'Ten' });
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask('POST', `${path}/restore`)));
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, ...Array(7).fill(404)]);
});
