/** Jobs over the wire, on both stores: each time once, one run at a time, shown and run on request. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../harness/command-line.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { allOf } from '../received/messages.ts';

const config = fileURLToPath(new URL('./fixtures/jobs.config.ts', import.meta.url));

for (const engine of engineNames) {
  describe(`jobs on ${engine}`, () => {
    /** On PostgreSQL, the second is a process of its own. */
    let servers: readonly Pick<RunningServer, 'send' | 'stop' | 'url'>[];
    let server: Pick<RunningServer, 'send' | 'url'>;

    before(async () => {
      if (engine === 'SQLite') servers = [await startServer({ config })];
      else {
        const database = await databaseOfProgram(config);
        const env = { COMITY_DATABASE_URL: database.url };
        const folder = temporaryFolder();
        servers = [await startServer({ config, env, folder }), await spawnServer({ config, env, folder })];
        after(() => database.dispose());
      }
      server = servers[0] ?? assert.fail();
    });

    after(() => Promise.all(servers.map((each) => each.stop())));

    const comity = (...args: readonly string[]) =>
      runCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });
    const job = async (name: string) => (await server.send('GET', `/api/v1/jobs/${name}`)).json();

    test('run at their times, each once', async () => {
      await until(async () => (await allOf(server, 'runs?job=tick')).length >= 3, 'three runs');
      const [runs, sum] = await Promise.all([
        allOf(server, 'runs?job=tick'),
        server.send('GET', '/api/v1/sums/tick'),
      ]);
      assert.ok(Math.abs(runs.length - Number(sum.json().runs)) <= 1);
      assert.ok(runs.every(({ at }) => String(at).endsWith('.000Z')));
      const messages = await allOf(server, 'received?sender=job:tick&status=processed');
      assert.equal(new Set(messages.map(({ dedupeKey }) => dedupeKey)).size, messages.length);
      assert.ok(messages.length >= 3);
      const { everySeconds, cron, lastStatus, nextRunAt, lastRunAt } = await job('tick');
      assert.deepEqual([everySeconds, cron], [1, null]);
      assert.ok(lastStatus === 'processed' || lastStatus === 'pending');
      assert.ok(Date.parse(String(nextRunAt)) > Date.parse(String(lastRunAt)));
    });

    test('never run beside themselves: of the times during a run, the last waits', async () => {
      await until(async () => (await allOf(server, 'runs?job=slow')).length >= 2, 'two runs');
      const began = (await allOf(server, 'runs?job=slow'))
        .map((each) => Date.parse(String(each.began)))
        .sort();
      for (const [index, at] of began.entries()) {
        const previous = began[index - 1];
        if (previous !== undefined) assert.ok(at - previous >= 2300, `${at - previous} ms`);
      }
      assert.ok((await allOf(server, 'received?sender=job:slow&status=pending')).length <= 1);
    });

    test('run on request, and tell how it went', async () => {
      const next = (await job('nightly')).nextRunAt;
      assert.match(String(next), /T0[12]:00:00\.000Z$/);
      const asked = await server.send('POST', '/api/v1/jobs/nightly/run');
      assert.equal(asked.status, 202);
      const { id } = asked.json();
      assert.equal(asked.headers.location, `/api/v1/received/${id}`);
      await until(async () => (await job('nightly')).lastError === 'thrown', 'the first attempt failed');
      assert.match(
        String((await job('nightly')).lastErrorMessage),
        /^Error: the first attempt fails \(jobs\.config\.ts:\d+:\d+\)$/,
      );
      await until(async () => (await job('nightly')).lastStatus === 'processed', 'the second is done');
      const shown = await job('nightly');
      assert.deepEqual([shown.lastRun, shown.nextRunAt, shown.lastError], [id, next, null]);
      assert.equal(shown.lastErrorMessage, null);
      assert.equal((await server.send('GET', '/api/v1/sums/nightly')).json().runs, 2);
      const history = await allOf(server, 'received?sender=job:nightly');
      assert.deepEqual(
        history.map(({ type, attempts }) => [type, attempts]),
        [['manual', 2]],
      );
    });

    test('end after their own time', async () => {
      await server.send('POST', '/api/v1/jobs/never/run');
      await until(async () => (await job('never')).lastError !== null, 'the run failed');
      assert.equal((await job('never')).lastError, 'timeout');
      const { lastRun } = await job('never');
      const attempts = await server.send('GET', `/api/v1/received/${lastRun}/attempts`);
      assert.match(attempts.body, /not done within 300 ms/);
    });

    test('are listed and run on the command line', async () => {
      const listed = await comity('jobs');
      assert.equal(listed.code, 0, listed.stderr);
      assert.match(listed.stdout, /\nnightly +0 3 \* \* \* Europe\/Berlin +\d{4}-/);
      assert.match(listed.stdout, /\ntick +every 1 s/);
      assert.match(listed.stdout, /\nnever .* not done within 300 ms/);
      const run = await comity('jobs', 'run', 'nightly', '--json');
      assert.equal(run.code, 0, run.stderr);
      assert.equal((await job('nightly')).lastRun, JSON.parse(run.stdout).id);
      assert.match((await comity('jobs', 'run', 'nothing')).stderr, /job nothing/);
    });

    test('are listed for administrators only', async () => {
      const list = (await server.send('GET', '/api/v1/jobs')).json();
      assert.deepEqual(
        (list.items as { name: string }[]).map(({ name }) => name),
        ['tick', 'nightly', 'slow', 'never'],
      );
      assert.equal((await server.send('GET', '/api/v1/jobs', { anonymous: true })).status, 401);
      assert.equal((await server.send('POST', '/api/v1/jobs/tick/run', { anonymous: true })).status, 401);
      assert.equal((await server.send('GET', '/api/v1/jobs/nothing')).status, 404);
      assert.equal((await server.send('POST', '/api/v1/jobs/nothing/run')).status, 404);
      const subscribers = (await server.send('GET', '/api/v1/subscribers')).json();
      assert.deepEqual(subscribers.items, []);
    });
  });
}
