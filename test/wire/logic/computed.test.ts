/** Computed fields over the wire, on both stores: kept at write, found like any field, written by no client. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('./fixtures/computed.config.ts', import.meta.url));
const merge = { 'Content-Type': 'application/merge-patch+json' };

for (const engine of engineNames) {
  describe(`computed fields on ${engine}`, () => {
    let server: RunningServer;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const env = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      server = await startServer({ config, env });
      if (database !== undefined) after(() => database.dispose());
    });

    after(() => server.stop());

    const create = (fields: Record<string, unknown>): Promise<Answer> =>
      server.send('POST', '/api/v1/people', { json: fields });
    const patch = (id: unknown, fields: unknown): Promise<Answer> =>
      server.send('PATCH', `/api/v1/people/${id}`, { body: JSON.stringify(fields), headers: merge });
    const put = (id: unknown, json: unknown): Promise<Answer> =>
      server.send('PUT', `/api/v1/people/${id}`, { json });
    const namesOf = async (query: string): Promise<readonly unknown[]> => {
      const answer = await server.send('GET', `/api/v1/people?${query}`);
      return (answer.json().items as { name: string }[]).map(({ name }) => name);
    };

    test('are kept by every write, after the hook', async () => {
      const made = await create({ first: 'augusta', last: 'King', nick: 'al' });
      assert.equal(made.status, 201);
      const { id, name, letters, alias } = made.json();
      assert.deepEqual([name, letters, alias], ['Ada King', 7, 'AL']);
      const changed = await patch(id, { last: 'Lovelace', nick: null });
      assert.deepEqual(
        [changed.status, changed.json().name, changed.json().alias],
        [200, 'Ada Lovelace', undefined],
      );
      const replaced = await put(id, { first: 'Ada', last: 'Byron' });
      assert.equal(replaced.json().name, 'Ada Byron');
      const read = await server.send('GET', `/api/v1/people/${id}`);
      assert.equal(read.body, replaced.body);
      const same = await put(id, { first: 'Ada', last: 'Byron' });
      assert.equal((await server.send('GET', `/api/v1/people/${id}`)).headers.etag, read.headers.etag);
      assert.equal(same.status, 200);
    });

    test('are kept in long documents too, which threads check', async () => {
      const nick = 'x'.repeat(300_000);
      const made = await create({ first: 'Long', last: 'One', nick });
      assert.equal(made.status, 201);
      assert.equal(made.json().name, 'Long One');
      assert.equal(made.json().alias, nick.toUpperCase());
      const refused = await create({ first: 'Long', last: 'Two', nick, name: 'x' });
      assert.deepEqual([refused.status, refused.json().code], [400, 'field_unpatchable']);
    });

    test('are found, searched, sorted and unique like any field', async () => {
      for (const last of ['Hopper', 'Li']) await create({ first: 'Grace', last });
      assert.deepEqual(await namesOf('name=Grace%20Hopper'), ['Grace Hopper']);
      assert.deepEqual(await namesOf('letters%5Bgte%5D=11'), ['Grace Hopper']);
      assert.deepEqual(await namesOf('q=grace&sort=letters'), ['Grace Li', 'Grace Hopper']);
      const taken = await create({ first: 'Grace', last: 'Li' });
      assert.deepEqual([taken.status, taken.json().code], [409, 'unique_taken']);
    });

    test('are written by no client, also not by an administrator', async () => {
      const given = await create({ first: 'Eve', last: 'One', name: 'Other' });
      assert.deepEqual([given.status, given.json().code], [400, 'field_unpatchable']);
      const { id } = (await create({ first: 'Eve', last: 'Two' })).json();
      const changed = await patch(id, { name: 'Other' });
      assert.deepEqual([changed.status, changed.json().code], [400, 'field_unpatchable']);
      assert.equal((await put(id, { first: 'Eve', last: 'Two', name: 'Other' })).status, 400);
      assert.equal((await put(id, { first: 'Eve', last: 'Two', name: 'Eve Two' })).status, 200);
    });

    for (const [first, told] of [
      ['throws', /the computed field name of people failed: the field broke/],
      ['odd', /a computed field of people does not fit its schema: \/letters/],
      ['x'.repeat(50), /does not fit its schema: \/name/],
    ] as const) {
      test(`that do not work are a 500, and nothing is written: ${first.slice(0, 6)}`, async () => {
        const made = await create({ first, last: 'Broken' });
        assert.equal(made.status, 500);
        assert.match(server.logOf(made), told);
        assert.deepEqual(await namesOf('last=Broken'), []);
      });
    }

    test('are in what the OpenAPI document says of representations, and in nothing that clients send', async () => {
      const document = (await server.send('GET', '/openapi.json')).json() as {
        components: { schemas: Record<string, { properties: Record<string, Record<string, unknown>> }> };
      };
      const { PeopleItem, PeopleItemInput, PeopleItemPatch } = document.components.schemas;
      assert.match(String(PeopleItem?.properties.name?.description), /^Computed from the other members/);
      for (const sent of [PeopleItemInput, PeopleItemPatch]) {
        assert.ok(sent?.properties.first !== undefined && !('name' in sent.properties));
      }
    });
  });
}
