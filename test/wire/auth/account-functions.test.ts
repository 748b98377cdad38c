/** Functions that change the application's fields of accounts (§5.7.9), on both stores. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  type Client,
  openClient,
  register,
  type Tokens,
} from '../../harness/account-client.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/crew.config.ts', import.meta.url));
const password = 'correct horse battery';

for (const engine of engineNames) {
  describe(`functions on ${engine}`, () => {
    let server: RunningServer;
    let client: Client;
    let ada: Tokens;
    let bob: Tokens;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const env = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      server = await startServer({ config, env });
      client = openClient(server.port);
      ada = await register(client, 'ada@crew.example', password);
      bob = await register(client, 'bob@crew.example', password);
      if (database !== undefined) after(() => database.dispose());
    });

    after(async () => {
      client.close();
      await server.stop();
    });

    const post = (path: string, json: unknown, headers = bearer(ada.token)): Promise<Answer> =>
      client.ask('POST', `${base}/${path}`, { json, headers });
    const account = async (of: Tokens) =>
      (await client.ask('GET', `${base}/users/${of.userId}`, { headers: asAdministrator })).json();
    const changesOf = async (of: Tokens) => {
      const query = `type=account.changed&subject=${of.userId}&sort=-id`;
      const answer = await client.ask('GET', `${base}/audit?${query}`, { headers: asAdministrator });
      return answer.json().items as readonly { actor: object; requestId?: string; detail: object }[];
    };

    test('a hook changes fields in the unit of its write, which the account’s token shows at once', async () => {
      const made = await post('tasks', { title: 'one', assigneeId: bob.userId });
      assert.equal(made.status, 201, made.body);
      const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(bob.token) });
      assert.equal((me.json().fields as { open: number }).open, 1);
      const [entry] = await changesOf(bob);
      assert.deepEqual(entry?.actor, { kind: 'user', id: ada.userId });
      assert.deepEqual(entry?.detail, { members: ['open'] });
      assert.ok(entry?.requestId);
      const dangling = await post('tasks', { title: 'two', assigneeId: 'usr_nobody' });
      assert.ok(dangling.status >= 400, dangling.body);
    });

    test('many writes at once count each one', async () => {
      const before = Number((await account(bob)).open);
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, at) => post('tasks', { title: `many ${at}`, assigneeId: bob.userId })),
      );
      assert.deepEqual(
        answers.map(({ status }) => status),
        Array.from({ length: 12 }, () => 201),
      );
      assert.equal((await account(bob)).open, before + 12);
    });

    test('an action changes fields and the name, by the rules of the collection', async () => {
      await client.ask('PUT', `${base}/teams/red`, { json: { name: 'Red' }, headers: asAdministrator });
      const good = await post('set', {
        id: bob.userId,
        patch: { badge: 'gold', teamId: 'red', name: 'Bob' },
      });
      assert.equal(good.status, 200, good.body);
      assert.deepEqual(good.json(), { badge: 'gold', teamId: 'red' });
      const { name, badge, email, roles } = await account(bob);
      assert.deepEqual([name, badge, email, roles], ['Bob', 'gold', 'bob@crew.example', []]);
      for (const [patch, status, code] of [
        [{ badge: 7 }, 422, 'validation_failed'],
        [{ unknown: 1 }, 422, 'validation_failed'],
        [{ open: -1 }, 422, 'validation_failed'],
        [{ teamId: 'blue' }, 422, 'reference_missing'],
        [{ badge: 'forbidden' }, 409, 'no_badge'],
      ] as const) {
        const answer = await post('set', { id: bob.userId, patch });
        assert.deepEqual([answer.status, answer.json().code], [status, code], answer.body);
      }
      assert.equal((await post('set', { id: 'usr_nobody', patch: {} })).status, 404);
    });

    test('reaches nothing that belongs to Comity, not by a hook of accounts either', async () => {
      const { updatedAt: _, ...before } = await account(bob);
      for (const patch of [
        { email: 'eve@crew.example' },
        { roles: ['administrator'] },
        { scopes: ['admin'] },
        { disabled: true },
        { emailVerified: true },
        { tenant: 'north' },
        { badge: 'sneaky' },
        { badge: 'fine', roles: ['editor'] },
      ]) {
        const answer = await post('set', { id: bob.userId, patch });
        assert.deepEqual([answer.status, answer.json().code], [400, 'field_unpatchable'], answer.body);
      }
      const { updatedAt: __, ...after } = await account(bob);
      assert.deepEqual(after, before);
      const removal = await post('remove', { id: bob.userId });
      assert.equal(removal.status, 500, 'a mistake of the function');
      assert.equal((await account(bob)).email, 'bob@crew.example');
    });

    test('subscribers and jobs change them, and the audit trail names them', async () => {
      const made = await post('marks', { userId: bob.userId });
      assert.equal(made.status, 201, made.body);
      await until(async () => (await account(bob)).badge === 'by a subscriber', 'the subscriber has run');
      assert.deepEqual((await changesOf(bob))[0]?.actor, { kind: 'subscriber', id: 'badge' });
      await post('jobs/clear/run', {}, asAdministrator);
      await until(async () => (await account(bob)).badge === undefined, 'the job has run');
      assert.deepEqual((await changesOf(bob))[0]?.actor, { kind: 'job', id: 'clear' });
      const events = await client.ask('GET', `${base}/events?limit=1000`, { headers: asAdministrator });
      assert.equal(events.body.includes('users.'), false, 'no event tells of accounts');
    });
  });
}
