/** `comity migrate` as a process: what becomes of a run that is killed, and of one beside another. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { openWords } from '../../cli/words-to-migrate.ts';
import { type CommandProcess, runCommand, spawnCommand } from '../../harness/command-line.ts';

const { url, client, configuration, environment } = await openWords();
const lean = configuration('lean', ', search: []');
/** Builds an index and no more, which waits for transactions under way and holds nobody up. */
const indexed = configuration('indexed', `, search: [], indexes: ['rank']`);

function migrate(schema: string, config: string) {
  return runCommand(['migrate'], environment(schema, config));
}

test('goes on after it was killed while it built an index, and holds no lock from then on', async () => {
  assert.equal((await migrate('killed', lean)).code, 0);
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query(
    `BEGIN; INSERT INTO killed.words (id, rev, created_at, updated_at, doc) VALUES ('w', 1, 1, 1, '{}')`,
  );
  const killed = spawnMigrate('killed', indexed);
  await waitsFor(killed, 'CREATE INDEX CONCURRENTLY%killed%');
  killed.process.kill('SIGKILL');
  await killed.ended;
  const waiting = spawnMigrate('killed', indexed);
  await nobodyBuilds();
  await holder.query('ROLLBACK');
  await holder.end();
  assert.equal((await waiting.ended).code, 0);
  const { host, pathname } = new URL(url);
  assert.deepEqual(await migrate('killed', indexed), {
    code: 0,
    stdout: `Nothing to do: ${host}${pathname}, schema killed is up to date.\n`,
    stderr: '',
  });
  const { rows } = await client.query('SELECT FROM pg_index WHERE NOT indisvalid');
  assert.deepEqual(rows, []);

  /** The server has noticed that the one who asked is gone, while the transaction that it waited for goes on. */
  async function nobodyBuilds(): Promise<void> {
    const sql = `SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
      WHERE l.locktype = 'advisory' AND a.query LIKE 'CREATE INDEX CONCURRENTLY%' AND a.backend_start < $1`;
    const { rows: now } = await client.query('SELECT now()');
    while ((await client.query(sql, [now[0]?.now])).rows.length > 0);
  }
});

test('waits for another migration, and says so', async () => {
  assert.equal((await migrate('crowded', lean)).code, 0);
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query(
    `BEGIN; INSERT INTO crowded.words (id, rev, created_at, updated_at, doc) VALUES ('w', 1, 1, 1, '{}')`,
  );
  const first = spawnMigrate('crowded', indexed);
  await waitsFor(first, 'CREATE INDEX CONCURRENTLY%crowded%');
  const second = spawnMigrate('crowded', indexed);
  await second.told('\n');
  assert.equal(second.stderr(), 'comity: another process migrates this schema; waiting for it to end\n');
  await holder.query('ROLLBACK');
  await holder.end();
  for (const each of [first, second]) assert.equal((await each.ended).code, 0);
});

/** The program itself, to be killed; ended with the test at the latest. */
function spawnMigrate(schema: string, config: string): CommandProcess {
  const command = spawnCommand(['migrate', '--yes'], environment(schema, config), { boundMs: 30_000 });
  after(() => command.process.kill('SIGKILL'));
  return command;
}

/** Resolves when a statement of the process waits for a transaction of others. */
async function waitsFor({ process: child }: CommandProcess, statement: string): Promise<void> {
  const sql = `SELECT FROM pg_stat_activity WHERE query LIKE $1 AND wait_event_type = 'Lock'`;
  while ((await client.query(sql, [statement])).rows.length === 0) {
    assert.equal(child.exitCode, null, 'it ended before it waited');
  }
}
