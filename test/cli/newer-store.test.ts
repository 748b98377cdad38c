/** A store that a newer program has brought to a form of its own: every command that would touch it refuses, says why, and leaves it as it is. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, suite, test } from 'node:test';
import pg from 'pg';
import { runCommand } from '../harness/command-line.ts';
import { type EngineName, engineNames } from '../harness/engine-names.ts';
import { databaseOfProgram } from '../harness/program-database.ts';
import { shopConfig, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const newest = 99;
const secretKey = Buffer.alloc(32, 7).toString('base64');

type Newer = {
  readonly environment: Readonly<Record<string, string>>;
  /** What must stay as it is. */
  look(): Promise<unknown>;
  readonly folder: string;
};

const newerStores: Readonly<Record<EngineName, () => Promise<Newer>>> = {
  async SQLite() {
    const folder = temporaryFolder();
    const file = join(folder, 'data', 'comity.db');
    await fill({ COMITY_DATA: join(folder, 'data') });
    raiseFile(file);
    return {
      environment: { COMITY_DATA: join(folder, 'data') },
      folder,
      async look() {
        const database = new DatabaseSync(file, { readOnly: true });
        const schema = database.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all();
        const counters = database.prepare('SELECT * FROM comity_counters').all();
        const version = database.prepare('PRAGMA user_version').get();
        database.close();
        return { schema, counters, version };
      },
    };
  },
  async PostgreSQL() {
    const database = await databaseOfProgram(shopConfig);
    const environment = { COMITY_DATABASE_URL: database.url };
    await fill(environment);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    after(async () => {
      await client.end();
      await database.dispose();
    });
    await client.query(`INSERT INTO comity.comity_migrations VALUES (${newest}, 'later', 1, 'next')`);
    return {
      environment,
      folder: temporaryFolder(),
      async look() {
        const counters = await client.query('SELECT * FROM comity.comity_counters ORDER BY n');
        const migrations = await client.query('SELECT * FROM comity.comity_migrations ORDER BY 1');
        return { counters: counters.rows, migrations: migrations.rows };
      },
    };
  },
};

async function fill(env: Readonly<Record<string, string>>): Promise<void> {
  const { COMITY_DATA: folder, ...others } = env;
  const program = await startServer({
    env: { ...others, COMITY_SECRET_KEY: secretKey },
    ...(folder !== undefined && { folder }),
  });
  await program.send('POST', '/api/v1/categories', { json: { name: 'kept' } });
  await program.stop();
}

function raiseFile(path: string): void {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA user_version = ${newest}`);
  database.close();
}

/** `{file}` is a new file, `{backup}` a backup of this program's form, `{seed}` what a store is filled from. */
const commands: readonly (readonly string[])[] = [
  ['serve'],
  ['serve', '--migrate'],
  ['serve', '--unmigrated'],
  ['check'],
  ['check', '--json'],
  ['check', '--store'],
  ['migrate', '--yes'],
  ['migrate', '--dry-run'],
  ['migrate', '--dry-run', '--json'],
  ['migrate', '--yes', '--backup', '{file}'],
  ['backup', '{file}'],
  ['restore', '{backup}'],
  ['seed', '{seed}'],
  ['secrets', 'rotate'],
];

const refused =
  /(^|\n)comity: [^\n]*newer version of Comity \(schema 99; this version supports up to \d+\); run the newer program\n$/;

/** What a command says before it would look at the form of the store; undefined: it is no command for the engine. */
function wordsOf(engine: EngineName, args: readonly string[]): RegExp | undefined {
  // PostgreSQL checks its pages itself.
  if (args.includes('--store') && engine === 'PostgreSQL') return undefined;
  return args.includes('restore') && engine === 'SQLite' ? /already holds a store/ : refused;
}

for (const engine of engineNames) {
  suite(`a store on ${engine} that a newer program made`, async () => {
    const { environment, folder, look } = await newerStores[engine]();
    const files = new Map([
      ['{file}', join(folder, 'new.db')],
      ['{backup}', await backupOf(folder)],
      ['{seed}', join(folder, 'seed.ndjson')],
    ]);
    writeFileSync(
      files.get('{seed}') ?? '',
      '{"collection":"categories","id":"first","fields":{"name":"n"}}\n',
    );
    const before = await look();
    for (const [args, settings] of [
      ...commands.map((args) => [args, {}] as const),
      [['serve'], { COMITY_PROCESSES: '2' }] as const,
    ]) {
      const words = wordsOf(engine, args);
      if (words === undefined) continue;
      const name = [...args, ...Object.keys(settings)].join(' ');
      test(`is refused by ${name}, and left as it is`, async () => {
        const { code, stdout, stderr } = await runCommand(
          args.map((arg) => files.get(arg) ?? arg),
          {
            ...{ COMITY_CONFIG: shopConfig, COMITY_PORT: '0', COMITY_SECRET_KEY: secretKey },
            ...{ ...environment, ...settings },
          },
        );
        assert.equal(code, 1, stdout + stderr);
        assert.match(stderr, words);
        assert.equal(stdout, '');
        assert.equal(existsSync(files.get('{file}') ?? ''), false);
        assert.deepEqual(await look(), before);
      });
    }
  });
}

test('a backup of a newer program is refused by a store of this one', async () => {
  const folder = temporaryFolder();
  const file = await backupOf(folder);
  raiseFile(file);
  const { code, stderr } = await runCommand(['restore', file], {
    ...{ COMITY_CONFIG: shopConfig, COMITY_DATA: join(folder, 'other') },
  });
  assert.equal(code, 1);
  assert.match(stderr, refused);
});

async function backupOf(folder: string): Promise<string> {
  const data = join(folder, 'source');
  const file = join(folder, 'backup.db');
  await fill({ COMITY_DATA: data });
  const { code, stderr } = await runCommand(['backup', file], { COMITY_DATA: data });
  assert.equal(code, 0, stderr);
  return file;
}
