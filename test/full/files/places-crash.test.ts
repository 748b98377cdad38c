/** Files after SIGKILL, over and over: what was acknowledged is whole, and so is whatever else has a key. And the order of fsync and rename. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { openFolderPlace } from '../../../src/files/folder-place.ts';
import type { Place } from '../../../src/files/place.ts';
import { openBucket } from '../../files/open-bucket.ts';
import { readPart } from '../../files/place-contract.ts';
import { startS3Double } from '../../harness/s3-double.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const child = fileURLToPath(new URL('../../files/keep-forever.ts', import.meta.url));
const rounds = 20;

type Round = {
  readonly filesUrl: string;
  readonly data: string;
  readonly bytes: number;
  readonly secret?: string;
};

/** @returns the keys that the process acknowledged before it was killed */
async function keepUntilKilled({ filesUrl, data, bytes, secret = '' }: Round): Promise<readonly string[]> {
  const keeping = spawn(
    process.execPath,
    ['--conditions=comity-source', child, filesUrl, data, String(bytes)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, SECRET: secret },
    },
  );
  let said = '';
  keeping.stdout.on('data', (text: Buffer) => {
    said += text.toString();
  });
  await once(keeping.stdout, 'data');
  await pause(randomInt(120));
  keeping.kill('SIGKILL');
  await once(keeping, 'close');
  return said.split('\n').slice(0, -1);
}

async function checkAll(place: Place, acknowledged: ReadonlySet<string>): Promise<void> {
  const missing = new Set(acknowledged);
  for await (const { key, bytes } of place.list('')) {
    const octets = await readPart(place, key, 0, bytes);
    assert.equal(createHash('sha256').update(octets).digest('hex'), key.slice(-64), key);
    missing.delete(key);
  }
  assert.deepEqual([...missing], [], 'every acknowledged file is there');
}

test(`a folder after ${rounds} kills`, { timeout: 300_000 }, async () => {
  const folder = temporaryFolder();
  const acknowledged = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const filesUrl = pathToFileURL(folder).href;
    for (const key of await keepUntilKilled({ filesUrl, data: folder, bytes: 40_000 })) acknowledged.add(key);
  }
  assert.ok(acknowledged.size >= rounds);
  await checkAll(await openFolderPlace(folder), acknowledged);
});

for (const [name, bytes] of [
  ['files', 40_000],
  ['files in parts', 11_000_000],
] as const) {
  test(`a bucket with ${name} after ${rounds} kills`, { timeout: 300_000 }, async (context) => {
    const double = await startS3Double({ pageMax: 1000 }, context);
    const { filesUrl, credential } = { filesUrl: double.filesUrl(), credential: double.credential };
    const acknowledged = new Set<string>();
    for (let round = 0; round < rounds; round += 1) {
      const data = temporaryFolder();
      const keys = await keepUntilKilled({ filesUrl, data, bytes, secret: credential.secretKey });
      for (const key of keys) acknowledged.add(key);
    }
    const { place } = await openBucket({ filesUrl, credential });
    context.after(() => place.close());
    assert.ok(acknowledged.size >= rounds);
    await checkAll(place, acknowledged);
    // Each upload that was under way is found by the key of its row.
    for (const { key } of [...double.uploads.values()]) await place.remove(key);
    assert.equal(double.uploads.size, 0);
  });
}

test('synchronises a file before it renames it, and its folder before it acknowledges', async (context) => {
  const strace = spawn('strace', ['--version'], { stdio: 'ignore' });
  const [failed] = (await Promise.race([once(strace, 'error'), once(strace, 'close')])) as [unknown];
  if (failed !== 0) return context.skip('there is no strace here');
  const folder = temporaryFolder();
  const log = join(folder, 'log');
  const root = join(folder, 'files');
  const calls = 'trace=openat,fsync,rename,mkdir,write';
  const script = `
    const { openFolderPlace } = await import(${JSON.stringify(new URL('../../../src/files/folder-place.ts', import.meta.url).href)});
    const { placeKey } = await import(${JSON.stringify(new URL('../../../src/files/place.ts', import.meta.url).href)});
    const { writeFileSync } = await import('node:fs');
    const place = await openFolderPlace(${JSON.stringify(root)});
    const path = place.incoming + '/arrived';
    writeFileSync(path, '${randomBytes(20).toString('hex')}');
    await place.keep(placeKey('file_${'0'.repeat(26)}', new Uint8Array(32)), { path, bytes: 40, sha256: new Uint8Array(32) });
    writeFileSync(${JSON.stringify(join(folder, 'acknowledged'))}, 'x');`;
  const node = [process.execPath, '--conditions=comity-source', '--input-type=module', '-e', script];
  execFileSync('strace', ['-f', '-y', '-o', log, '-e', calls, ...node], { stdio: 'ignore' });
  const lines = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));
  const at = (what: RegExp): number => {
    const index = lines.findIndex((line) => what.test(line));
    assert.ok(index >= 0, `${what} in\n${lines.join('\n')}`);
    return index;
  };
  const shard = join(root, '00');
  const inOrder = [
    at(/fsync\(\d+<.*\/incoming\/arrived>/),
    at(new RegExp(`mkdir\\("${shard}"`)),
    lines.findLastIndex((line) => line.includes(`fsync`) && line.includes(`<${root}>`)),
    at(/rename\(".*\/incoming\/arrived"/),
    at(new RegExp(`fsync\\(\\d+<${shard}>`)),
    at(/acknowledged"/),
  ];
  assert.deepEqual(
    inOrder,
    inOrder.toSorted((one, other) => one - other),
    lines.join('\n'),
  );
});
