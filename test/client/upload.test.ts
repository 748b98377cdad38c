/** Uploads of the client: what they send, and what counts as success where answers are lost or are not those of the program. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ComityError, createClient, type UploadOptions } from '../../src/client/index.ts';
import { adminKey } from '../harness/exchange.ts';
import { serverOfFile } from '../harness/running-server.ts';
import type files from '../wire/files/fixtures/files.config.ts';
import { type Fault, startFaultyProxy } from './faulty-proxy.ts';

const config = fileURLToPath(new URL('../wire/files/fixtures/files.config.ts', import.meta.url));
const program = await serverOfFile({ config });
const proxy = await startFaultyProxy(() => program.port, { after });
const client = createClient<typeof files>({
  ...{ baseUrl: proxy.baseUrl, key: adminKey },
  routes: { notes: { length: 'GET /length' } },
});

const made = async () => (await client.tickets.create({ title: 'a' })).id;
const blob = (text: string) => new Blob([text], { type: 'text/plain' });
const octetsOf = async (url: string) => (await program.send('GET', url, { expect: 200 })).body;

describe('upload', () => {
  it('sets a file with its name and type, and says how far it is', async () => {
    const id = await made();
    const seen: (readonly [number, number])[] = [];
    const name = `Plan (1)* 'ü".txt`;
    const file = await client.tickets.upload(id, 'attachment', new File(['hello'], name), {
      onProgress: (...each) => seen.push(each),
    });
    assert.deepEqual([file.name, file.type, file.bytes], [name, 'text/plain', 5]);
    assert.deepEqual(seen, [
      [0, 5],
      [5, 5],
    ]);
    assert.deepEqual((await client.tickets.get(id)).attachment, file);
    assert.equal(await octetsOf(file.url), 'hello');
  });

  it('adds to a list, of which it learns once that it is one', async () => {
    const ticket = await client.tickets.create({ title: 'a' });
    const sent = proxy.passed.length;
    const [one, other] = [
      await client.tickets.upload(ticket, 'photos', blob('one'), { name: 'one.txt' }),
      await client.tickets.upload(ticket, 'photos', blob('other')),
    ];
    assert.deepEqual((await client.tickets.get(ticket.id)).photos, [one, other]);
    const methods = proxy.passed.slice(sent).map(({ method }) => method);
    assert.deepEqual(methods, ['OPTIONS', 'POST', 'POST', 'GET']);
  });

  it('adds one file where the answer is lost', async () => {
    const id = await made();
    let lost = 0;
    proxy.fault = ({ method }) => (method === 'POST' && lost++ === 0 ? 'lost' : undefined);
    const file = await client.tickets.upload(id, 'photos', blob('once'));
    proxy.fault = () => undefined;
    assert.equal(lost, 2);
    assert.deepEqual((await client.tickets.get(id)).photos, [file]);
  });

  it('is no success without the file in the answer', async () => {
    const id = await made();
    const json = { 'Content-Type': 'application/json' };
    for (const body of ['', '{"id":"file_x","bytes":3}', '{"error":null}']) {
      proxy.fault = ({ method }) => (method === 'PUT' ? { status: 200, headers: json, body } : undefined);
      await assert.rejects(client.tickets.upload(id, 'attachment', blob('four')), { code: 'answer_unknown' });
    }
    proxy.fault = () => undefined;
    assert.equal((await client.tickets.get(id)).attachment, undefined);
  });

  it('replaces the file that the caller has seen alone', async () => {
    const id = await made();
    const { url } = await client.tickets.upload(id, 'attachment', blob('one'));
    const ifMatch = String((await program.send('GET', url)).headers.etag);
    await client.tickets.upload(id, 'attachment', blob('two'), { ifMatch });
    const late = client.tickets.upload(id, 'attachment', blob('three'), { ifMatch });
    await assert.rejects(late, { code: 'precondition_failed' });
    assert.equal(await octetsOf(url), 'two');
  });

  it('fails with the refusal of the program, and ends with its signal', async () => {
    const id = await made();
    const photo = client.tickets.upload(id, 'photos', blob('x'.repeat(1001)));
    await assert.rejects(
      photo,
      (error) => error instanceof ComityError && error.code === 'content_too_large',
    );
    const signal = AbortSignal.abort(new Error('enough'));
    await assert.rejects(client.tickets.upload(id, 'attachment', blob('x'), { signal }), /enough/);
  });
});

describe('an upload in chunks', () => {
  const bytes = 3_000_000;
  const long = new File([randomBytes(bytes)], 'long.bin', { type: 'application/x-long' });
  const digest = async () =>
    `sha-256=:${createHash('sha256')
      .update(Buffer.from(await long.arrayBuffer()))
      .digest('base64')}:`;
  /** The requests of an upload from here on, with the offsets of chunks. */
  const since = (first: number) =>
    proxy.passed
      .slice(first)
      .map(({ method, headers }) => [method, headers['upload-offset']].filter((each) => each).join(' '));
  /** Meets the request with this number among those with the method. */
  const faultAt = (method: string, at: number, fault: Fault) => {
    let count = 0;
    proxy.fault = (request) => (request.method === method && count++ === at ? fault : undefined);
  };
  const upload = async (id: string, options: UploadOptions = {}) => {
    const file = await client.tickets.upload(id, 'attachment', long, options);
    proxy.fault = () => undefined;
    assert.deepEqual([file.name, file.bytes, file.digest], ['long.bin', bytes, await digest()]);
    assert.deepEqual((await client.tickets.get(id)).attachment, file);
  };

  it('has progress, which only grows, in chunks that grow', async () => {
    const id = await made();
    const seen: number[] = [];
    await upload(id, { onProgress: (sentBytes) => seen.push(sentBytes) });
    assert.deepEqual([seen[0], seen.at(-1)], [0, bytes]);
    assert.deepEqual(
      seen.toSorted((one, other) => one - other),
      seen,
    );
    assert.ok(seen.length > 3 && new Set(seen).size === seen.length, String(seen));
  });

  const faults: readonly (readonly [string, Fault])[] = [
    ['the answer is lost', 'lost'],
    ['a proxy lost the program', { status: 502 }],
    ['the program wants it later', { status: 503, headers: { 'Retry-After': '0' } }],
    ['an answer says success and nothing else', { status: 200 }],
    ['a proxy cut the chunk', { status: 204, headers: { 'Upload-Length': '1' } }],
  ];
  for (const [title, fault] of faults)
    it(`asks for the offset and goes on if ${title}`, async () => {
      const id = await made();
      const first = proxy.passed.length;
      faultAt('PATCH', 1, fault);
      await upload(id);
      const sent = since(first);
      assert.equal(sent.filter((each) => each.startsWith('HEAD')).length, 1, String(sent));
      assert.equal(sent.filter((each) => each === 'POST').length, 1);
      assert.equal(sent.filter((each) => each === 'PATCH 0').length, 1, 'nothing begins anew');
    });

  /** A storage of a page, which outlives the client. */
  const storage = () => {
    const kept = new Map<string, string>();
    return {
      kept,
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
      removeItem: (name: string) => void kept.delete(name),
    };
  };
  /** Ends an upload after its first chunk, as a reload does. */
  const leave = async (id: string, options: UploadOptions) => {
    const controller = new AbortController();
    const onProgress = (sentBytes: number) => sentBytes > 0 && controller.abort(new Error('reload'));
    const left = client.tickets.upload(id, 'attachment', long, {
      ...{ ...options, onProgress, signal: controller.signal },
    });
    await assert.rejects(left, /reload/);
  };

  it('goes on after a reload where its place is remembered, and is forgotten when it is done', async () => {
    const id = await made();
    const remember = storage();
    await leave(id, { remember });
    const first = proxy.passed.length;
    const seen: number[] = [];
    await upload(id, { remember, onProgress: (sentBytes) => seen.push(sentBytes) });
    assert.deepEqual(
      since(first).filter((each) => each === 'HEAD' || each === 'POST' || each === 'PATCH 0'),
      ['HEAD'],
    );
    assert.ok((seen[0] ?? 0) > 0);
    assert.equal(remember.kept.get('comity.uploads'), '[]');
  });

  it('begins anew where the upload is gone, was taken, or is another file', async () => {
    const [id, other] = [await made(), await made()];
    const remember = storage();
    const begins = async (target: string, options: UploadOptions = { remember }) => {
      const first = proxy.passed.length;
      await upload(target, options);
      assert.equal(since(first).filter((each) => each === 'PATCH 0').length, 1);
    };
    await leave(id, { remember });
    await begins(other);
    await begins(id, { remember, name: 'long.bin', type: 'application/x-other' });
    const [[, location]] = JSON.parse(remember.kept.get('comity.uploads') ?? '');
    await program.send('DELETE', location, { headers: { 'Tus-Resumable': '1.0.0' }, expect: 204 });
    await begins(id);
    // Taken: the answer of the document came, and the page went before it forgot the upload.
    await leave(other, { remember });
    const before = new Map(remember.kept);
    await upload(other, { remember });
    for (const [name, value] of before) remember.kept.set(name, value);
    await begins(other);
  });

  it('needs no storage that works', async () => {
    const fail = () => {
      throw new Error('full');
    };
    await upload(await made(), { remember: { getItem: fail, setItem: fail, removeItem: fail } });
    const remember = storage();
    remember.kept.set('comity.uploads', '{"not": "a list"}');
    await upload(await made(), { remember });
  });

  it('names the file once if the answer of the document is lost', async () => {
    const { id } = await made().then((each) => client.tickets.get(each));
    let lost = 0;
    proxy.fault = ({ method, url }) =>
      method === 'PATCH' && url.includes('/tickets/') && lost++ === 0 ? 'lost' : undefined;
    await upload(id);
    assert.equal(lost, 2);
  });

  it('is refused by the limit of its field before its octets are sent', async () => {
    const id = await made();
    const first = proxy.passed.length;
    const refused = client.tickets.upload(id, 'photos', long);
    await assert.rejects(refused, { code: 'content_too_large', status: 413 });
    assert.deepEqual(
      since(first).filter((each) => each.startsWith('PATCH')),
      [],
    );
  });

  it('is kept apart from what the caller has not seen', async () => {
    const id = await made();
    const { url } = await client.tickets.upload(id, 'attachment', blob('one'));
    const ifMatch = String((await program.send('GET', url)).headers.etag);
    await client.tickets.upload(id, 'attachment', blob('two'));
    const late = client.tickets.upload(id, 'attachment', long, { ifMatch });
    await assert.rejects(late, { code: 'precondition_failed', status: 412 });
    assert.equal(await octetsOf(url), 'two');
  });

  it('ends with its signal, and with the failures in a row', async () => {
    const id = await made();
    const controller = new AbortController();
    const onProgress = (sentBytes: number) => sentBytes > 0 && controller.abort(new Error('enough'));
    const ended = client.tickets.upload(id, 'attachment', long, { onProgress, signal: controller.signal });
    await assert.rejects(ended, /enough/);
    proxy.fault = ({ method }) =>
      method === 'PATCH' ? { status: 503, headers: { 'Retry-After': '31' } } : undefined;
    await assert.rejects(client.tickets.upload(id, 'attachment', long), { status: 503, retryAfter: 31 });
    proxy.fault = ({ method }) => (method === 'PATCH' ? { status: 200 } : undefined);
    const stuck = client.tickets.upload(id, 'attachment', new File([new Uint8Array(600_000)], 'x'), {
      headers: {},
    });
    await assert.rejects(stuck, { code: 'answer_unknown' });
    proxy.fault = () => undefined;
    assert.equal((await client.tickets.get(id)).attachment, undefined);
  });

  it('waits for a document to come', async () => {
    const attachment = await client.upload(long);
    const { id } = await client.tickets.create({ title: 'b', attachment });
    assert.equal((await client.tickets.get(id)).attachment?.digest, await digest());
    const empty = await client.upload(new File([], 'empty.txt'));
    assert.equal((await client.tickets.update(id, { attachment: empty })).attachment?.bytes, 0);
  });
});
