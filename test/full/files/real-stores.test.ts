/**
 * Files in buckets of stores that others wrote and that keep them: OpenStack Swift, where the machine has it, and whatever bucket
 * COMITY_TEST_FILES_URL names, whose key is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. docs/guides/files-storage.md lists which passed.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inParallel } from '../../../src/files/copy-files.ts';
import { openBucket } from '../../files/open-bucket.ts';
import { keepNew, keysOf, placeContract } from '../../files/place-contract.ts';
import { runCommand } from '../../harness/command-line.ts';
import { adminKey, targetOf } from '../../harness/exchange.ts';
import { startServer } from '../../harness/running-server.ts';
import type { S3Credential } from '../../harness/s3-signature.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { type RealBucket, startSwift } from './swift-store.ts';

const MiB = 1_048_576;
const config = fileURLToPath(new URL('../../../bench/files/comity.config.ts', import.meta.url));
const longBytes = 100 * MiB;
/** Over one page of a list. */
const manyFiles = 260;

const swift = await startSwift();
after(() => swift?.close());
if (swift === undefined) {
  const why = 'no Swift here: apt-get install swift-proxy swift-account swift-container swift-object';
  test('files in a bucket of OpenStack Swift', { skip: why });
} else testBucket('OpenStack Swift', swift);

const { COMITY_TEST_FILES_URL: named, AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '' } = process.env;
if (named !== undefined) {
  const credential = { accessKey: AWS_ACCESS_KEY_ID, secretKey: AWS_SECRET_ACCESS_KEY };
  testBucket(named, { filesUrl: named, credential, close: () => undefined });
}

function testBucket(name: string, { filesUrl, credential }: RealBucket): void {
  /** Each test has a prefix of its own, so the bucket may be in use. */
  const newUrl = (): string => {
    const url = new URL(filesUrl);
    url.pathname = `${url.pathname.replace(/^\/?$/, '')}/comity-test-${randomUUID()}`;
    return url.href;
  };
  const open = async (url = newUrl()) => {
    const { place, observed } = await openBucket({ filesUrl: url, credential });
    const dispose = async (): Promise<void> => {
      for (const key of await keysOf(place, '')) await place.remove(key);
      await place.close();
      assert.deepEqual(observed, []);
    };
    return { place, dispose };
  };

  placeContract(`bucket of ${name}`, open, 11 * MiB + 17);

  describe(`bucket of ${name}`, () => {
    test('lists more files than a page has', async () => {
      const { place, dispose } = await open();
      const ids = Array.from({ length: manyFiles }, (_, at) => Buffer.from([at % 256, at >> 8]));
      const keys: string[] = [];
      const keep = async (octets: Buffer): Promise<void> => {
        keys.push((await keepNew(place, octets)).key);
      };
      await inParallel(ids, keep, { atOnce: 8 });
      assert.deepEqual(await keysOf(place, ''), keys.sort());
      await dispose();
    });

    test('keeps a file of 100 MiB for the program', { timeout: 500_000 }, async (context) => {
      const urls = { source: newUrl(), copy: newUrl() };
      await keepForProgram(context, urls, credential);
      for (const url of [urls.source, urls.copy]) await (await open(url)).dispose();
    });
  });
}

type Urls = { readonly source: string; readonly copy: string };

/** Uploads, reads parts, checks, backs up, restores into the copy, checks that, and removes one of two files. */
async function keepForProgram(context: TestContext, urls: Urls, credential: S3Credential): Promise<void> {
  const environment = (folder: string, url: string): Record<string, string> => ({
    COMITY_CONFIG: config,
    COMITY_DATA: folder,
    COMITY_FILES_URL: url,
    COMITY_FILES_S3_ACCESS_KEY: credential.accessKey,
    COMITY_FILES_S3_SECRET_KEY: credential.secretKey,
  });
  const run = async (args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(args, env);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const folder = temporaryFolder();
  const env = environment(folder, urls.source);
  const server = await startServer({ config, folder, env });
  context.after(() => server.stop());
  const octets = randomBytes(longBytes);
  const path = await upload(server, octets);
  const other = await upload(server, randomBytes(1000));
  await readRanges(server, path, octets);

  const found = `2 files (${longBytes + 1000} bytes): 0 missing, 0 damaged\n`;
  assert.equal(await run(['files', 'check'], env), found);
  const backup = join(temporaryFolder(), 'backup.db');
  await run(['backup', backup], env);
  const copy = environment(join(temporaryFolder(), 'data'), urls.copy);
  await run(['restore', backup], copy);
  assert.equal(await run(['files', 'check'], copy), found);

  await server.send('DELETE', other, { expect: 204 });
  const { place } = await openBucket({ filesUrl: urls.source, credential });
  context.after(() => place.close());
  await until(async () => (await keysOf(place, '')).length === 1, 'the removed file has left the bucket');
  assert.equal(await run(['files', 'check'], env), `1 files (${longBytes} bytes): 0 missing, 0 damaged\n`);
}

type Sender = Pick<Awaited<ReturnType<typeof startServer>>, 'send' | 'url'>;

/** @returns the path of the file */
async function upload({ send }: Sender, body: Buffer): Promise<string> {
  const { id } = (await send('POST', 'media', { json: { title: 'a' }, expect: 201 })).json();
  const path = `media/${id}/file`;
  await send('PUT', path, { body, headers: { 'Content-Type': 'application/octet-stream' }, expect: 201 });
  return path;
}

async function readRanges({ url }: Sender, path: string, octets: Buffer): Promise<void> {
  for (const [range, first, end] of [
    ['0-', 0, longBytes],
    ['0-0', 0, 1],
    ['-5', longBytes - 5, longBytes],
    [`${16 * MiB - 2}-${16 * MiB + 1}`, 16 * MiB - 2, 16 * MiB + 2],
    [`${longBytes - 1}-`, longBytes - 1, longBytes],
  ] as const) {
    const headers = { Authorization: `Bearer ${adminKey}`, Range: `bytes=${range}` };
    const part = await fetch(`${url}${targetOf(path)}`, { headers });
    assert.equal(part.status, 206);
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(octets.subarray(first, end)), range);
  }
}
