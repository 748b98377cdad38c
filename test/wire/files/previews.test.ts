/** Previews over the wire: made when they are asked for, by the rules of their document, and gone with their file. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { adminKey } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const server = await serverOfFile({ config });
const { send } = server;
const headers = { Authorization: `Bearer ${adminKey}` };

const picture = async (width: number): Promise<Buffer> =>
  sharp({ create: { width, height: 20, channels: 3, background: '#f00' } })
    .jpeg()
    .toBuffer();

test('a preview is made once, has a tag of its own, and goes with its file', async () => {
  const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
  const path = `tickets/${id}/picture`;
  const body = await picture(40);
  const made = await send('PUT', path, { body, headers: { 'Content-Type': 'image/jpeg' }, expect: 201 });
  const { previews, id: file } = made.json();
  assert.deepEqual(previews, { small: `/api/v1/${path}/previews/small` });
  const fields = {
    'content-type': 'image/png',
    'cache-control': 'private, no-cache',
    'accept-ranges': 'bytes',
  };
  const got = await send('GET', previews.small, { expect: { status: 200, fields } });
  const octets = await (await fetch(server.url + previews.small, { headers })).arrayBuffer();
  const { width, height, format } = await sharp(Buffer.from(octets)).metadata();
  assert.deepEqual([width, height, format], [8, 8, 'png']);
  const tag = String(got.headers.etag);
  await send('GET', previews.small, { headers: { 'If-None-Match': tag }, expect: 304 });
  await send('GET', `${path}/previews/large`, { expect: [404, 'not_found'] });
  await send('GET', previews.small, { anonymous: true, expect: [401, 'no_token_provided'] });
  const kept = async () => {
    const names = await readdir(join(server.folder, 'files'), { recursive: true });
    return names.filter((name) => name.includes(file)).length;
  };
  assert.equal(await kept(), 2);
  await send('PUT', path, {
    body: await picture(41),
    headers: { 'Content-Type': 'image/jpeg' },
    expect: 200,
  });
  await until(async () => (await kept()) === 0);
  const other = await send('GET', previews.small, { expect: 200 });
  assert.ok(other.headers.etag !== undefined);
});

test('an image that no preview can be made of is kept, and its preview is 404', async () => {
  const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
  const path = `tickets/${id}/picture`;
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"/>';
  const made = await send('PUT', path, {
    body: svg,
    headers: { 'Content-Type': 'image/svg+xml' },
    expect: 201,
  });
  assert.equal(made.json().previews, undefined);
  const why = { status: 404, code: 'not_found', error: 'no preview can be made of image/svg+xml' };
  await send('GET', `${path}/previews/small`, { expect: why });
  const broken = (await picture(400)).subarray(0, 300);
  await send('PUT', path, { body: broken, headers: { 'Content-Type': 'image/jpeg' }, expect: 200 });
  await send('GET', `${path}/previews/small`, { expect: [404, 'not_found'] });
  await send('GET', path, { expect: 200 });
});
