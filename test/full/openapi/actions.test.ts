/** Actions of an application in the document: by the official schema, and as the program answers them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { serverOfFile } from '../../harness/running-server.ts';
import type { Item } from '../../openapi/fixture.ts';
import { complaintsAbout } from '../../openapi/official-schema.ts';
import { promisedBy } from '../../openapi/promised.ts';

const config = fileURLToPath(new URL('../../wire/logic/fixtures/actions.config.ts', import.meta.url));
const program = await serverOfFile({ config });
const document = (await program.send('GET', '/openapi.json')).json() as Item;
const { ask } = promisedBy(document, program);
const base = '/api/v1';

for (const version of ['3.2', '3.1']) {
  test(`follows the official ${version} schema`, async () => {
    const served = (await program.send('GET', `/openapi.json?version=${version}`)).json();
    assert.equal(await complaintsAbout(served), undefined);
  });
}

test('answers actions on members as the document says', async () => {
  const made = await ask('POST', `${base}/tickets`, { json: { title: 'one' } });
  const merge = `${made.headers.location}/merge`;
  const key = { 'Idempotency-Key': '"merge"' };
  for (let round = 0; round < 2; round += 1)
    assert.equal((await ask('POST', merge, { json: { into: 'x' }, headers: key })).status, 200);
  for (const [json, options, status] of [
    [{ into: 'y' }, { headers: key }, 422],
    [{ into: 'x' }, {}, 409],
    [{}, {}, 400],
    [{ into: 1 }, {}, 422],
    [{ into: 'x' }, { anonymous: true }, 401],
    [{ into: 'x' }, { headers: { Accept: 'image/png' } }, 406],
    [{ into: 'x' }, { headers: { Accept: 'application/problem+json' } }, 409],
    [{ into: 'x' }, { headers: { Prefer: 'respond-async' } }, 202],
    [{ into: 'x' }, { headers: { 'Content-Type': 'text/plain' } }, 415],
  ] as const) {
    assert.equal((await ask('POST', merge, { json, ...options })).status, status);
  }
  assert.equal((await ask('POST', `${base}/tickets/none/merge`, { json: { into: 'x' } })).status, 404);
  assert.equal((await ask('GET', `${made.headers.location}/title`)).status, 200);
  assert.equal((await ask('HEAD', `${made.headers.location}/title`)).status, 200);
  assert.equal((await ask('PUT', `${made.headers.location}/assignments/me`)).status, 200);
  assert.equal((await ask('DELETE', `${made.headers.location}/forget`)).status, 200);
  assert.equal((await ask('OPTIONS', merge)).status, 204);
});

test('answers other actions as the document says', async () => {
  for (const [method, path, status] of [
    ['GET', 'tickets/export?limit=1', 200],
    ['GET', 'tickets/export?limit=many', 400],
    ['GET', 'ping?n=1', 200],
    ['POST', 'bytes', 200],
    ['POST', 'quiet', 204],
    ['GET', 'go', 303],
    ['GET', 'move', 308],
    ['HEAD', 'move', 308],
    ['POST', 'done', 303],
    ['POST', 'repeat', 307],
    ['POST', 'sums/a/add', 200],
    ['GET', 'safe-write', 500],
    ['OPTIONS', 'ping', 204],
  ] as const) {
    assert.equal((await ask(method, `${base}/${path}`)).status, status, path);
  }
  const asked = await ask('QUERY', `${base}/ping`, { json: { text: 'x' } });
  assert.equal(asked.status, 200);
  for (const [text, status] of [
    ['fine', 200],
    ['throws', 500],
    ['known code', 423],
  ] as const) {
    assert.equal((await ask('POST', `${base}/strange`, { json: { text } })).status, status);
  }
});
