/** `comity export` and `comity import` of documents with files: octets in a folder beside the documents, from one server to another. */
import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../harness/command-line.ts';
import { adminKey } from '../harness/exchange.ts';
import { type RunningServer, serverOfFile } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const config = fileURLToPath(new URL('../wire/files/fixtures/files.config.ts', import.meta.url));
const first = await serverOfFile({ config });
const second = await serverOfFile({ config });
const folder = temporaryFolder();
const file = join(folder, 'tickets.ndjson');

const run = (server: RunningServer, ...args: readonly string[]) =>
  runCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });

test('files go with their documents, and a repetition sends nothing again', async () => {
  const { id } = (await first.send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
  const disposition = "attachment; filename*=UTF-8''n%C3%A9.txt";
  const named = { 'Content-Type': 'text/plain', 'Content-Disposition': disposition };
  await first.send('PUT', `tickets/${id}/attachment`, { body: 'attached', headers: named, expect: 201 });
  for (const body of ['one', 'two'])
    await first.send('POST', `tickets/${id}/photos`, { body, headers: named, expect: 201 });
  await first.send('POST', 'tickets', { json: { title: 'without' }, expect: 201 });
  const exported = await run(first, 'export', 'tickets', '-o', file, '--json');
  assert.equal(exported.code, 0, exported.stderr);
  assert.deepEqual(JSON.parse(exported.stdout), { collection: 'tickets', documents: 2, files: 3, file });
  assert.equal(globSync(`${file}.files/??/*`).length, 3);

  // A repeated export fetches nothing again.
  await rename(file, join(folder, 'before.ndjson'));
  const again = await run(first, 'export', 'tickets', '-o', file, '--json');
  assert.deepEqual(JSON.parse(again.stdout), { collection: 'tickets', documents: 2, file });

  const imported = await run(second, 'import', file, '--json');
  assert.equal(imported.code, 0, imported.stderr);
  assert.equal(JSON.parse(imported.stdout).created, 2);
  const there = (await second.send('GET', `tickets/${id}`, { expect: 200 })).json();
  assert.equal(there.attachment.name, 'né.txt');
  await second.send('GET', there.attachment.url, { expect: { status: 200, body: 'attached' } });
  await second.send('GET', there.photos[1].url, { expect: { status: 200, body: 'two' } });
  const repeated = JSON.parse((await run(second, 'import', file, '--json')).stdout);
  assert.deepEqual([repeated.created, repeated.unchanged, repeated.refused], [0, 2, 0]);
  assert.deepEqual((await second.send('GET', `tickets/${id}`)).json(), there);
});

test('octets that are missing or damaged end the import, and --no-files writes none', async () => {
  const [path = ''] = globSync(`${file}.files/??/*`);
  const key = path.slice(-101);
  await writeFile(path, 'damaged!');
  const damaged = await run(second, 'import', file, '--existing', 'update');
  assert.equal(damaged.code, 1);
  assert.match(damaged.stderr, /the octets of .* are damaged; run it again to continue/, key);
  await rename(path, `${path}.away`);
  const missing = await run(second, 'import', file, '--existing', 'update');
  assert.match(missing.stderr, /has no octets of/);
  const other = join(folder, 'plain.ndjson');
  assert.equal((await run(first, 'export', 'tickets', '-o', other, '--no-files')).code, 0);
  assert.ok(existsSync(other) && !existsSync(`${other}.files`));
});
