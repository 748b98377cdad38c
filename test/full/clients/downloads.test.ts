/** Downloads by clients as people have them: curl, undici, fetch and node:http2, in whole, in ranges and resumed (§4.2.7). */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Agent, interceptors, request } from 'undici';
import type { Operation, Resource } from '../../../src/kernel/resource.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { roomOf, type Served, serve, surround } from '../../harness/walked-resources.ts';
import { findCommand, type Ran, runCommand } from './command.ts';

const MiB = 1024 * 1024;
const content = randomBytes(8 * MiB);
const folder = temporaryFolder();
const path = join(folder, 'content');
const store = await openEmbedded();
const modifiedAt = Date.UTC(2026, 7, 1);
let served: Served;
/** Readings fail after this many octets. */
let readMax = Number.POSITIVE_INFINITY;
let tag = 'v1';

function read(first: number, end: number): AsyncIterable<Uint8Array> {
  const stream = createReadStream(path, { start: first, end: end - 1 });
  const max = readMax;
  if (max === Number.POSITIVE_INFINITY) return stream;
  return (async function* () {
    let given = 0;
    for await (const piece of stream) {
      yield piece;
      given += piece.length;
      if (given >= max) throw new Error('the disk failed');
    }
  })();
}

const operation: Operation = {
  permission: () => 'granted',
  ranges: true,
  standing: () => ({ exists: true, visible: true, permitted: true }),
  validators: () => ({ tag, modifiedAt }),
  represent: () => ({
    content: { bytes: content.length, read: async (first, end) => read(first, end) },
    mediaType: 'application/octet-stream',
    validators: { tag, modifiedAt },
    cacheControl: 'private, no-cache',
  }),
};

const resource: Resource = {
  pattern: '/content',
  operations: new Map([['GET', operation]]),
  constantFields: [],
  offers: ['*/*'],
};

before(async () => {
  await writeFile(path, content);
  served = await serve(roomOf(surround(store), [resource]));
});

after(() => served?.stop());

const url = () => `http://127.0.0.1:${served.port}/content`;

function digestOf(octets: Uint8Array): string {
  return createHash('sha256').update(octets).digest('hex');
}

async function failingAfter<T>(octets: number, act: () => Promise<T>): Promise<T> {
  readMax = octets;
  try {
    return await act();
  } finally {
    readMax = Number.POSITIVE_INFINITY;
  }
}

const curlPath = findCommand('curl');

describe('curl', { skip: curlPath === undefined ? 'curl is not installed' : false }, () => {
  const curl = (...args: readonly string[]): Promise<Ran> =>
    runCommand(curlPath ?? '', ['-sS', '--max-time', '20', '--noproxy', '', ...args]);
  const shown = ['-w', '%{http_code} %{size_download}'];

  for (const version of ['--http1.1', '--http2-prior-knowledge'] as const) {
    test(`takes the whole and ranges by -r with ${version}`, async () => {
      const to = join(folder, `whole${version}`);
      const whole = await curl(version, ...shown, '-o', to, url());
      assert.equal(whole.stdout, `200 ${content.length}`);
      assert.equal(digestOf(await readFile(to)), digestOf(content));
      for (const [range, first, end] of [
        ['0-9', 0, 10],
        ['1000000-', 1_000_000, content.length],
        ['-1000', content.length - 1000, content.length],
      ] as const) {
        const ranged = await curl(version, ...shown, '-o', to, '-r', range, url());
        assert.equal(ranged.stdout, `206 ${end - first}`);
        assert.ok((await readFile(to)).equals(content.subarray(first, end)));
      }
      const parts = await curl(
        version,
        '-w',
        '%{http_code} %{content_type}',
        '-o',
        to,
        '-r',
        '0-1,5-6',
        url(),
      );
      assert.match(parts.stdout, /^206 multipart\/byteranges; boundary=/);
    });

    test(`resumes what was cut by -C - with ${version}, and sees that it was`, async () => {
      const to = join(folder, `resumed${version}`);
      const cut = await failingAfter(3 * MiB, () => curl(version, '-o', to, url()));
      // CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM.
      assert.equal(cut.code, version === '--http1.1' ? 18 : 92);
      const before = (await readFile(to)).length;
      assert.ok(before >= MiB && before < content.length);
      const rest = await curl(version, ...shown, '-C', '-', '-o', to, url());
      assert.equal(rest.stdout, `206 ${content.length - before}`);
      assert.equal(digestOf(await readFile(to)), digestOf(content));
    });
  }

  test('is told by 416 that it has all of it', async () => {
    const to = join(folder, 'finished');
    await writeFile(to, content);
    const again = await curl(...shown, '-C', '-', '-o', to, url());
    // 7.88 takes the body of the 416 for no part of the file.
    assert.match(again.stdout, /^416 /);
    assert.equal(digestOf(await readFile(to)), digestOf(content));
  });

  test('gets a changed file whole for If-Range', async () => {
    const changed = await curl(...shown, '-o', '/dev/null', '-r', '5-', '-H', 'If-Range: "v0"', url());
    assert.equal(changed.stdout, `200 ${content.length}`);
  });
});

test('undici takes ranges, and its retries resume a response that was cut', async () => {
  const whole = await request(url(), { headers: { Range: 'bytes=10-19' } });
  assert.deepEqual(
    [whole.statusCode, whole.headers['content-range']],
    [206, `bytes 10-19/${content.length}`],
  );
  assert.ok(Buffer.from(await whole.body.arrayBuffer()).equals(content.subarray(10, 20)));
  const agent = new Agent().compose(interceptors.retry({ minTimeout: 10, maxRetries: 5 }));
  try {
    readMax = 3 * MiB;
    const { statusCode, body } = await request(url(), { dispatcher: agent });
    const octets = await body.arrayBuffer();
    assert.deepEqual([statusCode, digestOf(new Uint8Array(octets))], [200, digestOf(content)]);
  } finally {
    readMax = Number.POSITIVE_INFINITY;
    await agent.close();
  }
});

test('fetch sees a response that was cut as one that failed', async () => {
  const response = await fetch(url());
  assert.equal(digestOf(new Uint8Array(await response.arrayBuffer())), digestOf(content));
  await assert.rejects(
    failingAfter(MiB, async () => (await fetch(url())).arrayBuffer()),
    /terminated/,
  );
});

test('node:http2 takes 64 ranges at once on one connection', async () => {
  const session = connect(`http://127.0.0.1:${served.port}`);
  try {
    const bytes = content.length / 64;
    const parts = await Promise.all(
      Array.from({ length: 64 }, async (_, at) => {
        const range = `bytes=${at * bytes}-${(at + 1) * bytes - 1}`;
        const stream = session.request({ ':path': '/content', range, 'if-range': `"${tag}"` });
        const pieces: Buffer[] = [];
        for await (const piece of stream) pieces.push(piece as Buffer);
        return Buffer.concat(pieces);
      }),
    );
    assert.equal(digestOf(Buffer.concat(parts)), digestOf(content));
  } finally {
    session.destroy();
  }
});

test('64 ranges at once over HTTP/1.1 are put together to the file', async () => {
  const to = await open(join(folder, 'together'), 'w+');
  try {
    const bytes = content.length / 64;
    await Promise.all(
      Array.from({ length: 64 }, async (_, at) => {
        const headers = { Range: `bytes=${at * bytes}-${(at + 1) * bytes - 1}` };
        const response = await fetch(url(), { headers });
        assert.equal(response.status, 206);
        await to.write(new Uint8Array(await response.arrayBuffer()), 0, bytes, at * bytes);
      }),
    );
    assert.equal(digestOf(await readFile(join(folder, 'together'))), digestOf(content));
  } finally {
    await to.close();
  }
});

test('a changed file is not joined to what a client has of the old one', async () => {
  const first = await fetch(url(), { headers: { Range: 'bytes=0-9' } });
  const held = first.headers.get('etag') ?? '';
  await first.arrayBuffer();
  tag = 'v2';
  try {
    const rest = await fetch(url(), { headers: { Range: 'bytes=10-', 'If-Range': held } });
    assert.deepEqual([rest.status, rest.headers.get('etag')], [200, '"v2"']);
    await rest.arrayBuffer();
  } finally {
    tag = 'v1';
  }
});
