/**
 * Hidden and read-only fields on the wire (§5.1), on both stores: whoever may not see a field sees it nowhere, neither in what is
 * read, nor in answers to changes and their replays, nor in events, nor by asking about it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { readEvents } from './event-reader.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

/** Values that stand nowhere else, so that any answer can be searched for them. */
const salary = 918_273;
const note = 'whispered';

const path = '/api/v1/staff';

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;
    let adas: string;
    let bobs: string;

    before(async () => {
      house = await openHouse(engine);
      adas = await hire('ada', { name: 'Ada', salary });
      bobs = await hire('bob', { name: 'Bob', salary: 1 });
      for (const id of [adas, bobs]) {
        const answer = await house.as('hana', 'PATCH', `${path}/${id}`, { json: { note } });
        assert.equal(answer.status, 200);
      }
    });

    after(() => house.stop());

    async function hire(who: string, json: object): Promise<string> {
      const answer = await house.as(who, 'POST', path, { json });
      assert.equal(answer.status, 201, answer.body);
      return String(answer.json().id);
    }

    const get = (who: string | undefined, target: string, options: RequestOptions = {}) =>
      house.as(who, 'GET', target, options);
    const query = (who: string, type: string, body: string) =>
      house.as(who, 'QUERY', path, { body, headers: { 'Content-Type': type } });

    function shows(answer: Answer, what: { readonly salary: boolean; readonly note: boolean }): void {
      assert.ok(answer.status < 300, `${answer.status} ${answer.body}`);
      assert.equal(answer.body.includes(String(salary)), what.salary, answer.body);
      assert.equal(answer.body.includes('"note"') || answer.body.includes(note), what.note, answer.body);
    }

    const nothing = { salary: false, note: false };
    const own = { salary: true, note: false };
    const everything = { salary: true, note: true };

    test('a read, a list, each QUERY and a stored query show each caller what is for it', async () => {
      const sql = await query('root', 'application/sql', 'SELECT * FROM staff LIMIT 10');
      shows(sql, everything);
      const stored = String(sql.headers.location);
      for (const [who, what] of [
        [undefined, nothing],
        ['bob', nothing],
        ['ada', own],
        ['hana', everything],
        ['root', everything],
      ] as const) {
        shows(await get(who, `${path}/${adas}`), what);
        shows(await get(who, path), what);
        shows(await get(who, stored), what);
        if (who === undefined) continue;
        shows(await query(who, 'application/json', '{}'), what);
        shows(await query(who, 'application/x-www-form-urlencoded', 'limit=10'), what);
        shows(await query(who, 'application/sql', 'SELECT * FROM staff'), what);
      }
    });

    test('a list shows each owner the field of its own resources alone', async () => {
      const items = (await get('bob', path)).json().items as { id: string; salary?: number }[];
      assert.equal(items.find(({ id }) => id === bobs)?.salary, 1);
      assert.equal(items.find(({ id }) => id === adas)?.salary, undefined);
      const selected = await get('bob', `${path}?fields=id,name`);
      assert.equal(selected.status, 200);
    });

    test('a kept result is kept for who saw it', async () => {
      const asked = await query('root', 'application/json', '{"limit": 7}');
      const kept = String(asked.headers['content-location']);
      shows(await get('root', kept), everything);
      for (const who of ['bob', 'ada', undefined]) {
        const { status, body } = await get(who, kept);
        assert.equal(status, 410);
        assert.equal(body.includes(String(salary)) || body.includes(note), false);
      }
    });

    test('a field that is not seen in every resource is as unknown as one that is nowhere', async () => {
      const alike = async (who: string, target: (name: string) => Promise<Answer>) => {
        for (const name of ['salary', 'note']) {
          const [hidden, unknown] = [await target(name), await target('wages')];
          assert.equal(hidden.status, unknown.status, `${who} ${name}`);
          assert.ok(hidden.status === 400 || hidden.status === 422);
          const neutral = (text: string) => text.replaceAll(name, 'FIELD').replaceAll('wages', 'FIELD');
          assert.equal(neutral(hidden.body), neutral(unknown.body));
        }
      };
      for (const who of ['bob', 'ada']) {
        await alike(who, (name) => get(who, `${path}?${name}=1`));
        await alike(who, (name) => get(who, `${path}?${name}[gt]=1`));
        await alike(who, (name) => get(who, `${path}?sort=${name}`));
        await alike(who, (name) => get(who, `${path}?fields=id,${name}`));
        await alike(who, (name) => get(who, `${path}/${bobs}?fields=${name}`));
        await alike(who, (name) => query(who, 'application/json', `{"filter": {"${name}": 1}}`));
        await alike(who, (name) => query(who, 'application/json', `{"sort": ["-${name}"]}`));
        await alike(who, (name) => query(who, 'application/json', `{"fields": ["${name}"]}`));
        await alike(who, (name) => query(who, 'application/x-www-form-urlencoded', `${name}=1`));
        await alike(who, (name) =>
          query(who, 'application/sql', `SELECT * FROM staff WHERE ${name} IS NULL`),
        );
        await alike(who, (name) => query(who, 'application/sql', `SELECT id FROM staff ORDER BY ${name}`));
      }
      for (const name of ['salary', 'note']) {
        assert.equal((await get('hana', `${path}?sort=${name}&fields=id,${name}`)).status, 200);
      }
      const stored = await query('hana', 'application/json', `{"filter": {"salary": {"gt": 900000}}}`);
      assert.equal((stored.json().items as unknown[]).length, 1);
      const borrowed = await get('bob', String(stored.headers.location));
      assert.equal(borrowed.status, 422, 'a stored query grants nothing');
    });

    test('a search finds nothing by what is hidden', async () => {
      for (const who of ['bob', 'hana']) {
        assert.deepEqual((await get(who, `${path}?q=${note}`)).json().items, []);
        assert.equal(((await get(who, `${path}?q=Ada`)).json().items as unknown[]).length, 1);
      }
    });

    test('representations that show other fields never share an entity tag, and a precondition holds the own one', async () => {
      const tags = new Map<string, string>();
      for (const who of ['bob', 'ada', 'hana']) {
        tags.set(who, String((await get(who, `${path}/${adas}`)).headers.etag));
      }
      assert.equal(new Set(tags.values()).size, 3);
      const again = (who: string, of: string) =>
        get(who, `${path}/${adas}`, { headers: { 'If-None-Match': tags.get(of) ?? '' } });
      assert.equal((await again('bob', 'bob')).status, 304);
      assert.equal((await again('bob', 'hana')).status, 200);
      const patch = (who: string, of: string) =>
        house.as(who, 'PATCH', `${path}/${adas}`, {
          json: { name: 'Ada' },
          headers: { 'If-Match': tags.get(of) ?? '' },
        });
      assert.equal((await patch('bob', 'hana')).status, 412);
      const changed = await patch('bob', 'bob');
      assert.equal(changed.status, 200);
      assert.equal(changed.headers.etag, undefined, 'the whole representation has that tag, not this one');
      assert.equal(String((await get('bob', path)).headers['cache-control']).includes('private'), true);
    });

    test('answers to changes and their replays leave out what is not for their author', async () => {
      const headers = { 'Idempotency-Key': `"${engine}-hidden"` };
      const create = () => house.as('hana', 'POST', path, { json: { name: 'X', salary, note }, headers });
      shows(await create(), everything);
      const replay = await create();
      shows(replay, everything);
      // The key is hers by whatever credential; the answer was made for one that sees more.
      const json = { name: 'X', salary, note };
      const weaker = await house.as('hana-by-key', 'POST', path, { json, headers });
      assert.deepEqual([weaker.status, weaker.json().code], [422, 'idempotency_key_reused']);
      const id = String(replay.json().id);
      const change = { json: { name: 'Y' }, headers };
      shows(await house.as('bob', 'PATCH', `${path}/${id}`, change), nothing);
      shows(await house.as('bob', 'PATCH', `${path}/${id}`, change), nothing);
      shows(await house.as('bob', 'PUT', `${path}/${id}`, { json: { name: 'Z' } }), nothing);
      shows(await get('hana', `${path}/${id}`), everything);
      const form = { body: 'name=W', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } };
      shows(await house.as('bob', 'PUT', `${path}/${id}`, form), nothing);
      shows(await get('hana', `${path}/${id}`), everything);
      const gone = await house.as('bob', 'DELETE', `${path}/${id}`, {
        headers: { Prefer: 'return=representation' },
      });
      shows(gone, nothing);
    });

    test('the outcome of an operation leaves out what is not for its author', async () => {
      const accepted = await house.as('bob', 'PATCH', `${path}/${adas}`, {
        json: { name: 'Ada L.' },
        headers: { Prefer: 'respond-async' },
      });
      assert.equal(accepted.status, 202);
      const location = String(accepted.headers.location);
      let operation = await get('bob', location);
      for (let tries = 0; operation.status !== 303 && tries < 500; tries += 1)
        operation = await get('bob', location);
      assert.equal(operation.status, 303);
      assert.equal(operation.body.includes(String(salary)), false);
      shows(await get('bob', `${location}/result`), nothing);
      shows(await get('bob', String(operation.headers.location)), nothing);
    });

    test('events leave it out: in the log, one by one, and in the stream', async () => {
      for (const [who, what] of [
        [undefined, nothing],
        ['bob', nothing],
        ['ada', own],
        ['hana', everything],
      ] as const) {
        const log = await get(who, '/api/v1/events?limit=100');
        shows(log, what);
        const { items } = log.json() as { items: { id: string }[] };
        assert.ok(items.length > 4);
        const answers = [];
        for (const { id } of items) answers.push(await get(who, `/api/v1/events/${id}`));
        const all = answers.map(({ body }) => body).join('\n');
        assert.equal(all.includes(String(salary)), what.salary);
        assert.equal(all.includes(note), what.note);
        const options = who === undefined ? { anonymous: true } : { bearer: who };
        const reader = await readEvents(house.port, { ...options, path: '/api/v1/events?after=' });
        await reader.until(({ events }) => events.length >= items.length);
        reader.close();
        const streamed = reader.events.map(({ data }) => data).join('\n');
        assert.equal(streamed.includes(String(salary)), what.salary);
        assert.equal(streamed.includes(note), what.note);
        assert.deepEqual(
          reader.events.map(({ data }) => JSON.parse(data) as unknown).slice(0, items.length),
          items,
        );
      }
    });

    test('one event has another entity tag for who sees less of it', async () => {
      const { items } = (await get('hana', '/api/v1/events?limit=100')).json() as {
        items: { id: string; data: { object: { note?: string } } }[];
      };
      const told = items.find(({ data }) => data.object.note === note) ?? assert.fail();
      const tagFor = async (who: string) => (await get(who, `/api/v1/events/${told.id}`)).headers.etag;
      assert.notEqual(await tagFor('hana'), await tagFor('bob'));
    });

    test('a read-only field is refused in every way of writing it, and kept by a PUT', async () => {
      const target = `${path}/${bobs}`;
      const refused = async (method: string, options: RequestOptions, at = target) => {
        const answer = await house.as('bob', method, at, options);
        assert.equal(answer.status, 400, answer.body);
        assert.equal(answer.json().code, 'field_unpatchable');
        assert.deepEqual(answer.json().errors, [{ pointer: '/status', message: 'is read-only' }]);
      };
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
      const patchType = { 'Content-Type': 'application/json-patch+json' };
      const operations = (...list: object[]) => ({ body: JSON.stringify(list), headers: patchType });
      await refused('POST', { json: { name: 'x', status: 'hired' } }, path);
      await refused('POST', { body: 'name=x&status=hired', headers: form }, path);
      await refused('PUT', { json: { name: 'x', status: 'hired' } });
      await refused('PUT', { body: 'name=x&status=hired', headers: form });
      await refused('PUT', { json: { name: 'x', status: 'hired' } }, `${path}/chosen`);
      await refused('PATCH', { json: { status: 'hired' } });
      await refused('PATCH', operations({ op: 'replace', path: '/status', value: 'hired' }));
      await refused('PATCH', operations({ op: 'move', from: '/status', path: '/name' }));
      await refused('PATCH', operations({ op: 'copy', from: '/name', path: '/status' }));
      assert.equal((await house.as('hana', 'PATCH', target, { json: { status: 'hired' } })).status, 200);
      assert.equal((await house.as('bob', 'PUT', target, { json: { name: 'Bob' } })).json().status, 'hired');
      const repeated = await house.as('bob', 'PUT', target, { json: { name: 'Bob', status: 'hired' } });
      assert.equal(repeated.json().status, 'hired');
      assert.equal((await get('hana', target)).json().note, note, 'nor was what he cannot see lost');
    });
  });
}
