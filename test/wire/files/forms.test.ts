/** Forms with files, functions of the application that see files, and what is left of an upload that comes to nothing. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import { assertAnswer, type Expectation } from '../../harness/expected-answer.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));

type Part = string | readonly [text: string, type: string, name: string];

describeOnEachStore('forms with files', async (engine) => {
  const server = await serverOfFile({ config, engine });
  const { send } = server;
  const form = async (
    method: string,
    path: string,
    parts: readonly (readonly [name: string, part: Part])[],
    expect: Expectation,
    headers: Record<string, string> = {},
  ) => {
    const body = new FormData();
    for (const [name, part] of parts)
      if (typeof part === 'string') body.append(name, part);
      else body.append(name, new Blob([part[0]], { type: part[1] }), part[2]);
    const answer = await fetch(`${server.url}/api/v1/${path}`, {
      ...{ method, body, headers: { Authorization: `Bearer ${adminKey}`, ...headers } },
    });
    const text = await answer.text();
    assertAnswer({ status: answer.status, headers: {}, body: text }, expect, `${method} ${path}`);
    return JSON.parse(text === '' ? 'null' : text);
  };
  const keptNames = async (): Promise<readonly string[]> =>
    (await readdir(join(server.folder, 'files'), { recursive: true })).filter((name) =>
      name.includes('file_'),
    );
  const image: Part = ['GIF89a\u0001', 'image/gif', 'a.gif'];

  test('POST, PUT and PATCH take files beside other members', async () => {
    const made = await form(
      'POST',
      'tickets',
      [
        ['title', 'a'],
        ['attachment', ['first', 'text/plain', 'C:\\docs\\café.txt']],
        ['photos', ['one', 'text/plain', '1.txt']],
        ['photos[]', image],
      ],
      201,
    );
    assert.equal(made.attachment.name, 'café.txt');
    assert.deepEqual(
      made.photos.map(({ type }: { type: string }) => type),
      ['text/plain', 'image/gif'],
    );
    const path = `tickets/${made.id}`;
    assert.deepEqual((await send('GET', path)).json(), made);
    // A text is the id of a file to keep; other files go.
    const kept: Part = made.photos[1].id;
    const patched = await form(
      'PATCH',
      path,
      [
        ['photos', kept],
        ['photos', ['two', 'text/plain', '2.txt']],
      ],
      200,
    );
    assert.deepEqual([patched.photos[0], patched.title], [made.photos[1], 'a']);
    assert.deepEqual(patched.attachment, made.attachment);
    const put = await form(
      'PUT',
      path,
      [
        ['title', 'b'],
        ['attachment[id]', made.attachment.id],
      ],
      200,
    );
    assert.deepEqual([put.attachment, put.photos], [made.attachment, undefined]);
    const emptied = await form('PATCH', path, [['attachment', '']], 200);
    assert.equal(emptied.attachment, undefined);
    await until(async () => (await keptNames()).length === 0);
  });

  test('a form that is refused leaves nothing', async () => {
    const file: Part = ['x', 'text/plain', 'x.txt'];
    const long: Part = ['x'.repeat(1001), 'text/plain', 'x.txt'];
    await form('POST', 'tickets', [['attachment', file]], [400, 'field_missing', '/title']);
    await form(
      'POST',
      'tickets',
      [
        ['title', 'a'],
        ['other', file],
      ],
      [422, 'validation_failed', '/other'],
    );
    await form(
      'POST',
      'tickets',
      [
        ['title', 'a'],
        ['photos', long],
      ],
      [413, 'content_too_large', '/photos'],
    );
    const page: Part = ['<!doctype html><script>1</script>', 'image/png', 'x.png'];
    await form(
      'POST',
      'tickets',
      [
        ['title', 'a'],
        ['photos', page],
      ],
      [415, 'media_type_unsupported'],
    );
    await form(
      'POST',
      'tickets',
      [
        ['title', 'a'],
        ['attachment', file],
        ['attachment', file],
      ],
      [422, 'validation_failed', '/attachment'],
    );
    await form(
      'POST',
      'tickets',
      [
        ['title', 'a'],
        ['photos', 'file_of_another'],
      ],
      [422, 'validation_failed', '/photos/0/id'],
    );
    const id = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json().id;
    await form('PATCH', `tickets/${id}`, [['attachment', file]], [412, 'precondition_failed'], {
      'If-Match': '"0"',
    });
    await form('PATCH', 'tickets/missing', [['attachment', file]], [404, 'not_found']);
    await until(async () => (await keptNames()).length === 0);
  });

  test('a repeated request with an Idempotency-Key makes one document, and another form with it is refused', async () => {
    const parts = [
      ['title', 'once'],
      ['attachment', ['x', 'text/plain', 'x.txt']],
    ] as const;
    const boundary = 'x'.repeat(20);
    const body = (text: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="title"\r\n\r\n${text}\r\n--${boundary}\r\n` +
      'Content-Disposition: form-data; name="attachment"; filename="x.txt"\r\n\r\noctets\r\n' +
      `--${boundary}--\r\n`;
    assert.equal(parts.length, 2);
    const headers = {
      'Content-Type': `multipart/form-data; boundary=${boundary}`,
      'Idempotency-Key': `"${engine}-form"`,
    };
    const first = await send('POST', 'tickets', { body: body('a'), headers, expect: 201 });
    const again = await send('POST', 'tickets', { body: body('a'), headers, expect: 201 });
    assert.deepEqual(again.json(), first.json());
    await send('POST', 'tickets', { body: body('b'), headers, expect: [422, 'idempotency_key_reused'] });
    const { id, attachment } = first.json();
    await until(async () => (await keptNames()).length === 1);
    await send('GET', attachment.url, { expect: { status: 200, body: 'octets' } });
    await send('DELETE', `tickets/${id}`, { expect: 204 });
    await send('POST', 'events/expunge', {
      json: { object: id },
      expect: { status: 200, members: { files: 1 } },
    });
    await until(async () => (await keptNames()).length === 0);
    const restored = (await send('POST', `tickets/${id}/restore`, { expect: 200 })).json();
    assert.equal(restored.attachment, undefined);
  });

  test('hooks and actions see files and read their octets', async () => {
    const banner: Part = ['octets', 'text/plain', 'b.txt'];
    const page = await form(
      'POST',
      'pages',
      [
        ['slug', 'home'],
        ['banner', banner],
      ],
      201,
    );
    assert.equal(page.slug, 'home octets');
    await form(
      'POST',
      'pages',
      [
        ['slug', 'x'],
        ['banner', ['x'.repeat(13), 'text/plain', 'x']],
      ],
      [422, 'unlucky'],
    );
    const note = (await send('POST', 'notes', { json: { pageId: page.id }, expect: 201 })).json();
    await send('PUT', `notes/${note.id}/scan`, {
      ...{ body: 'twelve octet', headers: { 'If-None-Match': '*' }, expect: 201 },
    });
    await send('GET', `notes/${note.id}/length`, { expect: { status: 200, json: { bytes: 12 } } });
    await send('DELETE', `pages/${page.id}`, { expect: 204 });
    await until(async () => (await keptNames()).length === 0);
  });

  test('events have what documents show of files, and no octets', async () => {
    const made = await form(
      'POST',
      'tickets',
      [
        ['title', 'event'],
        ['attachment', ['secret', 'text/plain', 'x']],
      ],
      201,
    );
    const [event] = await server.list(`events?type=tickets.created&sort=-id&limit=1`);
    assert.deepEqual(event.data.object.attachment, made.attachment);
    await send('DELETE', `tickets/${made.id}/attachment`, { expect: 204 });
  });

  test('a client that leaves midway leaves nothing', async () => {
    const id = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json().id;
    const socket = connect(server.port, '127.0.0.1');
    socket.write(
      `PUT /api/v1/tickets/${id}/attachment HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminKey}\r\nContent-Length: 100000\r\n\r\n`,
    );
    socket.write('x'.repeat(50_000));
    await until(async () => (await keptNames()).some((name) => name.startsWith('incoming')));
    socket.destroy();
    await until(async () => (await keptNames()).length === 0);
    await send('GET', `tickets/${id}/attachment`, { expect: [404, 'not_found'] });
  });

  test('200 uploads to one field at once end in one file', async () => {
    const id = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json().id;
    const path = `tickets/${id}/attachment`;
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) => send('PUT', path, { body: `octets ${at}` })),
    );
    const statuses = answers.map(({ status }) => status);
    assert.deepEqual([...new Set(statuses)].sort(), [200, 201]);
    assert.equal(statuses.filter((status) => status === 201).length, 1);
    const { attachment } = (await send('GET', `tickets/${id}`, { expect: 200 })).json();
    const { body } = await send('GET', path, { expect: 200 });
    assert.match(body, /^octets \d+$/);
    await until(async () => (await keptNames()).length === 1);
    assert.ok((await keptNames())[0]?.includes(attachment.id));
    await send('DELETE', path, { expect: 204 });
  });
});

describeOnEachStore('files under another base', async (engine) => {
  test('documents of before have the paths of today, wherever they are read', async () => {
    const folder = temporaryFolder();
    const earlier = await startServer({ config, engine, folder });
    const body = new FormData();
    body.append('title', 'a');
    body.append('attachment', new File(['x'], 'x.txt'));
    body.append('photos', new File(['y'], 'y.txt'));
    body.append('photos', new File(['z'], 'z.txt'));
    body.append('picture', new File([onePixel], 'p.gif'));
    const response = await fetch(`${earlier.url}/api/v1/tickets`, {
      ...{ method: 'POST', body, headers: { Authorization: `Bearer ${adminKey}` } },
    });
    assert.equal(response.status, 201);
    const { id } = (await response.json()) as { id: string };
    await earlier.stop();
    const moved = fileURLToPath(new URL('./fixtures/moved-files.config.ts', import.meta.url));
    const server = await startServer({ config: moved, engine, folder });
    const path = `/moved/v2/tickets/${id}`;
    const isRight = (document: Record<string, unknown>) => {
      const { attachment, photos, picture } = document as Record<string, { url: string }> & {
        photos: { id: string; url: string }[];
        picture: { url: string; previews: object };
      };
      assert.equal(attachment?.url, `${path}/attachment`);
      assert.deepEqual(
        photos.map(({ url }) => url),
        photos.map((photo) => `${path}/photos/${photo.id}`),
      );
      assert.equal(picture.url, `${path}/picture`);
      assert.deepEqual(picture.previews, { small: `${path}/picture/previews/small` });
      return photos;
    };
    try {
      const photos = isRight((await server.send('GET', path, { expect: 200 })).json());
      isRight((await server.list('/moved/v2/tickets'))[0]);
      assert.equal((await server.send('GET', photos[1]?.url ?? '', { expect: 200 })).body, 'z');
      const patched = await server.send('PATCH', path, {
        ...{ json: { title: 'b' }, expect: 200 },
      });
      isRight(patched.json());
      const [event] = await server.list('/moved/v2/events?type=tickets.updated');
      isRight(event.data.object);
    } finally {
      await server.stop();
    }
  });
});

describeOnEachStore('files that functions read', async (engine) => {
  const server = await serverOfFile({
    ...{ engine, config: fileURLToPath(new URL('./fixtures/read-files.config.ts', import.meta.url)) },
  });
  const { send, list } = server;

  test('are open to hooks, actions and subscribers, in events and in what they read', async () => {
    const { id } = (await send('POST', 'notes', { json: { title: 'a' }, expect: 201 })).json();
    const put = async (octets: Buffer) =>
      (await send('PUT', `notes/${id}/scan`, { body: octets })).json() as { digest: string };
    const { digest } = await put(randomBytes(3_000_000));
    const types = (await list('events')).map(({ type }) => type).filter((type) => type.startsWith('notes.'));
    assert.deepEqual(types, ['notes.created', 'notes.updated']);
    const seen = async (count: number) => {
      await until(async () => (await list('seen')).length === count);
      const all = await list('seen?sort=createdAt,id');
      return all.slice(-2).map(({ by, digests }) => [by, digests]);
    };
    assert.deepEqual(await seen(2), [
      ['event', [digest]],
      ['read', [digest]],
    ]);
    const copy = await send('POST', 'copies', { json: { of: id }, expect: 201 });
    assert.equal(copy.json().digest, digest);
    assert.deepEqual((await send('GET', 'notes/digest', { expect: 200 })).json(), [digest]);
    const { digest: empty } = await put(Buffer.alloc(0));
    // The file before is removed within moments, sooner or later than a subscriber reads it.
    const [[, [former, ...others]] = ['', []]] = await seen(4);
    assert.ok([digest, 'not_found'].includes(former ?? ''), former);
    assert.deepEqual(others, [empty]);
  });
});

/** A GIF. */
const onePixel = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAA=', 'base64');
