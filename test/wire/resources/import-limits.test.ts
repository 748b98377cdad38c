/** Bounds, rights and broken connections of imports (§4.19.9 to §4.19.12), over the running program. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { adminKey } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/stock.config.ts', import.meta.url));
const bytesMax = 4096;
const itemsMax = 10;
const importBytesMax = 64 * 1024;
const program = await serverOfFile({
  config,
  env: {
    COMITY_BULK_BYTES_MAX: String(bytesMax),
    COMITY_BULK_ITEMS_MAX: String(itemsMax),
    COMITY_IMPORT_BYTES_MAX: String(importBytesMax),
  },
});
const path = '/api/v1/parts';

const send = (body: string, query = '', headers = {}) =>
  program.send('POST', `${path}/import${query}`, {
    body,
    headers: { 'Content-Type': 'text/csv', ...headers },
  });
const csv = (tenantId: string, count: number) =>
  `tenantId,sku\n${Array.from({ length: count }, (_, at) => `${tenantId},${at}\n`).join('')}`;
const countOf = async (tenantId: string) => {
  const headers = { Prefer: 'count=exact' };
  const answer = await program.send('GET', `${path}?tenantId=${tenantId}&limit=1`, { headers });
  return Number(answer.headers['x-total-count']);
};

test('an import may be as long as its setting, and one octet more is 413', async () => {
  const head = 'tenantId,name\n';
  const filled = (bytes: number) => `${head}x,"${'\n'.repeat(bytes - head.length - 4)}"`;
  for (const [bytes, status] of [
    [importBytesMax, 200],
    [importBytesMax + 1, 413],
  ] as const) {
    const body = filled(bytes);
    assert.equal(Buffer.byteLength(body), bytes);
    const answer = await send(body);
    assert.equal(answer.status, status, answer.body);
    // The record alone is longer than a record may be.
    if (status === 200)
      assert.deepEqual([answer.json().refused, answer.json().errors[0].code], [1, 'content_too_large']);
  }
});

test('a record may be as long as the content of a bulk request, and one octet more is refused alone', async () => {
  const row = (bytes: number) => `long,${'n'.repeat(bytes - 'long,'.length)}`;
  const answer = await send(`tenantId,sku\n${row(bytesMax + 1)}\nlong,1\n`);
  const { created, errors } = answer.json();
  assert.deepEqual([created, errors[0].line, errors[0].code], [1, 2, 'content_too_large']);
  const most = (await send(`tenantId,sku\n${row(bytesMax)}\n`)).json();
  assert.notEqual(most.errors[0]?.code, 'content_too_large');
});

test('an atomic import has as many records as a bulk request, and is as long', async () => {
  const most = await send(csv('atomic', itemsMax), '?atomic=true');
  assert.deepEqual([most.status, most.json().created], [200, itemsMax], most.body);
  const more = await send(csv('atomic-more', itemsMax + 1), '?atomic=true');
  assert.deepEqual(
    [more.status, more.json().code, await countOf('atomic-more')],
    [422, 'validation_failed', 0],
  );
  const rest = bytesMax - csv('wide', 1).length;
  for (const [bytes, status] of [
    [rest, 200],
    [rest + 1, 413],
  ] as const)
    assert.equal(
      (await send(csv('wide', 1) + '\n'.repeat(bytes), '?atomic=true&dryRun=true')).status,
      status,
    );
});

test('the first 100 faults are listed, and the others counted', async () => {
  for (const [count, more] of [
    [100, undefined],
    [101, 1],
  ] as const) {
    const { refused, errors, errorsMore } = (await send(`tenantId,price\n${'a,x\n'.repeat(count)}`)).json();
    assert.deepEqual([refused, errors.length, errorsMore], [count, 100, more]);
  }
});

test('rights are those of single requests, and only administrators set what the server sets', async () => {
  const { token } = (
    await program.send('POST', '/api/v1/auth/register', {
      json: { email: 'ada@parts.example', password: 'correct horse battery' },
      anonymous: true,
    })
  ).json();
  const headers = { Authorization: `Bearer ${token}` };
  assert.equal((await send(csv('anonymous', 1), '', { Authorization: '' })).status, 401);
  assert.equal((await send(csv('ada', 1), '?existing=skip', headers)).status, 403);
  assert.equal((await send(csv('ada', 1), '?events=false', headers)).status, 403);
  assert.equal((await send(csv('ada', 1), '', headers)).json().created, 1);
  const theirs = await send('tenantId,sku,price\nheld,1,1\n');
  assert.equal(theirs.json().created, 1);
  const key = '?mode=upsert&key=tenantId,sku';
  const changed = (await send('tenantId,sku,price\nheld,1,2\nada,0,2\n', key, headers)).json();
  assert.deepEqual([changed.updated, changed.refused, changed.errors[0].code], [1, 1, 'forbidden']);
  const given = 'id,tenantId,createdAt,owner\nset-1,given,2020-01-02T03:04:05.000Z,\n';
  assert.equal((await send(given, '', headers)).json().refused, 1);
  assert.equal((await send(given)).json().created, 1);
  // Of a document that exists, an upsert leaves what the server sets.
  const again = given
    .replace('2020', '2021')
    .replace('given', 'given')
    .replace('owner\n', 'owner,price\n')
    .replace(',\n', ',,7\n');
  assert.deepEqual((await send(again, '?mode=upsert')).json().updated, 1);
  const stored = (await program.send('GET', `${path}/set-1`)).json();
  assert.deepEqual([stored.createdAt, stored.price], ['2020-01-02T03:04:05.000Z', 7]);
  const fresh = (await send(again.replace('set-1', 'set-2'), '?mode=upsert')).json();
  assert.equal(fresh.created, 1);
  assert.equal((await program.send('GET', `${path}/set-2`)).json().createdAt, '2021-01-02T03:04:05.000Z');
});

test('an import ends with its credential: what arrives after it was revoked is not written', async () => {
  const made = await program.send('POST', '/api/v1/keys', { json: { name: 'importer', kind: 'secret' } });
  const { id, key } = made.json();
  const whole = csv('revoked', 3 * itemsMax);
  const socket = connect(program.port, '127.0.0.1');
  const answer = text(socket);
  socket.write(
    `POST ${path}/import HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: text/csv\r\nConnection: close\r\nContent-Length: ${whole.length}\r\n\r\n`,
  );
  const first = whole.indexOf(`revoked,${itemsMax}\n`);
  socket.write(whole.slice(0, first));
  await until(async () => (await countOf('revoked')) === itemsMax - 1, 'the first batch is written');
  assert.equal((await program.send('DELETE', `/api/v1/keys/${id}`)).status, 204);
  socket.write(whole.slice(first));
  const [head = '', content = ''] = (await answer).split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 401 /);
  assert.match(head, /^WWW-Authenticate: /im);
  const refusal = JSON.parse(content);
  assert.deepEqual([refusal.code, refusal.created], ['invalid_api_key', itemsMax - 1]);
  assert.equal(await countOf('revoked'), itemsMax - 1);
});

test('a sender that breaks off leaves what was written, and a repetition with a key completes it', async () => {
  const whole = csv('cut', 3 * itemsMax);
  const socket = connect(program.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    `POST ${path}/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminKey}\r\nContent-Type: text/csv\r\nContent-Length: ${whole.length}\r\n\r\n`,
  );
  socket.write(whole.slice(0, whole.length - 20));
  // The header is a record of the first batch, and the last batch is never full.
  const stored = 2 * itemsMax - 1;
  await until(async () => (await countOf('cut')) === stored, 'the full batches are written');
  socket.destroy();
  const rest = (await send(whole, '?mode=upsert&key=tenantId,sku')).json();
  assert.deepEqual([rest.created, rest.unchanged], [3 * itemsMax - stored, stored]);
});
