/** What a person sees of a damaged store and of a full disk: at the start, in operation, and by `comity check --store`. */
import assert from 'node:assert/strict';
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../harness/command-line.ts';
import { adminKey as key } from '../../harness/exchange.ts';
import {
  type RunningServer as Server,
  shopConfig as shop,
  startServer,
} from '../../harness/running-server.ts';
import { fill, smallDisk } from '../../harness/small-disk.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

async function ask(server: Server, method: string, path: string, json?: unknown) {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  const text = await answer.text();
  return { status: answer.status, json: text === '' ? {} : JSON.parse(text) };
}

test('check --store finds a store sound beside its server, and damaged or undecipherable with exit code 4', async () => {
  const data = join(temporaryFolder(), 'data');
  const environment = { COMITY_DATA: data, COMITY_ADMIN_KEY: key };
  const server = await startServer({ folder: data });
  const beside = await runCommand(['check', '--store'], environment);
  assert.match(beside.stdout, /comity\.db is sound \(\d+ rows in \d+ tables, \d+ ms\)\n$/);
  assert.deepEqual([beside.code, beside.stderr], [0, '']);
  await server.stop();
  const secretKey = readFileSync(join(data, 'secret.key'));
  rmSync(join(data, 'secret.key'));
  const unread = await runCommand(['check', '--store', '--json'], environment);
  assert.equal(unread.code, 4);
  assert.match(JSON.parse(unread.stdout).faults[0], /is encrypted with the key \w+, which is not available/);
  writeFileSync(join(data, 'secret.key'), secretKey);
  const path = join(data, 'comity.db');
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, statSync(path).size - 4096);
  closeSync(file);
  const damaged = await runCommand(['check', '--store'], environment);
  assert.deepEqual([damaged.code, damaged.stdout], [4, '']);
  assert.match(damaged.stderr, /comity\.db is damaged.*: keep a copy of the folder/);
  const refused = await runCommand(['serve'], { ...environment, COMITY_CONFIG: shop, COMITY_PORT: '0' });
  assert.equal(refused.code, 4);
  assert.match(
    refused.stderr,
    /^comity: the store .*comity\.db is damaged \([^\n]*\): .* "comity restore"[^\n]*\n$/m,
  );
});

test('a full disk: readiness and the start say so, nothing acknowledged is lost, and room makes it ready again', async (context) => {
  const disk = smallDisk(context, '6m');
  if (disk === undefined) return;
  const environment = {
    COMITY_DATA: join(disk, 'data'),
    COMITY_ADMIN_KEY: key,
    COMITY_RATE_LIMIT_WRITES: '0',
  };
  const options = { folder: environment.COMITY_DATA, env: environment };
  const server = await startServer(options);
  const filler = join(disk, 'filler');
  const made: string[] = [];
  // A piece at a time, so that the last write that is taken has filled the disk.
  copyFileSync('/dev/null', filler);
  let full = false;
  for (let at = 0; !full; at += 1) {
    assert.ok(at < 2000, 'the disk is never full');
    const { status, json } = await ask(server, 'POST', '/api/v1/products', {
      ...{ name: `p${at}`, price: 1, categoryId: await categoryOf(server, made) },
      tags: Array.from({ length: 20 }, () => 'x'.repeat(100)),
    });
    if (status === 201) made.push(String(json.id));
    else {
      assert.deepEqual([status, json.reason], [503, 'storage_full']);
      full = true;
    }
    for (let pages = 0; pages < 4; pages += 1) fill(filler);
  }
  const unready = await ask(server, 'GET', '/health/ready');
  assert.deepEqual([unready.status, unready.json.reason], [503, 'storage_full']);
  assert.equal((await ask(server, 'GET', `/api/v1/products/${made.at(-1)}`)).status, 200);
  await server.stop();
  // The log that the stop truncated made room.
  while (fill(filler));
  const again = await runCommand(['serve'], { ...environment, COMITY_CONFIG: shop, COMITY_PORT: '0' });
  assert.equal(again.code, 1);
  assert.match(again.stderr, /the data folder .* cannot be used: the disk is full\n$/m);
  rmSync(filler);
  const last = await startServer(options);
  for (const id of made) assert.equal((await ask(last, 'GET', `/api/v1/products/${id}`)).status, 200);
  assert.equal((await ask(last, 'GET', '/health/ready')).status, 200);
  await last.stop();
});

/** The one category of the test, made with the first product. */
async function categoryOf(server: Server, made: readonly string[]): Promise<string> {
  if (made.length === 0)
    return String((await ask(server, 'POST', '/api/v1/categories', { name: 'all' })).json.id);
  const { json } = await ask(server, 'GET', `/api/v1/products/${made[0]}`);
  return json.categoryId;
}
