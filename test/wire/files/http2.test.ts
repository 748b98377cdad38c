/** Files over HTTP/2: forms, files sent whole, resumable uploads whose streams are cut, and early refusals that leave the connection alone. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { constants } from 'node:http2';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { adminKey } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { ask, field, openSession, receive } from '../http2/http2-client.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const server = await serverOfFile({ config });
const tusPiece = { 'tus-resumable': '1.0.0', 'content-type': 'application/offset+octet-stream' };

type Headers = Readonly<Record<string, string>>;

const fieldsOf = (method: string, path: string, headers: Headers = {}) => ({
  ...{ ':method': method, ':path': path.startsWith('/') ? path : `/api/v1/${path}` },
  ...{ authorization: `Bearer ${adminKey}`, ...headers },
});
const makeTicket = async (): Promise<string> =>
  `tickets/${(await server.send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json().id}`;
const digestOf = (octets: string | Buffer) =>
  `sha-256=:${createHash('sha256').update(octets).digest('base64')}:`;

test('a form makes a document with its files', async (t) => {
  const form = new FormData();
  form.append('title', 'a');
  form.append('attachment', new Blob(['x'.repeat(200_000)], { type: 'text/plain' }), 'né.txt');
  form.append('photos', new Blob(['one'], { type: 'text/plain' }), '1.txt');
  const encoded = new Response(form);
  const session = openSession(t, server.port);
  const headers = { 'content-type': String(encoded.headers.get('content-type')) };
  const made = await ask(session, fieldsOf('POST', 'tickets', headers), await encoded.text());
  assert.equal(made.status, 201, made.body);
  const { attachment, photos } = JSON.parse(Buffer.from(made.body, 'latin1').toString());
  assert.deepEqual([attachment.name, attachment.bytes, photos.length], ['né.txt', 200_000, 1]);
  assert.equal((await ask(session, fieldsOf('GET', photos[0].url))).body, 'one');
});

test('files are sent whole on many streams of one connection', async (t) => {
  const session = openSession(t, server.port);
  const sent = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const octets = randomBytes(100_000);
      const path = `${await makeTicket()}/attachment`;
      const headers = { 'content-disposition': 'attachment; filename="a.bin"' };
      const stream = session.request(fieldsOf('PUT', path, headers));
      const answer = receive(stream);
      for (let at = 0; at < octets.length; at += 10_000) stream.write(octets.subarray(at, at + 10_000));
      stream.end();
      return { ...(await answer), expected: digestOf(octets) };
    }),
  );
  for (const { status, body, expected } of sent) {
    const { name, digest } = JSON.parse(body);
    assert.deepEqual([status, name, digest], [201, 'a.bin', expected]);
  }
});

for (const cut of ['its stream', 'its connection'] as const) {
  test(`an upload goes on after ${cut} was cut`, async (t) => {
    let session = openSession(t, server.port);
    const begun = await ask(session, fieldsOf('POST', 'uploads', { ...tusPiece, 'upload-length': '10' }), '');
    assert.equal(begun.status, 201, begun.body);
    const path = String(field(begun, 'location'));
    const stream = session.request(fieldsOf('PATCH', path, { ...tusPiece, 'upload-offset': '0' }));
    stream.on('error', () => undefined);
    stream.write('hello');
    const id = path.split('/').at(-1) ?? '';
    const file = join(server.folder, 'files/incoming', id);
    await until(async () => (await stat(file)).size === 5);
    if (cut === 'its stream') stream.close(constants.NGHTTP2_CANCEL);
    else {
      session.destroy();
      session = openSession(t, server.port);
    }
    const looked = await ask(session, fieldsOf('HEAD', path, { 'tus-resumable': '1.0.0' }));
    assert.deepEqual([looked.status, field(looked, 'upload-offset')], [204, '5']);
    const rest = fieldsOf('PATCH', path, { ...tusPiece, 'upload-offset': '5' });
    const last = await ask(session, rest, 'world');
    assert.deepEqual([last.status, field(last, 'upload-complete')], [204, '?1']);
    const json = { attachment: { upload: id } };
    const { attachment } = (await server.send('PATCH', await makeTicket(), { json, expect: 200 })).json();
    assert.equal(attachment.digest, digestOf('helloworld'));
  });
}

test('draft: 104 comes before the answer, with the address', async (t) => {
  const headers = { 'upload-complete': '?1', 'upload-draft-interop-version': '8' };
  const made = await ask(openSession(t, server.port), fieldsOf('POST', 'uploads', headers), 'hello');
  assert.deepEqual([made.status, made.interim, JSON.parse(made.body).complete], [201, [104], true]);
});

test('a file that is too long is refused before it has come, and other streams go on', async (t) => {
  const session = openSession(t, server.port);
  const photos = `${await makeTicket()}/photos`;
  const refused = async (headers: Headers, octets?: string) => {
    const stream = session.request(fieldsOf('POST', photos, headers));
    const answer = receive(stream);
    if (octets !== undefined) stream.end(octets);
    const { status, body, interim } = await answer;
    assert.deepEqual([status, JSON.parse(body).code, interim], [413, 'content_too_large', []]);
  };
  // No octets were sent, and the stream is open: without these the answer follows the content (stream-exchange.ts).
  await refused({ 'content-length': '1001', expect: '100-continue' });
  await refused({ 'content-length': '134217729' });
  await refused({}, 'x'.repeat(1001));
  await refused({ ...tusPiece, 'upload-length': '1001' }, '');
  const most = await ask(
    session,
    fieldsOf('POST', photos, { 'content-type': 'text/plain' }),
    'x'.repeat(1000),
  );
  assert.equal(most.status, 201, most.body);
  assert.equal((await ask(session, fieldsOf('GET', 'tickets'))).status, 200);
});
