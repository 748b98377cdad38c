/** The unit of a function over the wire, on both stores: what is written with it, what is undone, and what fails it. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { serversOn } from '../../harness/servers-on.ts';
import { eventually, until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/one-unit.config.ts', import.meta.url));
const env = {
  COMITY_HANDLER_CHANGES_MAX: '20',
  COMITY_HANDLER_READS_MAX: '50',
};

for (const engine of engineNames) {
  describe(`the unit of a function on ${engine}`, () => {
    let server: RunningServer;

    const start = serversOn(engine, config);
    before(async () => {
      server = await start(env);
    });

    const post = (path: string, json: unknown): Promise<Answer> =>
      server.send('POST', `/api/v1/${path}`, { json });
    const textsOf = async (collection: string, at = server): Promise<readonly string[]> => {
      const answer = await at.send('GET', `/api/v1/${collection}?limit=1000&sort=createdAt`);
      return (answer.json().items as { text: string }[]).map(({ text }) => text);
    };
    const eventsOf = async (type: string): Promise<number> => {
      const answer = await server.send('GET', `/api/v1/events?type=${type}&limit=1000`);
      return (answer.json().items as unknown[]).length;
    };
    /** The mode as a hook and as an action. */
    const both = [
      ['a hook', (mode: string) => post('items', { mode })],
      ['an action', (mode: string) => post('act', { mode })],
    ] as const;

    for (const [by, run] of both) {
      for (const mode of ['forgotten call', 'forgotten call, and more', 'forgotten emit']) {
        test(`fails with a call that was not awaited: ${mode} in ${by}`, async () => {
          const [items, notes] = [await eventsOf('items.created'), await textsOf('notes')];
          const answer = await run(mode);
          assert.deepEqual([answer.status, answer.json().code], [500, 'internal']);
          assert.match(server.logOf(answer), /did not await a call, which failed: (notes|emit): /);
          assert.match(server.logOf(answer), /one-unit\.config\.ts:\d+/);
          assert.deepEqual([await eventsOf('items.created'), await textsOf('notes')], [items, notes]);
        });
      }

      for (const mode of ['awaited later', 'all of some']) {
        test(`goes on where a call that fails is looked at: ${mode} in ${by}`, async () => {
          const notes = await textsOf('notes');
          assert.ok((await run(mode)).status < 300);
          assert.equal((await textsOf('notes')).length, notes.length + 1);
        });
      }

      for (const mode of ['caught refusal', 'caught throw', 'caught deep refusal']) {
        test(`loses what a call wrote that failed and was caught: ${mode} in ${by}`, async () => {
          const [notes, tried] = [await textsOf('notes'), await eventsOf('strict.tried')];
          assert.ok((await run(mode)).status < 300);
          assert.deepEqual(await textsOf('notes'), [...notes, 'before', 'after']);
          assert.deepEqual([await textsOf('strict'), await eventsOf('strict.tried')], [[], tried]);
          if (mode !== 'caught throw') return;
          const line = server
            .stderr()
            .split('\n')
            .findLast((each) => each.includes('nested-hook-failed'));
          assert.match(String(line), /beforeWrite of strict failed: the inner hook broke/);
          assert.match(String(line), /one-unit\.config\.ts:\d+/);
        });
      }

      for (const [mode, told] of [
        ['unknown collection', /no collection is named \\"nope\\"/],
        ['too many changes', /makes more than 20 changes \(COMITY_HANDLER_CHANGES_MAX\)/],
        ['too many reads', /reads more than 50 times \(COMITY_HANDLER_READS_MAX\)/],
        ['not JSON', /BigInt/],
      ] as const) {
        test(`fails with a mistake, and the log has it: ${mode} in ${by}`, async () => {
          const notes = await textsOf('notes');
          const answer = await run(mode);
          assert.deepEqual([answer.status, answer.json().code], [500, 'internal']);
          assert.match(server.logOf(answer), told);
          assert.match(server.logOf(answer), /one-unit\.config\.ts:\d+/);
          assert.deepEqual(await textsOf('notes'), notes);
        });
      }

      test(`passes on a refusal, and says which call refused: ${by}`, async () => {
        const refused = await run('refusal');
        assert.equal(refused.status, 409);
        const error = 'strict: strict says no';
        assert.deepEqual(refused.json(), {
          ...{ error, code: 'says_no' },
          errors: [{ pointer: '/text', message: error }],
        });
        const wrong = await run('wrong note');
        assert.equal(wrong.status, 400);
        assert.match(String(wrong.json().error), /^notes: /);
        assert.equal(wrong.json().errors, undefined);
        const query = await run('wrong query');
        assert.match(String(query.json().error), /^notes: limit must be [^/]*100000$/);
        await post('names', { name: 'taken' });
        const taken = await run('taken name');
        assert.equal(taken.status, 409);
        assert.match(String(taken.json().error), /^names: /);
      });
    }

    for (const [text, status] of [
      ['forgotten call', 500],
      ['forgotten, and no JSON', 500],
      ['returned call', 400],
    ] as const) {
      test(`fails with a call of a hook that is no asynchronous function: ${text}`, async () => {
        assert.equal((await post('plain', { text })).status, status);
        assert.deepEqual(await textsOf('plain'), []);
      });
    }

    test('loses what a late call of a hook writes that was given up', async () => {
      const impatient = await start({ ...env, COMITY_HOOK_TIMEOUT_MS: '200' });
      const acted = await impatient.send('POST', '/api/v1/act', { json: { mode: 'caught late' } });
      assert.equal(acted.status, 200);
      assert.deepEqual([await textsOf('notes', impatient), await textsOf('strict', impatient)], [[], []]);
    });

    for (const mode of ['own document', 'own id', 'own deletion', 'around']) {
      test(`fails where a hook writes the document that is being written: ${mode}`, async () => {
        const made = await server.send('PUT', '/api/v1/items/one', { json: { mode: 'plain' } });
        assert.ok(made.status < 300);
        const changed = await server.send('PATCH', '/api/v1/items/one', {
          ...{ body: JSON.stringify({ mode }) },
          headers: { 'Content-Type': 'application/merge-patch+json' },
        });
        assert.deepEqual([changed.status, changed.json().code], [500, 'internal']);
        assert.match(server.logOf(changed), /write of the document \\"one\\" of items is under way/);
        assert.match(server.logOf(changed), /one-unit\.config\.ts:\d+/);
        const created = await post('items', { mode });
        assert.deepEqual([created.status, created.json().code], [500, 'internal']);
        assert.equal((await server.send('GET', '/api/v1/items/one')).json().mode, 'plain');
        assert.deepEqual(await textsOf('around'), []);
      });
    }

    test('lists what it has written, in its place, and not what it has deleted', async () => {
      assert.equal((await post('names', { name: 'rank a' })).status, 201);
      const told = await post('ranked', undefined);
      assert.equal(told.status, 200);
      const expected = ['a', 'c', 'b', 'e', 'd', 'e', 'c'].map((letter) => `rank ${letter}`);
      assert.deepEqual(told.json(), expected);
    });

    test('tells a hook who calls, also where an action makes the write', async () => {
      const json = { mode: 'who calls' };
      const done = await server.send('POST', '/api/v1/act', { json, anonymous: true });
      assert.equal(done.status, 200);
      assert.deepEqual(await textsOf('around'), ['anonymous']);
    });

    test('goes on where a hook writes another document of its collection', async () => {
      await server.send('PUT', '/api/v1/items/two', { json: { mode: 'plain' } });
      assert.equal((await post('items', { mode: 'another', other: 'two' })).status, 201);
      assert.equal((await server.send('GET', '/api/v1/items/two')).json().other, 'by another');
      const caught = await post('items', { mode: 'own document, caught' });
      assert.deepEqual([caught.status, caught.json().other], [201, 'FunctionFailed']);
    });

    for (const [mode, told] of [
      ['unknown collection', /no collection is named "nope" \(one-unit\.config\.ts:\d+/],
      ['forgotten call', /did not await a call, which failed: notes: .*\(one-unit\.config\.ts:\d+/],
      ['refusal', /says_no: strict: strict says no/],
    ] as const) {
      test(`tells of a mistake on a thread in the attempt: ${mode}`, async () => {
        const made = await post('names', { name: `thread: ${mode}` });
        assert.equal(made.status, 201);
        const failed = await eventually(async () => {
          const { items } = (await server.send('GET', '/api/v1/received?status=failed&limit=1000')).json();
          return (items as { id: string; createdAt: string }[]).find(
            ({ createdAt }) => createdAt >= String(made.json().createdAt),
          );
        });
        const { items } = (await server.send('GET', `/api/v1/received/${failed.id}/attempts`)).json();
        assert.match(String((items as { message: string }[])[0]?.message), told);
      });
    }
  });
}

for (const [mode, status, told] of [
  ['forgotten block', 500, /the block broke/],
  ['late call', 200, /that makes this call has ended/],
  ['late forgotten call', 200, /that makes this call has ended/],
  ['late exception', 200, /thrown by a timer of a function/],
] as const) {
  test(`an error that a function leaves behind does not end the program: ${mode}`, async () => {
    const server = await spawnServer({ config, env });
    after(() => server.kill());
    const post = (path: string, json: unknown) => server.send('POST', `/api/v1/${path}`, { json });
    const [acted, hooked] = [await post('act', { mode }), await post('items', { mode })];
    assert.deepEqual([acted.status, hooked.status], [status, status === 500 ? 500 : 201]);
    await until(
      () =>
        server
          .stderr()
          .split('\n')
          .filter((line) => told.test(line)).length === 2,
    );
    const lines = server
      .stderr()
      .split('\n')
      .filter((line) => told.test(line));
    assert.match(String(lines[0]), /the action POST \/act/);
    assert.match(String(lines[1]), /the hook beforeWrite of items/);
    for (const line of lines) assert.match(line, /one-unit\.config\.ts:\d+/);
    assert.deepEqual((await server.send('GET', '/api/v1/notes')).json().items, []);
    const read = await post('strange', { text: 'later' });
    assert.equal(read.status, 201);
    await until(() => /the hook afterRead of strange.*left by afterRead/.test(server.stderr()));
    assert.equal((await server.send('GET', '/health/live')).status, 200);
    assert.equal(await server.stop(), 0);
  });
}
