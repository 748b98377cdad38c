/** Subscribers over the wire, on both stores: at least once, in effect once, with dead letters and replays like received messages. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../harness/command-line.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { type Answer, adminKey } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { allOf } from '../received/messages.ts';

const config = fileURLToPath(new URL('./fixtures/subscribers.config.ts', import.meta.url));
const merge = { 'Content-Type': 'application/merge-patch+json' };

for (const engine of engineNames) {
  describe(`subscribers on ${engine}`, () => {
    let server: RunningServer;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      server = await startServer({
        config,
        env: {
          COMITY_HANDLER_TIMEOUT_MS: '3000',
          ...(database === undefined ? {} : { COMITY_DATABASE_URL: database.url }),
        },
        bounds: { subscriberDepthMax: 4 },
      });
      if (database !== undefined) after(() => database.dispose());
    });

    after(() => server.stop());

    const post = (collection: string, json: unknown): Promise<Answer> =>
      server.send('POST', `/api/v1/${collection}`, { json });
    const comity = (...args: readonly string[]) =>
      runCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });

    const sum = async (): Promise<number> =>
      Number((await server.send('GET', '/api/v1/sums/all')).json().amount ?? 0);
    const quiet = (source: string): Promise<void> =>
      until(
        async () => (await allOf(server, `received?sender=${source}&status=pending`)).length === 0,
        `${source} is done`,
      );

    test('get each event once, and write once', async () => {
      const made = await Promise.all(
        Array.from({ length: 25 }, (_, at) => post('tickets', { title: `t${at}`, amount: at })),
      );
      assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([201]));
      const bulk = await post('events', {
        type: 'invoice.paid',
        id: 'twice',
        data: { object: { amount: 5 } },
      });
      const again = await post('events', {
        type: 'invoice.paid',
        id: 'twice',
        data: { object: { amount: 5 } },
      });
      assert.deepEqual([bulk.status, again.status], [202, 200]);
      await quiet('subscriber:book');
      assert.equal(await sum(), 300 + 5);
      assert.equal((await allOf(server, 'entries?type=tickets.created')).length, 25);
    });

    test('get the document before and after a change', async () => {
      const { id } = (await post('tickets', { title: 'one' })).json();
      const body = JSON.stringify({ title: 'two' });
      assert.equal(
        (await server.send('PATCH', `/api/v1/tickets/${id}`, { body, headers: merge })).status,
        200,
      );
      assert.equal(
        (await server.send('PUT', `/api/v1/tickets/${id}`, { json: { title: 'three' } })).status,
        200,
      );
      assert.equal((await server.send('DELETE', `/api/v1/tickets/${id}`)).status, 204);
      await quiet('subscriber:changes');
      const entries = await allOf(server, 'entries?amount=0&sort=createdAt');
      assert.deepEqual(
        new Set(entries.map((each) => `${each.type} ${each.before} ${each.after}`)),
        new Set([
          'tickets.created undefined t0',
          'tickets.updated one two',
          'tickets.updated two three',
          'tickets.deleted three undefined',
        ]),
      );
    });

    test('are shown in the inbox, retried, dead and replayed like received messages', async () => {
      const { id } = (await post('faults', { left: 1 })).json();
      await post('faults', { left: 0 });
      await until(
        async () => (await server.send('GET', `/api/v1/sums/${id}`)).status === 200,
        'the second attempt is done',
      );
      await quiet('subscriber:faulty');
      const found = await allOf(server, 'received?sender=subscriber:faulty');
      const [done, dead] = ['processed', 'failed'].map((status) =>
        found.find((each) => each.status === status),
      );
      assert.equal(done?.attempts, 2);
      assert.equal(dead?.attempts, 1);
      assert.equal(dead?.lastError, 'unprocessable');
      assert.equal(dead?.type, 'faults.created');
      const content = (await server.send('GET', `/api/v1/received/${dead?.id}/body`)).json();
      assert.equal((content.event as { type: string }).type, 'faults.created');
      assert.equal((await server.send('POST', `/api/v1/received/${dead?.id}/replay`)).status, 202);
      await until(
        async () => (await server.send('GET', `/api/v1/received/${dead?.id}`)).json().attempts === 2,
        'the replay was tried',
      );
    });

    test('that fail are in the log, each attempt with its error and its place', async () => {
      const { id } = (await post('faults', { left: 1 })).json();
      await until(
        async () => (await server.send('GET', `/api/v1/sums/${id}`)).status === 200,
        'the second attempt is done',
      );
      await quiet('subscriber:faulty');
      const lines = server
        .stderr()
        .split('\n')
        .flatMap((line) => (line.includes('"function-failed"') ? [JSON.parse(line)] : []))
        .filter(({ sender }) => sender === 'subscriber:faulty');
      const retried = lines.findLast(({ failure }) => failure === 'thrown');
      const { level, attempt, reason, message, nextAt, frames } = retried;
      assert.deepEqual([level, attempt], ['warn', 1]);
      assert.match(reason, /^Error: not yet \(subscribers\.config\.ts:\d+:\d+\)$/);
      assert.match(frames, /^ {4}at .*subscribers\.config\.ts:\d+:\d+/);
      assert.ok(Date.parse(nextAt) > 0);
      assert.equal((await server.send('GET', `/api/v1/received/${message}`)).json().attempts, 2);
      const dead = lines.find(({ failure }) => failure === 'unprocessable');
      assert.deepEqual([dead?.level, dead?.reason, dead?.nextAt], ['error', 'it can never be done', null]);
    });

    test('that lead to one another for ever fail at a depth', async () => {
      await post('pings', { count: 0 });
      await until(
        async () => (await allOf(server, 'received?sender=subscriber:loop&status=failed')).length === 1,
        'the loop ended',
      );
      const [failed] = await allOf(server, 'received?sender=subscriber:loop&status=failed');
      assert.equal(failed?.lastError, 'loop');
      const { items } = (await server.send('GET', `/api/v1/received/${failed?.id}/attempts`)).json();
      assert.match(JSON.stringify(items), /more than 4 are taken for a loop/);
      assert.match(server.stderr(), /"sender":"subscriber:loop".*more than 4 are taken for a loop/);
      assert.equal((await allOf(server, 'pings')).length, 6);
    });

    test('handle events of one key in their order, whatever fails; others go on', async () => {
      const titles: string[] = [];
      for (let at = 0; at < 8; at += 1) {
        const title = at === 2 ? `waits ${at}` : `step ${at}`;
        titles.push(title);
        await Promise.all(
          ['red', 'blue', 'broken'].map((queue) =>
            post('tickets', { title: queue === 'blue' ? `step ${at}` : title, queue }),
          ),
        );
      }
      const stepsOf = async (queue: string) =>
        (await allOf(server, `steps?queue=${queue}`)).map((each) => String(each.title));
      await until(async () => (await stepsOf('blue')).length === 8, 'the others are done');
      assert.deepEqual(
        await stepsOf('blue'),
        titles.map((_title, at) => `step ${at}`),
      );
      assert.deepEqual(await stepsOf('red'), titles.slice(0, 2));
      const [held] = await allOf(server, 'received?sender=subscriber:steps&lastError=held-back');
      assert.ok(held !== undefined && held.status === 'pending' && held.attempts === 0);
      assert.equal((await server.send('PUT', '/api/v1/sums/gate', { json: { amount: 0 } })).status, 201);
      await quiet('subscriber:steps');
      assert.deepEqual(await stepsOf('red'), titles);
      // Without a key there is no order: the one that failed came last.
      assert.equal((await stepsOf('broken')).at(-1), 'waits 2');
      assert.match(server.stderr(), /orderBy of the subscriber steps.*no key/);
    });

    test('get existing events again, from a time on', async () => {
      const replay = (json: unknown, name = 'changes') =>
        server.send('POST', `/api/v1/subscribers/${name}/replay`, { json });
      const entries = (await allOf(server, 'entries?amount=0&type=tickets.updated')).length;
      assert.equal(entries, 2);
      // The entries are unique by event, so a repeated one is refused; the inbox shows that it was tried.
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const answer = await replay({ since, limit: 2 });
      assert.equal(answer.status, 202);
      const { replayed, more, lastEvent, subscriber } = answer.json();
      assert.deepEqual([subscriber, replayed, more], ['changes', 2, true]);
      const rest = (await replay({ since, after: lastEvent })).json();
      assert.deepEqual([rest.replayed, rest.more], [1, false]);
      await until(async () => {
        const tried = await allOf(server, 'received?sender=subscriber:changes&lastError=refused');
        return tried.length === 3;
      }, 'the replayed events were tried');
      assert.equal(
        (await replay({ since: new Date(Date.now() + 3_600_000).toISOString() })).json().replayed,
        0,
      );
      const [message] = await allOf(server, 'received?sender=subscriber:changes&lastError=refused');
      const content = (await server.send('GET', `/api/v1/received/${message?.id}/body`)).json();
      assert.equal((content.before as { title: string }).title, 'one');
      for (const wrong of [
        {},
        { since: 'yesterday' },
        { since, until: 'x' },
        { since, after: 'evt_none' },
        { since, limit: 0 },
      ]) {
        assert.equal((await replay(wrong)).status, 'since' in wrong ? 422 : 400, JSON.stringify(wrong));
      }
      assert.equal((await replay({ since }, 'nobody')).status, 404);
      const shown = (await server.send('GET', '/api/v1/subscribers/changes')).json();
      assert.deepEqual(
        [shown.name, shown.events, shown.ordered, shown.pending],
        ['changes', ['tickets.updated', 'tickets.deleted'], false, 3],
      );
      assert.ok(Number(shown.lagSeconds) >= 0);
    });

    test('are listed, and given events again, on the command line', async () => {
      const listed = await comity('subscribers');
      assert.equal(listed.code, 0, listed.stderr);
      assert.match(listed.stdout, /^NAME +EVENTS +PENDING +FAILED +LAG\nbook +tickets\.created invoice\.\*/);
      const replayed = await comity('subscribers', 'replay', 'faulty', '--since', '1h', '--limit', '1');
      assert.equal(replayed.stdout, '1 event is given to faulty again.\n', replayed.stderr);
      const all = await comity('subscribers', 'replay', 'faulty', '--since', '1h', '--json');
      assert.equal(JSON.parse(all.stdout).replayed, 3);
      assert.equal((await comity('subscribers', 'replay', 'faulty', '--since', 'soon')).code, 2);
      assert.match(
        (await comity('subscribers', 'replay', 'none', '--since', '1h')).stderr,
        /subscriber none/,
      );
    });

    test('go on with their other events, however many fail in a row', async () => {
      await Promise.all(Array.from({ length: 12 }, () => post('faults', { left: 9 })));
      const failures = 'received?sender=subscriber:faulty&status=failed&lastError=thrown';
      await until(async () => (await allOf(server, failures)).length >= 12, 'all of them failed');
      const { id } = (await post('faults', { left: -1 })).json();
      await until(
        async () => (await server.send('GET', `/api/v1/sums/${id}`)).status === 200,
        'the event behind them was handled',
        10_000,
      );
      assert.doesNotMatch(server.stderr(), /sender-paused/);
    });

    test('that never end do not stop reads', async () => {
      await post('pings', { count: -2 });
      const slowest = { ms: 0 };
      const endAt = Date.now() + 1200;
      while (Date.now() < endAt) {
        const began = performance.now();
        assert.equal((await server.send('GET', '/api/v1/sums/all')).status, 200);
        slowest.ms = Math.max(slowest.ms, performance.now() - began);
      }
      // The handler would hold them for its whole time (COMITY_HANDLER_TIMEOUT_MS).
      assert.ok(slowest.ms < 2500, `${slowest.ms} ms`);
    });
  });
}
