/** Resumable uploads over the wire, on both stores: tus 1.0 and the draft of the IETF, as their clients send them. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { eventually, until } from '../../harness/until.ts';
import { openRaw } from '../server/raw-client.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const digestOf = (text: string) => `sha-256=:${createHash('sha256').update(text).digest('base64')}:`;
const base64 = (text: string) => Buffer.from(text).toString('base64');
const tus = { 'Tus-Resumable': '1.0.0' };
const tusPiece = { ...tus, 'Content-Type': 'application/offset+octet-stream' };
const draftPiece = { 'Content-Type': 'application/partial-upload' };
const MiB20 = 20 * 1024 * 1024;

describeOnEachStore('resumable uploads', async (engine) => {
  const server = await serverOfFile({ config, engine });
  const { send } = server;
  type Headers = Readonly<Record<string, string>>;

  const begin = async (headers: Headers, body = ''): Promise<string> => {
    const made = await send('POST', 'uploads', { headers, body, expect: 201 });
    return String(made.headers.location).slice('/api/v1/'.length);
  };
  const beginTus = (length: number, more: Headers = {}) =>
    begin({ ...tus, 'Upload-Length': String(length), ...more });
  const stateOf = async (path: string) => {
    const { status, headers } = await send('HEAD', path, { headers: tus });
    return [status, headers['upload-offset'], headers['upload-complete'], headers['upload-length']];
  };
  /** Waits until the octets are in the file, synced or not. */
  const hasArrived = (path: string, bytes: number) =>
    until(
      async () =>
        (await stat(join(server.folder, 'files/incoming', path.slice('uploads/'.length)))).size === bytes,
    );
  const take = async (path: string, status = 200) => {
    const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    const json = { attachment: { upload: path.slice('uploads/'.length) } };
    return (await send('PATCH', `tickets/${id}`, { json, expect: status })).json();
  };

  test('tus: creation, pieces, the offset, and a document that takes the file', async () => {
    const metadata = `filename ${base64('né.txt')},filetype ${base64('text/plain')},empty`;
    const path = await beginTus(11, { 'Upload-Metadata': metadata });
    assert.deepEqual(await stateOf(path), [204, '0', '?0', '11']);
    const first = await send('PATCH', path, {
      ...{ headers: { ...tusPiece, 'Upload-Offset': '0' }, body: 'hello' },
      expect: { status: 204, fields: { 'upload-offset': '5', 'tus-resumable': '1.0.0' } },
    });
    assert.match(String(first.headers['upload-expires']), /GMT$/);
    await take(path, 422);
    const expect = { status: 204, fields: { 'upload-offset': '11', 'upload-complete': '?1' } };
    await send('PATCH', path, { headers: { ...tusPiece, 'Upload-Offset': '5' }, body: ' world', expect });
    // The answer was lost: the client asks, or sends nothing more.
    assert.deepEqual(await stateOf(path), [204, '11', '?1', '11']);
    await send('PATCH', path, { headers: { ...tusPiece, 'Upload-Offset': '11' }, body: '', expect });
    const { attachment } = await take(path);
    assert.deepEqual(
      [attachment.name, attachment.type, attachment.bytes, attachment.digest],
      ['né.txt', 'text/plain', 11, digestOf('hello world')],
    );
    await send('GET', attachment.url, { expect: { status: 200, body: 'hello world' } });
    assert.deepEqual((await stateOf(path))[0], 404, 'a client that remembers it begins anew');
    await take(path, 422);
  });

  test('tus: creation with the first octets, with all, and of an empty file', async () => {
    const some = await send('POST', 'uploads', {
      ...{ headers: { ...tusPiece, 'Upload-Length': '5' }, body: 'hel' },
      expect: { status: 201, fields: { 'upload-offset': '3' } },
    });
    assert.match(String(some.headers.location), /^\/api\/v1\/uploads\/file_/);
    const whole = { ...tusPiece, 'Upload-Length': '5' };
    const fields = { 'upload-offset': '5', 'upload-complete': '?1' };
    await send('POST', 'uploads', { headers: whole, body: 'hello', expect: { status: 201, fields } });
    const empty = await beginTus(0);
    assert.deepEqual(await stateOf(empty), [204, '0', '?1', '0']);
    assert.equal((await take(empty)).attachment.bytes, 0);
  });

  test('tus: what is refused', async () => {
    const refused = async (headers: Headers, status: number, code: string, body = '') =>
      send('POST', 'uploads', { headers, body, expect: [status, code] });
    await refused({ ...tus }, 400, 'field_invalid');
    await refused({ ...tus, 'Upload-Length': '1', 'Content-Type': 'text/plain' }, 400, 'field_invalid', 'a');
    await refused({ ...tus, 'Upload-Length': '-1' }, 400, 'field_invalid');
    await refused({ ...tus, 'Upload-Length': '1', 'Upload-Metadata': 'a b c' }, 400, 'field_invalid');
    await refused({ ...tus, 'Upload-Length': String(MiB20 + 1) }, 413, 'content_too_large');
    const path = await beginTus(5);
    const piece = (headers: Headers, body = 'hello') => send('PATCH', path, { headers, body });
    const wrong = await piece({ ...tusPiece, 'Upload-Offset': '3' });
    assert.deepEqual([wrong.status, wrong.headers['upload-offset']], [409, '0']);
    assert.equal((await piece({ ...tus, 'Upload-Offset': '0' })).status, 415);
    assert.equal((await piece(tusPiece)).status, 400);
    assert.equal((await piece({ ...tusPiece, 'Upload-Offset': '0' }, 'hello!')).status, 413);
    await send('PATCH', 'uploads/file_01k1jx7v2mh5s8b4c9d0e6f3ga', {
      headers: { ...tusPiece, 'Upload-Offset': '0' },
      expect: [404, 'not_found'],
    });
  });

  test('tus: another version, and none, are 412 with the versions that there are, and nothing is done', async () => {
    const path = await begin({ ...tusPiece, 'Upload-Length': '5' }, 'hel');
    const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    const none = { 'Content-Type': tusPiece['Content-Type'], 'Upload-Offset': '3' };
    const old = { 'Tus-Resumable': '0.2.2' };
    const two = { 'Tus-Resumable': '1.0.0, 1.0.0' };
    for (const [method, target, headers] of [
      ['POST', 'uploads', { ...old, 'Upload-Length': '5' }],
      ['POST', 'uploads', { ...two, 'Upload-Length': '5' }],
      ['POST', 'uploads', { 'Upload-Length': '5' }],
      ['POST', 'uploads', { 'Upload-Metadata': '' }],
      ['POST', `tickets/${id}/attachment`, { ...old, 'Upload-Length': '5' }],
      ['PATCH', path, none],
      ['PATCH', path, { ...none, ...old }],
      ['HEAD', path, old],
      ['GET', path, old],
      ['DELETE', path, old],
    ] as const) {
      const answer = await send(method, target, { headers, ...(method === 'PATCH' ? { body: 'lo' } : {}) });
      assert.deepEqual([method, answer.status, answer.headers['tus-version']], [method, 412, '1.0.0']);
      if (method !== 'HEAD') assert.equal(answer.json().code, 'tus_version_unsupported');
    }
    assert.deepEqual(await stateOf(path), [204, '3', '?0', '5']);
  });

  test('tus: a checksum is verified before anything of the piece is kept', async () => {
    const path = await beginTus(10);
    const sum = (algorithm: string, text: string) =>
      `${algorithm} ${createHash(algorithm).update(text).digest('base64')}`;
    const piece = async (offset: number, checksum: string, body: string) => {
      const headers = { ...tusPiece, 'Upload-Offset': String(offset), 'Upload-Checksum': checksum };
      return (await send('PATCH', path, { headers, body })).status;
    };
    assert.equal(await piece(0, sum('sha1', 'other'), 'hello'), 460);
    assert.equal((await stateOf(path))[1], '0');
    assert.equal(await piece(0, 'crc32 AAAA', 'hello'), 400);
    assert.equal(await piece(0, sum('sha1', 'hello'), 'hello'), 204);
    assert.equal(await piece(5, sum('sha256', 'world'), 'world'), 204);
    assert.equal((await take(path)).attachment.digest, digestOf('helloworld'));
  });

  test('tus: termination forgets the upload and its octets', async () => {
    const path = await begin({ ...tusPiece, 'Upload-Length': '5' }, 'hel');
    await send('DELETE', path, { headers: tus, expect: 204 });
    assert.equal((await stateOf(path))[0], 404);
    const names = await readdir(join(server.folder, 'files'), { recursive: true });
    assert.ok(!names.some((name) => name.includes(path.slice('uploads/'.length))));
  });

  test('an upload that begins at the field of a document ends as its file', async () => {
    const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    const field = `tickets/${id}/attachment`;
    const metadata = `filename ${base64('a.txt')}`;
    const begun = await send('POST', field, {
      headers: { ...tus, 'Upload-Length': '11', 'Upload-Metadata': metadata },
      expect: { status: 201, fields: { 'tus-resumable': '1.0.0', 'upload-offset': '0' } },
    });
    const path = String(begun.headers.location);
    assert.match(path, /^\/api\/v1\/uploads\/file_/);
    const piece = (offset: number, body: string, expect: Expectation) =>
      send('PATCH', path, { headers: { ...tusPiece, 'Upload-Offset': String(offset) }, body, expect });
    await piece(0, 'hello', 204);
    await send('GET', field, { expect: [404, 'not_found'] });
    await piece(5, ' world', { status: 204, fields: { 'upload-offset': '11' } });
    await send('GET', field, { expect: { status: 200, body: 'hello world' } });
    await send('HEAD', path, { headers: tus, expect: 404 });

    // The draft: the last answer is that of the request which sends the file whole.
    const first = await send('PUT', field, {
      headers: { 'Upload-Complete': '?0', 'Content-Disposition': 'attachment; filename="b.txt"' },
      ...{ body: 'two', expect: 201 },
    });
    const last = await send('PATCH', String(first.headers.location), {
      headers: { ...draftPiece, 'Upload-Offset': '3', 'Upload-Complete': '?1' },
      ...{ body: ' more', expect: { status: 200, fields: { 'upload-complete': '?1', etag: /^"/ } } },
    });
    assert.deepEqual([last.json().name, last.json().url], ['b.txt', `/api/v1/${field}`]);
    await send('GET', field, { expect: { status: 200, body: 'two more' } });
    const whole = { 'Upload-Complete': '?1', 'Content-Type': 'text/plain' };
    const at = await send('PUT', field, { headers: whole, body: 'whole', expect: 200 });
    assert.equal(at.json().bytes, 5);
    await send('GET', field, { expect: { status: 200, body: 'whole' } });
    const photo = await send('POST', `tickets/${id}/photos`, { headers: whole, body: 'photo', expect: 201 });
    assert.equal(photo.headers.location, photo.json().url);
  });

  test('what the document refuses refuses its upload', async () => {
    const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    const creation = (length: number, more: Headers = {}) => ({
      headers: { ...tus, 'Upload-Length': String(length), ...more },
    });
    await send('POST', 'tickets/missing/attachment', { ...creation(1), expect: [404, 'not_found'] });
    await send('POST', `tickets/${id}/photos`, { ...creation(1001), expect: [413, 'content_too_large'] });
    await send('POST', `tickets/${id}/attachment`, { body: 'x', expect: [400, 'field_invalid'] });
    const keyed = creation(1, { 'Idempotency-Key': '"once"' });
    await send('POST', `tickets/${id}/attachment`, { ...keyed, expect: [400, 'content_malformed'] });
    const begun = await send('POST', `tickets/${id}/attachment`, { ...creation(1), expect: 201 });
    await send('DELETE', `tickets/${id}`, { expect: 204 });
    const headers = { ...tusPiece, 'Upload-Offset': '0' };
    await send('PATCH', String(begun.headers.location), { headers, body: 'x', expect: [404, 'not_found'] });
  });

  test('what the server can do is in OPTIONS, and pages may read it', async () => {
    const options = await send('OPTIONS', 'uploads');
    assert.deepEqual(
      [options.headers['tus-version'], options.headers['tus-max-size'], options.headers['upload-limit']],
      ['1.0.0', String(MiB20), `max-size=${MiB20}, max-age=86400`],
    );
    assert.match(String(options.headers['tus-extension']), /creation-with-upload/);
    assert.equal(options.headers['accept-patch'], 'application/partial-upload');
    const { id } = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
    const field = await send('OPTIONS', `tickets/${id}/photos`);
    assert.deepEqual(
      [field.headers['accept-patch'], field.headers['upload-limit']],
      ['application/partial-upload', 'max-size=1000, max-age=86400'],
    );
    const path = await beginTus(5);
    const patch = await send('OPTIONS', path);
    assert.match(String(patch.headers['accept-patch']), /application\/partial-upload/);
  });

  test('draft: an empty creation, pieces, and the last answer with the upload', async () => {
    const path = await begin({ 'Upload-Complete': '?0', 'Upload-Draft-Interop-Version': '6' }, '');
    assert.deepEqual(await stateOf(path), [204, '0', '?0', undefined]);
    const piece = (offset: number, complete: string, body: string) =>
      send('PATCH', path, {
        ...{ headers: { ...draftPiece, 'Upload-Offset': String(offset), 'Upload-Complete': complete }, body },
      });
    const first = await piece(0, '?0', 'hello');
    assert.deepEqual([first.status, first.headers['upload-offset']], [204, '5']);
    const wrong = await piece(0, '?0', 'hello');
    assert.deepEqual([wrong.status, wrong.headers['upload-offset']], [409, '5']);
    const last = await piece(5, '?1', ' world');
    assert.deepEqual([last.status, last.headers['upload-complete']], [200, '?1']);
    const { id, digest, length, complete } = last.json();
    assert.deepEqual([`uploads/${id}`, digest, length, complete], [path, digestOf('hello world'), 11, true]);
    await take(path);
  });

  test('draft: all octets in the first request, whose name and type are those of its fields', async () => {
    const headers = {
      ...{ 'Upload-Complete': '?1', 'Content-Type': 'text/csv' },
      'Content-Disposition': 'attachment; filename="a.csv"',
    };
    const path = await begin(headers, 'a,b\n1,2\n');
    const { attachment } = await take(path);
    assert.deepEqual([attachment.name, attachment.type, attachment.bytes], ['a.csv', 'text/csv', 8]);
  });

  test('draft: Upload-Metadata names the file where no Content-Disposition does', async () => {
    const metadata = (name: string) =>
      `filename ${base64(name)},filetype ${base64('text/csv')},collection ${base64('tickets')},field ${base64('attachment')}`;
    const named = { 'Upload-Complete': '?1', 'Upload-Metadata': metadata('né.csv') };
    const first = (await take(await begin(named, 'a,b\n'))).attachment;
    assert.deepEqual([first.name, first.type], ['né.csv', 'text/csv']);
    const both = { ...named, 'Content-Type': 'text/plain', 'Content-Disposition': 'inline; filename=a.txt' };
    const second = (await take(await begin(both, 'a,b\n'))).attachment;
    assert.deepEqual([second.name, second.type], ['a.txt', 'text/plain']);
    const other = {
      'Upload-Complete': '?1',
      'Upload-Metadata': `field ${base64('title')},collection ${base64('tickets')}`,
    };
    await send('POST', 'uploads', { headers: other, body: 'a', expect: [400, 'field_invalid'] });
    const malformed = { 'Upload-Complete': '?1', 'Upload-Metadata': 'a b c' };
    await send('POST', 'uploads', { headers: malformed, body: 'a', expect: [400, 'field_invalid'] });
  });

  test('draft: 104 tells the address to clients of interop version 8, and to no other', async () => {
    for (const version of ['8', '6']) {
      const client = await openRaw(server.port);
      const head = [
        ...['POST /api/v1/uploads HTTP/1.1', 'Host: a', `Authorization: Bearer ${adminKey}`],
        ...['Upload-Complete: ?1', 'Content-Length: 10', `Upload-Draft-Interop-Version: ${version}`],
      ];
      client.send(`${head.join('\r\n')}\r\n\r\nhello`);
      if (version === '8') {
        const informed = await client.answer();
        assert.deepEqual([informed.status, informed.fields.get('upload-draft-interop-version')], [104, '8']);
        const path = String(informed.fields.get('location')).slice('/api/v1/'.length);
        await hasArrived(path, 5);
        client.socket.resetAndDestroy();
        // What arrived before the client was cut off is kept.
        const offset = await eventually(async () => {
          const [, found] = await stateOf(path);
          return found === '5' ? found : undefined;
        });
        const headers = { ...draftPiece, 'Upload-Offset': offset, 'Upload-Complete': '?1' };
        await send('PATCH', path, { headers, body: 'world', expect: 200 });
        assert.equal((await take(path)).attachment.digest, digestOf('helloworld'));
      } else assert.equal((await client.send('world').answer()).status, 201);
      client.destroy();
    }
  });

  test('a second piece and a look end the first, which keeps what it got', async () => {
    const path = await beginTus(10);
    const client = await openRaw(server.port);
    const head = [
      ...[
        `PATCH /api/v1/${path} HTTP/1.1`,
        'Host: a',
        `Authorization: Bearer ${adminKey}`,
        'Content-Length: 10',
      ],
      ...['Tus-Resumable: 1.0.0', 'Content-Type: application/offset+octet-stream', 'Upload-Offset: 0'],
    ];
    client.send(`${head.join('\r\n')}\r\n\r\nhello`);
    await hasArrived(path, 5);
    const [, offset = ''] = await stateOf(path);
    assert.equal(offset, '5');
    assert.equal((await client.answer()).status, 423);
    client.destroy();
    const headers = { ...tusPiece, 'Upload-Offset': offset };
    await send('PATCH', path, { headers, body: 'world', expect: 204 });
    assert.equal((await take(path)).attachment.digest, digestOf('helloworld'));
  });
});
