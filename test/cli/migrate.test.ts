/** `comity migrate`: the plan, its steps and its exit codes; test/full/cli/migrate.test.ts has two at once, and one that is killed. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { migrations } from '../../src/store/postgres/schema/schema-plan.ts';
import { runCommand } from '../harness/command-line.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { openWords } from './words-to-migrate.ts';

const { url, client, folder, configuration, environment } = await openWords();
/** Has the key file, which all processes on a database share. */
const data = join(folder, 'data');
const lean = configuration('lean', ', search: []');
const grown = configuration('grown', `, unique: ['name'], indexes: ['rank']`);

/** Runs `comity migrate`; the durations in what it prints are struck out. */
async function migrate(schema: string, config: string, ...args: readonly string[]) {
  const { stdout, ...rest } = await runCommand(['migrate', ...args], environment(schema, config));
  const at = new URL(url);
  const where = `${at.host}${at.pathname}`;
  return { ...rest, stdout: stdout.replaceAll(/\(\d+ ms\)/g, '(N ms)').replaceAll(where, 'HERE') };
}

const grownSteps = ['search text of words', 'index words.index["rank"]', 'index words.unique["name"]'];

test('makes the schema, and then has nothing to do', async () => {
  const { code, stdout, stderr } = await migrate('new_one', lean);
  assert.deepEqual([code, stderr], [0, '']);
  const lines = stdout.split('\n');
  assert.equal(lines[0], 'Steps for HERE, schema new_one; servers can keep using it meanwhile:');
  const words = 2 + migrations.length;
  assert.ok(lines.includes('  1  schema new_one') && lines.includes(`  ${words}  table words`));
  const steps = lines.filter((line) => /^ {2}\d+ {2}/.test(line)).length;
  assert.ok(lines.includes(`${words}/${steps}  table words  (N ms)`), stdout);
  assert.equal(lines.at(-2), 'The schema new_one is up to date.');
  assert.deepEqual(await migrate('new_one', lean), {
    code: 0,
    stdout: 'Nothing to do: HERE, schema new_one is up to date.\n',
    stderr: '',
  });
});

test('only shows the plan with --dry-run, and exits 3 while there is something to do', async () => {
  const { code, stdout } = await migrate('dry', lean, '--dry-run');
  assert.equal(code, 3);
  assert.match(stdout, /^ {2}1 {2}schema dry$/m);
  assert.deepEqual((await client.query(`SELECT to_regnamespace('dry') AS found`)).rows, [{ found: null }]);
  assert.equal((await migrate('dry', lean, '--yes')).code, 0);
  assert.equal((await migrate('dry', lean, '--dry-run')).code, 0);
});

test('prints one JSON object with --json, with the statements of each step and its time', async () => {
  assert.equal((await migrate('told', lean)).code, 0);
  const dry = JSON.parse((await migrate('told', grown, '--json', '--dry-run')).stdout);
  assert.deepEqual([dry.engine, dry.database, dry.schema, dry.dryRun], ['postgres', 'HERE', 'told', true]);
  assert.deepEqual(
    dry.steps.map(({ what }: { what: string }) => what),
    grownSteps,
  );
  assert.deepEqual(
    dry.steps.map(({ transactional }: { transactional: boolean }) => transactional),
    [true, false, false],
  );
  assert.match(dry.steps[2].sql[1], /^CREATE UNIQUE INDEX CONCURRENTLY/);
  assert.equal('durationMs' in dry.steps[0], false);
  const { code, stdout } = await migrate('told', grown, '--json');
  const done = JSON.parse(stdout);
  assert.deepEqual([code, done.dryRun, done.steps.length], [0, false, 3]);
  assert.ok(done.steps.every(({ durationMs }: { durationMs: number }) => Number.isInteger(durationMs)));
});

test('keeps the indexes of the last configuration for as long as it is told to', async () => {
  assert.equal((await migrate('kept', grown)).code, 0);
  const kept = await migrate('kept', lean, '--keep-indexes', '--dry-run');
  assert.deepEqual([kept.code, kept.stdout], [0, 'Nothing to do: HERE, schema kept is up to date.\n']);
  const dry = JSON.parse((await migrate('kept', lean, '--dry-run', '--json')).stdout);
  assert.deepEqual(
    dry.steps.map(({ what }: { what: string }) => what),
    ['index words.index["rank"] dropped', 'index words.unique["name"] dropped'],
  );
});

test('says that the embedded store makes its own tables', async () => {
  // Not the folder that `npm start` leaves in the repository.
  const own = { COMITY_CONFIG: lean, COMITY_DATA: temporaryFolder() };
  const { code, stdout } = await runCommand(['migrate'], own);
  assert.equal(code, 0);
  assert.match(stdout, /^Nothing to do: the embedded store brings itself up to date when it starts/);
  const told = await runCommand(['migrate', '--json'], own);
  assert.deepEqual(JSON.parse(told.stdout), {
    engine: 'sqlite',
    steps: [],
    dryRun: false,
    documents: { runs: [] },
  });
});

test('keeps a server of the old configuration serving, and lets one of the new configuration start', async () => {
  const old = await startServer({ folder: data, env: environment('rolled', lean) });
  assert.equal(await create(old, 'before'), 201);
  const refused = await runCommand(['serve'], { ...environment('rolled', grown), COMITY_PORT: '0' });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^comity: PostgreSQL at \S+ is not ready: the schema "rolled" lacks what the configuration declares: search text of words, .*; run "comity migrate"\n$/,
  );
  let over = false;
  const writing = (async () => {
    for (let round = 0; !over; round += 1) assert.equal(await create(old, `during ${round}`), 201);
  })();
  const { code, stdout } = await migrate('rolled', grown, '--yes');
  over = true;
  await writing;
  assert.equal(code, 0);
  assert.deepEqual(stdout.match(/^\d\/3 {2}(.*) {2}\(N ms\)$/gm)?.length, 3);
  assert.equal(await create(old, 'after'), 201);
  const young = await startServer({ folder: data, env: environment('rolled', grown) });
  // The server of the old configuration has never heard of the unique field, and keeps to it all the same.
  for (const each of [young, old]) assert.equal(await create(each, 'after'), 409);
  for (const each of [old, young]) await each.stop();
});

test('names the rows that stand against a unique field, and exits 5', async () => {
  assert.equal((await migrate('twins', lean)).code, 0);
  for (const id of ['w1', 'w2']) {
    const sql = `INSERT INTO twins.words (id, rev, created_at, updated_at, doc) VALUES ($1, 1, 1, 1, '{"name":"twin"}')`;
    await client.query(sql, [id]);
  }
  const { code, stderr } = await migrate('twins', grown);
  assert.equal(code, 5);
  assert.match(
    stderr,
    /^comity: words: name must be unique, and 2 documents have a value that another has: 2 have "twin", such as w1 and w2; /,
  );
});

async function create(server: RunningServer, name: string): Promise<number> {
  return (await server.send('POST', '/api/v1/words', { json: { name } })).status;
}

test('says, as check does, whose searches are unavailable until their texts are made', async () => {
  const searched = configuration('searched', `, search: ['name']`);
  assert.equal((await migrate('found', lean)).code, 0);
  await client.query(
    `INSERT INTO found.words (id, rev, created_at, updated_at, doc) VALUES ('w', 1, 1, 1, '{"name":"a"}')`,
  );
  const check = async (): Promise<string> =>
    (await runCommand(['check'], environment('found', searched))).stdout;
  const until = /words: search texts are made by comity migrate, [^\n]*; until then q is 503\n/;
  assert.match(await check(), until);
  assert.match(
    (await migrate('found', searched, '--dry-run')).stdout,
    /search texts of words\n[\s\S]*Servers of another declaration answer q of words with 503 from the first step on\.\n/,
  );
  assert.equal((await migrate('found', searched)).code, 0);
  assert.doesNotMatch(await check(), until);
});
