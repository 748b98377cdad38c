/** Files of documents over the wire, on both stores: upload, download, what PUT and PATCH say of them, links, and what is left behind. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const digestOf = (text: string) => `sha-256=:${createHash('sha256').update(text).digest('base64')}:`;
const plain = { 'Content-Type': 'text/plain' };

describeOnEachStore('files', async (engine) => {
  const server = await serverOfFile({ config, engine });
  const { send } = server;
  const ticket = async (fields: object = {}, options: object = {}): Promise<string> =>
    (await send('POST', 'tickets', { json: { title: 'a', ...fields }, expect: 201, ...options })).json().id;
  const put = (path: string, body: string, expect?: Expectation, headers: Record<string, string> = plain) =>
    send('PUT', path, { body, headers, expect });
  /** Names of the octets that are kept. */
  const keptNames = async (): Promise<readonly string[]> => {
    const folder = join(server.folder, 'files');
    const names = await readdir(folder, { recursive: true });
    return names.filter((name) => name.includes('file_'));
  };

  test('a file is set by PUT, read by GET, and shown in its document', async () => {
    const id = await ticket();
    const url = `/api/v1/tickets/${id}/attachment`;
    const headers = { ...plain, 'Content-Disposition': 'attachment; filename="notes.txt"' };
    const made = await put(`tickets/${id}/attachment`, 'hello', 201, headers);
    const file = made.json();
    assert.deepEqual(
      { ...file, id: '' },
      { id: '', name: 'notes.txt', type: 'text/plain', bytes: 5, digest: digestOf('hello'), url },
    );
    assert.match(file.id, /^file_/);
    assert.equal(made.headers.location, url);
    assert.deepEqual((await send('GET', `tickets/${id}`, { expect: 200 })).json().attachment, file);
    const got = await send('GET', url, {
      expect: {
        status: 200,
        body: 'hello',
        fields: {
          'content-type': 'text/plain; charset=utf-8',
          'content-length': '5',
          'accept-ranges': 'bytes',
          'cache-control': 'private, no-cache',
          'content-disposition': 'inline; filename="notes.txt"',
          'content-security-policy': /sandbox/,
          'x-content-type-options': 'nosniff',
          etag: made.headers.etag,
        },
      },
    });
    await send('GET', url, { headers: { 'If-None-Match': String(got.headers.etag) }, expect: 304 });
    const saved = { status: 200, fields: { 'content-disposition': 'attachment; filename="notes.txt"' } };
    await send('GET', `${url}?download=1`, { expect: saved });
    await send('GET', `${url}?download=2`, { expect: [400, 'query_parameter_invalid'] });
    await send('HEAD', url, { expect: { status: 200, body: '', fields: { 'content-length': '5' } } });
    const part = { status: 206, body: 'ell', fields: { 'content-range': 'bytes 1-3/5' } };
    await send('GET', url, { headers: { Range: 'bytes=1-3' }, expect: part });
  });

  test('a list of documents with files is read page by page, forwards and backwards', async () => {
    for (const title of ['p1', 'p2', 'p3']) await put(`tickets/${await ticket({ title })}/attachment`, title);
    const pageAt = async (path: string) => {
      const { headers, json } = await send('GET', path, { expect: 200 });
      const linkTo = (rel: string) =>
        new RegExp(`<([^>]*)>; rel="${rel}"`).exec(String(headers.link))?.[1] ?? 'none';
      const titles = json().items.map(({ title }: { title: string }) => title);
      return { titles, next: linkTo('next'), previous: linkTo('prev') };
    };
    for (const [sort, titles] of [
      ['title', ['p1', 'p2', 'p3']],
      ['-title', ['p3', 'p2', 'p1']],
    ] as const) {
      const first = await pageAt(`tickets?title[gte]=p1&fields=title&limit=2&sort=${sort}`);
      const second = await pageAt(first.next);
      assert.deepEqual([...first.titles, ...second.titles], titles);
      assert.equal(second.next, 'none');
      assert.deepEqual((await pageAt(second.previous)).titles, first.titles);
    }
  });

  test('preconditions of a file are about the file, and refuse before the octets are read', async () => {
    const id = await ticket();
    const path = `tickets/${id}/attachment`;
    await put(path, 'one', 201, { ...plain, 'If-None-Match': '*' });
    await put(path, 'two', [412, 'precondition_failed'], { ...plain, 'If-None-Match': '*' });
    const etag = String((await send('GET', path, { expect: 200 })).headers.etag);
    await put(path, 'two', 200, { ...plain, 'If-Match': etag });
    await put(path, 'three', [412, 'precondition_failed'], { ...plain, 'If-Match': etag });
    await send('GET', path, { expect: { status: 200, body: 'two' } });
    await send('DELETE', path, { headers: { 'If-Match': etag }, expect: [412, 'precondition_failed'] });
    await send('DELETE', path, { expect: 204 });
    await send('DELETE', path, { expect: [404, 'not_found'] });
    await send('GET', path, { expect: [404, 'not_found'] });
  });

  test('digests that the request states are checked, and nothing is kept of other octets', async () => {
    const id = await ticket();
    const path = `tickets/${id}/attachment`;
    const before = new Set(await keptNames());
    const sha512 = `sha-512=:${createHash('sha512').update('right').digest('base64')}:`;
    await put(path, 'wrong', [400, 'digest_mismatch'], { ...plain, 'Repr-Digest': digestOf('right') });
    await put(path, 'wrong', [400, 'digest_mismatch'], { ...plain, 'Content-Digest': sha512 });
    await put(path, 'right', [400, 'field_invalid'], { ...plain, 'Repr-Digest': 'sha-256=wrong' });
    await until(async () => (await keptNames()).every((name) => before.has(name)));
    await put(path, 'right', 201, {
      ...plain,
      'Repr-Digest': digestOf('right'),
      'Content-Digest': sha512,
    });
  });

  test('limits of a field: 413 by the announced and by the real length, 415 by the content', async () => {
    const id = await ticket();
    const path = `tickets/${id}/photos`;
    const post = (body: string, expect: Expectation, headers: Record<string, string> = plain) =>
      send('POST', path, { body, headers, expect });
    await post('x'.repeat(1000), 201);
    await post('x'.repeat(1001), [413, 'content_too_large']);
    await post('%PDF-1.7\n%âãÏÓ\n', [415, 'media_type_unsupported']);
    const picture = { 'Content-Type': 'image/png' };
    await post('<html><script>alert(1)</script></html>', [415, 'media_type_unsupported'], picture);
    await post('b', 201);
    await post('c', 201);
    await post('d', [422, 'validation_failed', '/photos']);
    const { photos } = (await send('GET', `tickets/${id}`, { expect: 200 })).json();
    assert.deepEqual(
      photos.map(({ bytes }: { bytes: number }) => bytes),
      [1000, 1, 1],
    );
    for (const { url, digest } of photos) assert.ok(url.startsWith('/api/v1/tickets/') && digest.length > 0);
    await send('GET', photos[1].url, { expect: { status: 200, body: 'b' } });
    await send('DELETE', photos[1].url, { expect: 204 });
    const left = (await send('GET', `tickets/${id}`)).json().photos;
    assert.deepEqual(left, [photos[0], photos[2]]);
  });

  test('in PUT and PATCH a file stays by its id, goes by null, and one of another document is 422', async () => {
    const [id, other] = [await ticket(), await ticket()];
    const file = (await put(`tickets/${id}/attachment`, 'mine', 201)).json();
    const foreign = (await put(`tickets/${other}/attachment`, 'theirs', 201)).json();
    const patch = (json: object, expect: Expectation) => send('PATCH', `tickets/${id}`, { json, expect });
    await patch({ title: 'b', attachment: { id: file.id } }, { status: 200, members: { attachment: file } });
    await send('PUT', `tickets/${id}`, { json: { title: 'c', attachment: file }, expect: 200 });
    await patch({ attachment: { id: foreign.id } }, [422, 'validation_failed', '/attachment/id']);
    await patch({ attachment: foreign }, [422, 'validation_failed', '/attachment/id']);
    await patch({ attachment: { ...file, name: 'x' } }, [422, 'validation_failed', '/attachment/name']);
    await patch({ attachment: { upload: 'file_x' } }, [422, 'validation_failed', '/attachment/upload']);
    await patch({ photos: [{}] }, [422, 'validation_failed', '/photos/0']);
    await patch({ photos: [{ id: file.id, upload: 'x' }] }, [422, 'validation_failed', '/photos/0/id']);
    await patch({ photos: [{ id: file.id }] }, [422, 'validation_failed', '/photos/0/id']);
    await send('GET', file.url, { expect: { status: 200, body: 'mine' } });
    await patch({ attachment: null }, { status: 200, members: { attachment: undefined } });
    await send('GET', file.url, { expect: [404, 'not_found'] });
    await send('PUT', `tickets/${other}`, { json: { title: 'd', attachment: null }, expect: 200 });
    await send('GET', foreign.url, { expect: [404, 'not_found'] });
  });

  test('a repeated upload or removal with its key is answered like the first one, and made once', async () => {
    const id = await ticket();
    const post = (key: string, body: string, expect: Expectation) =>
      send('POST', `tickets/${id}/photos`, {
        body,
        headers: { ...plain, 'Idempotency-Key': `"${key}"` },
        expect,
      });
    const first = await post(`${id}-1`, 'once', 201);
    const again = await post(`${id}-1`, 'once', 201);
    assert.deepEqual([again.json(), again.headers.etag], [first.json(), first.headers.etag]);
    assert.equal(again.headers.location, first.headers.location);
    await post(`${id}-1`, 'other', [422, 'idempotency_key_reused']);
    assert.deepEqual((await send('GET', `tickets/${id}`)).json().photos, [first.json()]);
    const removed = { headers: { 'Idempotency-Key': `"${id}-2"` }, expect: 204 as const };
    for (let count = 0; count < 2; count += 1) await send('DELETE', first.json().url, removed);
  });

  test('the octets of files that no document has are removed', async () => {
    const id = await ticket();
    const name = async (): Promise<string> =>
      (await send('GET', `tickets/${id}`)).json().attachment?.id ?? 'none';
    await put(`tickets/${id}/attachment`, 'first', 201);
    const first = await name();
    await put(`tickets/${id}/attachment`, 'second', 200);
    const second = await name();
    const has = async (file: string) => (await keptNames()).some((each) => each.includes(file));
    await until(async () => !(await has(first)));
    assert.ok(await has(second));
    // A softly deleted document keeps its file, and gets it back.
    await send('DELETE', `tickets/${id}`, { expect: 204 });
    await send('GET', `tickets/${id}/attachment`, { expect: [404, 'not_found'] });
    await send('POST', `tickets/${id}/restore`, { expect: 200 });
    await send('GET', `tickets/${id}/attachment`, { expect: { status: 200, body: 'second' } });
  });

  test('a deletion that follows another takes the files with it', async () => {
    const headers = { 'Content-Type': 'application/json' };
    const form = new FormData();
    form.set('slug', 'home');
    form.set('banner', new Blob(['banner'], { type: 'text/plain' }), 'b.txt');
    const made = await fetch(`${server.url}/api/v1/pages`, {
      method: 'POST',
      body: form,
      headers: { Authorization: 'Bearer sk_test_0123456789abcdef' },
    });
    assert.equal(made.status, 201, await made.clone().text());
    const page = (await made.json()) as { id: string; banner: { id: string } };
    const note = (await send('POST', 'notes', { json: { pageId: page.id }, headers, expect: 201 })).json();
    const path = `notes/${note.id}/scan`;
    await put(path, 'scan', 201, { ...plain, 'If-None-Match': '*' });
    await put(path, 'scan 2', [428, 'precondition_required']);
    assert.equal((await keptNames()).filter((name) => name.includes(page.banner.id)).length, 1);
    await send('DELETE', `pages/${page.id}`, { expect: 204 });
    await until(async () => !(await keptNames()).some((name) => name.includes(page.banner.id)));
    await send('GET', path, { expect: [404, 'not_found'] });
  });

  test('a file follows the rules of its document and of its field', async () => {
    const [one, two] = await Promise.all(
      ['one@example.com', 'two@example.com'].map(async (email) => {
        const json = { email, password: 'correct horse battery' };
        return (await send('POST', 'auth/register', { json, anonymous: true, expect: 201 })).json();
      }),
    );
    const id = await ticket({}, { as: one?.token });
    const path = `tickets/${id}/attachment`;
    await send('PUT', path, { body: 'x', headers: plain, as: two?.token, expect: [404, 'not_found'] });
    await send('PUT', path, { body: 'x', headers: plain, as: one?.token, expect: 201 });
    await send('GET', path, { as: one?.token, expect: 200 });
    await send('GET', path, { as: two?.token, expect: [404, 'not_found'] });
    await send('GET', path, { anonymous: true, expect: [401, 'no_token_provided'] });
    await send('POST', `${path}/link`, { as: two?.token, expect: [404, 'not_found'] });
  });

  test('a link needs no credential until its end, and ends with the file', async () => {
    const id = await ticket();
    const path = `tickets/${id}/attachment`;
    await send('POST', `${path}/link`, { expect: [404, 'not_found'] });
    await put(path, 'shared', 201);
    const made = await send('POST', `${path}/link`, { json: { expiresIn: 60 }, expect: 201 });
    const { url, expiresAt } = made.json();
    assert.equal(made.headers.location, url);
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 60_000) < 30_000);
    const shown = { status: 200, body: 'shared', fields: { 'referrer-policy': 'no-referrer' } };
    await send('GET', url, { anonymous: true, expect: shown });
    await send('GET', `${url}x`, { anonymous: true, expect: [404, 'not_found'] });
    await send('GET', '/api/v1/files/bnVsbA.x', { anonymous: true, expect: [404, 'not_found'] });
    await send('POST', `${path}/link`, {
      json: { expiresIn: 0 },
      expect: [422, 'validation_failed', '/expiresIn'],
    });
    await put(path, 'other', 200);
    await send('GET', url, { anonymous: true, expect: [404, 'not_found'] });
    const again = (await send('POST', `${path}/link`, { expect: 201 })).json().url;
    await send('DELETE', `tickets/${id}`, { expect: 204 });
    await send('GET', again, { anonymous: true, expect: [404, 'not_found'] });
  });
});
