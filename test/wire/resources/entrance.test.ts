/** `GET /` without credentials (§4.12.4): the links of the API for programs, and the way of a browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

/** What Chromium sends when a person opens an address. */
const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';

let program: RunningServer;

before(async () => {
  program = await startServer({ env: { COMITY_DASHBOARD: 'off' } });
});

after(() => program.stop());

const enter = (accept: string, method = 'GET') =>
  program.send(method, '/', { anonymous: true, headers: { Accept: accept } });

test('leads browsers to the documentation where the dashboard is off', async () => {
  const { status, headers } = await enter(browserAccept);
  assert.equal(status, 303);
  assert.equal(headers.location, '/docs');
  assert.equal(headers['cache-control'], 'no-store');
  assert.equal((await program.send('GET', '/dashboard', { anonymous: true })).status, 404);
});

test('gives other clients the links, which caches keep apart by Accept', async () => {
  for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5']) {
    const { status, headers, body } = await enter(accept);
    assert.equal(status, 200, accept);
    assert.match(String(headers.vary), /\bAccept\b/);
    const links = JSON.parse(body) as Record<string, string>;
    assert.deepEqual(links, {
      api: '/api/v1',
      openapi: '/openapi.json',
      docs: '/docs',
      health: '/health/ready',
    });
  }
  assert.equal((await enter('image/png')).status, 406);
  assert.equal((await enter('*/*', 'POST')).status, 405);
});

test('leads from a page with a slash at its end to the page, relative to what a proxy puts before it', async () => {
  for (const [path, location] of [
    ['/docs/', '../docs'],
    ['/docs/?a=1', '../docs?a=1'],
    ['/docs/errors/', '../errors'],
    ['/portal/', '../portal'],
  ] as const) {
    const { status, headers } = await program.send('GET', path, {
      anonymous: true,
      headers: { Accept: browserAccept },
    });
    assert.deepEqual([status, headers.location], [303, location]);
  }
  assert.equal((await program.send('GET', '/dashboard/', { anonymous: true })).status, 404);
});

test('names only resources that are there', async () => {
  const links = JSON.parse((await enter('*/*')).body) as Record<string, string>;
  for (const [name, path] of Object.entries(links)) {
    if (name !== 'api')
      assert.equal((await program.send('GET', path, { anonymous: true })).status, 200, path);
  }
});
