/** Limits of files at their edges: quotas, rates by octets, and a full disk. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';
import { fill, smallDisk } from '../../harness/small-disk.ts';

const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));

describeOnEachStore('limits of files', async (engine) => {
  const server = await serverOfFile({
    ...{ config, engine },
    env: {
      COMITY_FILES_COLLECTION_BYTES_MAX: '1000',
      COMITY_FILES_PRINCIPAL_BYTES_MAX: '600',
    },
  });
  const { send } = server;
  const account = async (email: string): Promise<string> => {
    const json = { email, password: 'correct horse battery' };
    return (await send('POST', 'auth/register', { json, anonymous: true, expect: 201 })).json().token;
  };
  const put = async (
    as: string | undefined,
    bytes: number,
    expect: Expectation,
    to: typeof send = send,
  ): Promise<string> => {
    const made = await to('POST', 'tickets', { json: { title: 'a' }, as, expect: 201 });
    const path = `tickets/${made.json().id}/attachment`;
    await to('PUT', path, { body: 'x'.repeat(bytes), as, expect });
    return path;
  };

  test('quotas of a principal and of a collection say what is used', async () => {
    const one = await account('one@example.com');
    const quota = (name: string, bytesMax: number, bytesUsed: number): Expectation => ({
      ...{ status: 413, code: 'quota_exceeded', members: { quota: name, bytesMax, bytesUsed } },
    });
    const path = await put(one, 600, 201);
    await put(one, 1, quota('principal', 600, 600));
    await send('DELETE', path, { as: one, expect: 204 });
    const again = await put(one, 600, 201);
    await put(undefined, 401, quota('collection', 1000, 600));
    await put(undefined, 400, 201);
    await put(undefined, 1, quota('collection', 1000, 1000));

    const headers = { 'Upload-Complete': '?1', 'Content-Type': 'text/plain' };
    const upload = (await send('POST', 'uploads', { headers, body: 'x', expect: 201 })).json().id;
    const json = { title: 'a', attachment: { upload } };
    await send('POST', 'tickets', { json, expect: quota('collection', 1000, 1000) });
    await send('DELETE', again, { as: one, expect: 204 });
    await send('POST', 'tickets', { json, expect: 201 });
  });

  test('the quota of a tenant is that of all who belong to it, up to its last octet', async () => {
    const limited = await serverOfFile({
      ...{ config, engine },
      env: { COMITY_FILES_TENANT_BYTES_MAX: '1000', COMITY_FILES_PRINCIPAL_BYTES_MAX: '900' },
    });
    const member = async (email: string, tenant: string | null): Promise<string> => {
      const json = { email, password: 'correct horse battery' };
      const made = await limited.send('POST', 'auth/register', { json, anonymous: true, expect: 201 });
      await limited.send('PATCH', `users/${made.json().user.id}`, { json: { tenant }, expect: 200 });
      return (await limited.send('POST', 'auth/login', { json, anonymous: true, expect: 200 })).json().token;
    };
    const north = [
      await member('a@north.example', 'north'),
      await member('b@north.example', 'north'),
    ] as const;
    const south = await member('c@south.example', 'south');
    const alone = await member('d@example.com', null);
    const begin = (as: string, bytes: number, expect: Expectation) =>
      limited.send('POST', 'uploads', {
        ...{ headers: { 'Tus-Resumable': '1.0.0', 'Upload-Length': String(bytes) }, as, expect },
      });
    const putAs = (as: string, bytes: number, expect: Expectation) => put(as, bytes, expect, limited.send);
    const full = (bytesUsed: number): Expectation => ({
      ...{ status: 413, code: 'quota_exceeded', members: { quota: 'tenant', bytesMax: 1000, bytesUsed } },
    });
    const first = await putAs(north[0], 600, 201);
    await putAs(north[1], 401, full(600));
    await begin(north[1], 401, full(600));
    await begin(north[1], 400, 201);
    await putAs(north[0], 1, full(1000));
    for (const as of [south, alone]) await putAs(as, 900, 201);
    await putAs(south, 101, { status: 413, code: 'quota_exceeded', members: { quota: 'tenant' } });
    await putAs(alone, 1, { status: 413, code: 'quota_exceeded', members: { quota: 'principal' } });
    await limited.send('DELETE', first, { as: north[0], expect: 204 });
    await putAs(north[1], 500, 201);
  });

  test('octets of a file count as further reads', async () => {
    const limited = await serverOfFile({
      ...{ config, engine },
      env: { COMITY_RATE_LIMIT_READS: '50', COMITY_RATE_LIMIT_FILE_KIBIBYTES: '1' },
    });
    const json = { email: 'two@example.com', password: 'correct horse battery' };
    const answer = await limited.send('POST', 'auth/register', { json, anonymous: true, expect: 201 });
    const as = answer.json().token;
    const made = await limited.send('POST', 'tickets', { json: { title: 'a' }, as, expect: 201 });
    const path = `tickets/${made.json().id}/attachment`;
    await limited.send('PUT', path, { body: 'x'.repeat(30 * 1024), as, expect: 201 });
    /** Of 50 requests in a minute, one is regained in 1.2 seconds. */
    const assertUsed = (used: number, expected: number): void =>
      assert.ok(used <= expected && used > expected - 5, `${used} of ${expected}`);
    const left = async () =>
      Number((await limited.send('HEAD', path, { as })).headers['x-ratelimit-remaining']);
    const before = await left();
    await limited.send('GET', path, { as, expect: 200 });
    const between = await left();
    assertUsed(before - between, 1 + 30 + 1);
    await limited.send('GET', path, { as, headers: { Range: 'bytes=0-7167' }, expect: 206 });
    assertUsed(between - (await left()), 1 + 7 + 1);
  });

  test('a request of tus over the rate is 423, with which its clients go on, and any other 429', async () => {
    const limited = await serverOfFile({ ...{ config, engine }, env: { COMITY_RATE_LIMIT_WRITES: '1' } });
    const json = { email: 'three@example.com', password: 'correct horse battery' };
    const answer = await limited.send('POST', 'auth/register', { json, anonymous: true, expect: 201 });
    const as = answer.json().token;
    const tus = { 'Tus-Resumable': '1.0.0', 'Upload-Length': '5' };
    const made = await limited.send('POST', 'uploads', { headers: tus, as, expect: 201 });
    const path = String(made.headers.location).slice('/api/v1/'.length);
    const headers = { ...tus, 'Content-Type': 'application/offset+octet-stream', 'Upload-Offset': '0' };
    for (const [method, to, sent, expect] of [
      ['PATCH', path, headers, [423, 'upload_rate_limited']],
      ['POST', 'uploads', tus, [423, 'upload_rate_limited']],
      ['POST', 'tickets/one/attachment', tus, [423, 'upload_rate_limited']],
      ['PUT', 'tickets/one/attachment', {}, [429, 'rate_limited']],
      ['POST', 'uploads', { 'Upload-Complete': '?1' }, [429, 'rate_limited']],
      ['POST', 'tickets', tus, [429, 'rate_limited']],
    ] as const) {
      const { headers: got } = await limited.send(method, to, { headers: sent, body: 'hello', as, expect });
      assert.ok(Number(got['retry-after']) > 0, `${method} ${to}`);
    }
  });
});

test('a full disk is 507, nothing half kept, and the program goes on', async (context) => {
  const disk = smallDisk(context, '2m');
  if (disk === undefined) return;
  const server = await startServer({ config, env: { COMITY_FILES_URL: pathToFileURL(disk).href } });
  context.after(() => server.stop());
  const { send } = server;
  const path = `tickets/${(await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json().id}/attachment`;
  await send('PUT', path, { body: 'kept', expect: 201 });
  const free = join(disk, 'others');
  for (let pages = 0; pages < 400 && fill(free); pages += 1);
  const long = Buffer.alloc(1024 * 1024, 'x');
  await send('PUT', path, { body: long, expect: [507, 'file_space_missing'] });
  await send('GET', path, { expect: { status: 200, body: 'kept' } });
  const names = readdirSync(disk, { recursive: true }).map(String);
  assert.equal(names.filter((name) => name.includes('file_')).length, 1, names.join());
});
