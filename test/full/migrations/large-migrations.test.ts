/** Migrations at their bounds, on the embedded store: documents of a megabyte beside requests, 100,000 that do not fit, and a full disk. */
import assert from 'node:assert/strict';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfiguration } from '../../../src/cli/read-configuration.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { runCommand, spawnCommand } from '../../harness/command-line.ts';
import { seedTable } from '../../harness/seed-table.ts';
import { fill, smallDisk } from '../../harness/small-disk.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const open = `access: { read: 'public', create: 'public', update: 'public', delete: 'public' }`;
const declare = (schema: string, more = ''): string =>
  `{ collections: { notes: collection({ ${open}, search: ['text'], schema: Type.Object({ text: Type.String(), ${schema} }) }) } ${more} }`;
const before = declare('count: Type.Integer()');
const after = declare(
  'total: Type.Integer()',
  `, migrations: [{ id: '2-total', collection: 'notes', up: ({ count, ...rest }) => ({ ...rest, total: count }) }]`,
);

type Folder = { readonly path: string; configure(name: string, source: string): string };

function projectFolder(): Folder {
  const path = temporaryFolder();
  linkPackage(path);
  return {
    path,
    configure(name, source) {
      const file = join(path, `${name}.mjs`);
      writeFileSync(
        file,
        `import { collection, defineConfig, Type } from 'comity';\nexport default defineConfig(${source});\n`,
      );
      return file;
    },
  };
}

/** Stores documents of the earlier declaration. @param fields of the document with this number */
async function seed(
  config: string,
  data: string,
  count: number,
  fields: (index: number) => object,
): Promise<void> {
  const { configuration } = await readConfiguration({ COMITY_CONFIG: config, COMITY_DATA: data }, {});
  const rows = Array.from({ length: count }, (_, index) => {
    const id = `n${String(index).padStart(6, '0')}`;
    const at = '2020-01-02T03:04:05.006Z';
    const doc = JSON.stringify({ id, ...fields(index), createdAt: at, updatedAt: at });
    const times = { createdAt: Date.parse(at), updatedAt: Date.parse(at), deletedAt: null };
    return { id, row: { doc, owner: null, ...times, search: '' } };
  });
  seedTable(data, storeTables(configuration), 'notes', rows);
}

test('documents of a megabyte are migrated beside requests: the event loop and the memory stay free', {
  timeout: 180_000,
}, async (context) => {
  const folder = projectFolder();
  const config = folder.configure('after', after);
  const data = join(folder.path, 'data');
  const count = 40;
  const text = 'a word and another '.repeat(52_000);
  await seed(folder.configure('before', before), data, count, (index) => ({ text, count: index }));
  const attacked = await startAttacked(context, {
    ...{ config, folder: data, memoryBytes: 640 * 1024 * 1024 },
    env: { COMITY_MIGRATE_AT_START: 'on', COMITY_SERVE_UNMIGRATED: 'on', COMITY_DEVELOPMENT: 'off' },
  });
  const { program } = attacked;
  await until(async () => {
    const answer = await program.send('GET', '/api/v1/notes?sort=-id&limit=1&fields=total');
    return answer.body.includes('"total"');
  }, 'the last document is migrated');
  await assertLoopFree(attacked, 'the migration');
  for (const at of [0, count - 1]) {
    const { total } = (await program.send('GET', `/api/v1/notes/n${String(at).padStart(6, '0')}`)).json();
    assert.equal(total, at);
  }
});

test('100,000 documents that do not fit are counted in a report of some lines, with little memory', {
  timeout: 180_000,
}, async () => {
  const folder = projectFolder();
  const data = join(folder.path, 'data');
  // Faults of many kinds, which differ in the pointer.
  const fields = (index: number) => ({ text: '', [`unknown${index % 1000}`]: 1, count: 1 });
  await seed(folder.configure('before', before), data, 100_000, fields);
  const heap = ['--max-old-space-size=64'];
  const run = spawnCommand(
    ['migrate', '--dry-run'],
    { COMITY_CONFIG: folder.configure('after', declare('count: Type.Integer()')), COMITY_DATA: data },
    { wrap: (command, args) => [command, [...heap, ...args]] },
  );
  const { code, stdout, stderr } = await run.ended;
  assert.equal(code, 3, stderr);
  const lines = stdout.trimEnd().split('\n');
  assert.ok(lines.length < 30 && stdout.length < 8000, stdout);
  assert.equal(lines[0], 'notes: 100,000 of 100,000 documents do not fit');
  assert.match(stdout, /^ {2}98,000: other faults, such as n000020/m);
});

test('a run on a full disk stops with a clear message, changes nothing in part, and continues once there is room', {
  timeout: 180_000,
}, async (context) => {
  const folder = projectFolder();
  const disk = smallDisk(context, '96m');
  if (disk === undefined) return;
  const data = join(disk, 'data');
  const count = 2000;
  const text = 'some words of a note '.repeat(100);
  await seed(folder.configure('before', before), data, count, (index) => ({ text, count: index }));
  const environment = {
    ...{ COMITY_CONFIG: folder.configure('after', after), COMITY_DATA: data, COMITY_LOG_LEVEL: 'warn' },
    COMITY_MIGRATION_BATCH_DOCUMENTS_MAX: '20',
  };
  const filler = join(disk, 'filler');
  copyFileSync('/dev/null', filler);
  // The index of words and the log take some megabytes of what is left.
  const room = join(disk, 'room');
  writeFileSync(room, Buffer.alloc(2 * 1024 * 1024));
  while (fill(filler));
  rmSync(room);
  const stopped = await runCommand(['migrate', '--yes'], environment);
  assert.equal(stopped.code, 1, stopped.stdout);
  assert.match(stopped.stderr, /the disk is full/);
  const pending = await runCommand(['migrate', '--dry-run'], environment);
  assert.equal(pending.code, 3, pending.stderr);
  rmSync(filler);
  const made = await runCommand(['migrate', '--yes'], environment);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^notes: 2-total changed 2,?000 of 2,?000 documents/m);
  const again = await runCommand(['migrate', '--dry-run'], environment);
  assert.match(again.stdout, /all 2,000 documents fit/);
});
