/** Members with `format: 'date-time'` (§2.1.6) over the running program, on both stores: kept in UTC, and compared as instants. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/instants.config.ts', import.meta.url));
const path = '/api/v1/meetings';
const noon = '2026-01-31T12:00:00.000Z';

type Members = Record<string, unknown>;

for (const engine of engineNames) {
  describe(engine, () => {
    const start = serversOn(engine, config);
    let program: RunningServer;
    before(async () => {
      program = await start();
    });

    async function done(method: string, at: string, json: unknown, headers = {}): Promise<Members> {
      const answer = await program.send(method, at, { json, headers });
      assert.ok(answer.status < 300, `${method} ${at} ${answer.status} ${answer.body}`);
      return answer.status === 204 ? {} : answer.json();
    }

    test('keeps and serves an instant in UTC, in every place of a document', async () => {
      const made = await done('POST', path, {
        ...{ title: 'places', startsAt: '2026-01-31T14:00:00+02:00', endsAt: '2026-01-31t12:00:00.5z' },
        ...{
          place: { opensAt: '2026-01-31T00:30:00-23:59' },
          remindAt: [noon, '2026-01-31T12:00:00.1234567-00:00'],
        },
        ...{ entry: { kind: 'call', at: '2026-01-31T12:00:00Z' }, seenAt: '2026-01-31T12:00:00+00:00' },
        ...{ free: '2026-01-31T12:00:00Z', fixed: '2026-01-31T12:00:00Z' },
      });
      const { id, createdAt: _, updatedAt: __, ...fields } = made;
      assert.deepEqual(fields, {
        ...{ title: 'places', startsAt: noon, endsAt: '2026-01-31T12:00:00.500Z' },
        place: { opensAt: '2026-02-01T00:29:00.000Z' },
        remindAt: [noon, '2026-01-31T12:00:00.1234567Z'],
        ...{ entry: { kind: 'call', at: noon }, seenAt: noon },
        // What may be any text is text, and so is one of given values.
        ...{ free: '2026-01-31T12:00:00Z', fixed: '2026-01-31T12:00:00Z' },
        ...{ dueAt: '2027-01-01T00:00:00.000Z', firstAt: noon },
      });
      assert.deepEqual((await program.send('GET', `${path}/${id}`)).json(), made);
      const seen = await program.send('GET', `${path}?seenAt=2026-01-31T13:00:00%2B01:00&sort=-seenAt`);
      assert.deepEqual(seen.json().items, [made], seen.body);
      const note = { title: 'note', startsAt: noon, entry: { kind: 'note', at: '2026-01-31T12:00:00Z' } };
      assert.deepEqual((await done('POST', path, note)).entry, note.entry);
    });

    test('keeps it so in every format, by every method, and from functions', async () => {
      const at = '2026-01-31T13:00:00+01:00';
      const form = new URLSearchParams({ title: 'form', startsAt: at });
      const multipart = `--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nparts\r\n--b\r\nContent-Disposition: form-data; name="startsAt"\r\n\r\n${at}\r\n--b--\r\n`;
      const contents = [
        ['application/x-www-form-urlencoded', String(form)],
        ['multipart/form-data; boundary=b', multipart],
      ] as const;
      for (const [type, body] of contents) {
        const answer = await program.send('POST', path, { headers: { 'Content-Type': type }, body });
        assert.equal(answer.json().startsAt, noon, answer.body);
      }
      const { id } = await done('POST', path, { title: 'methods', startsAt: '2025-01-01T00:00:00Z' });
      const own = `${path}/${id}`;
      assert.equal((await done('PUT', own, { title: 'put', startsAt: at })).startsAt, noon);
      assert.equal((await done('PATCH', own, { endsAt: at })).endsAt, noon);
      const patch = [{ op: 'add', path: '/remindAt', value: [at] }];
      const type = { 'Content-Type': 'application/json-patch+json' };
      assert.deepEqual((await done('PATCH', own, patch, type)).remindAt, [noon]);
      const items = [{ title: 'bulk', startsAt: at }];
      for (const extra of [{}, { import: true }]) {
        const given = 'import' in extra ? items.map((item) => ({ ...item, createdAt: at })) : items;
        await done('POST', `${path}/bulk`, { ...extra, items: given });
      }
      const bulk = (await program.send('GET', `${path}?title=bulk`)).json().items as Members[];
      assert.deepEqual(
        bulk.map(({ startsAt }) => startsAt),
        [noon, noon],
      );
      assert.ok(bulk.some(({ createdAt }) => createdAt === noon));
      assert.equal(
        (await done('POST', path, { title: 'by a hook', startsAt: at })).endsAt,
        '2026-01-31T12:00:00.500Z',
      );
      const found = await done('POST', `${path}/find`, { at });
      assert.equal(found.at, noon, 'an input of an action is an instant too');
      assert.ok((found.titles as string[]).includes('by an action'));
    });

    test('takes an instant in another spelling for the same value', async () => {
      const made = await done('POST', path, { title: 'same', startsAt: noon });
      const own = `${path}/${made.id}`;
      const { firstAt: _, ...whole } = made;
      const respelt = Object.fromEntries(
        Object.entries(whole).map(([name, value]) => [
          name,
          /At$/.test(name) ? String(value).replace('Z', '000+00:00') : value,
        ]),
      );
      const put = await program.send('PUT', own, {
        json: { ...respelt, startsAt: '2026-01-31T10:00:00-02:00' },
      });
      // The digits are as sent: those of the unpatchable one are others, but its instant is the same.
      assert.equal(put.status, 200, put.body);
      assert.equal(put.json().startsAt, noon);
      const { etag } = (await program.send('GET', own)).headers;
      const patched = await program.send('PATCH', own, { json: { startsAt: '2026-01-31T10:00:00-02:00' } });
      assert.deepEqual([patched.status, patched.headers.etag], [200, etag]);
    });

    test('refuses what is no instant, naming the member', async () => {
      const refused = [
        '2026-12-31T23:59:60Z',
        '2026-01-31T12:00:00.1234567890Z',
        '2026-01-31T12:00:00Z[Europe/Berlin]',
      ];
      for (const text of [
        ...refused,
        '0001-01-01T00:00:00+00:01',
        '9999-12-31T23:59:59-00:01',
        '2026-01-31',
        'soon',
      ]) {
        for (const [member, value] of [
          ['startsAt', text],
          ['remindAt', [noon, text]],
        ] as const) {
          const answer = await program.send('POST', path, {
            json: { title: 'no', startsAt: noon, [member]: value },
          });
          assert.equal(answer.status, 422, text);
          const [error, ...others] = answer.json().errors as { pointer: string; message: string }[];
          assert.equal(error?.pointer, member === 'startsAt' ? '/startsAt' : '/remindAt/1');
          assert.match(error?.message ?? '', /^must be an RFC 3339 date and time such as/);
          assert.deepEqual(others, []);
        }
      }
    });

    test('keeps an instant of a unique field once, in whichever spelling', async () => {
      await done('POST', path, { title: 'slot', startsAt: noon, slot: '2026-01-31T12:00:00Z' });
      for (const slot of ['2026-01-31T12:00:00.0000Z', '2026-01-31T13:00:00+01:00']) {
        const answer = await program.send('POST', path, { json: { title: 'slot', startsAt: noon, slot } });
        assert.deepEqual([answer.status, answer.json().code], [409, 'unique_taken'], answer.body);
      }
    });

    test('finds an instant in any spelling, in every form of query, and pages in the order of time', async () => {
      const order = [
        ['a', '2030-01-01T00:30:00+01:00'],
        ['b', '2029-12-31T23:30:00.499Z'],
        ['c', '2029-12-31T23:30:00.5Z'],
        ['d', '2030-01-01T00:30:00.5000+01:00'],
        ['e', '2029-12-31t23:30:00.5001z'],
        ['f', '2029-12-31T23:30:01Z'],
      ];
      for (const [title, startsAt] of [...order].reverse()) {
        await done('POST', path, { title, startsAt, remindAt: [noon, startsAt] });
      }
      const asked = async (type: string, body: string): Promise<string> => {
        const answer = await program.send('QUERY', path, { headers: { 'Content-Type': type }, body });
        assert.equal(answer.status, 200, answer.body);
        return (answer.json().items as Members[]).map(({ title }) => title).join('');
      };
      const get = async (query: string): Promise<string> => {
        const answer = await program.send('GET', `${path}?sort=startsAt,title&${query}`);
        assert.equal(answer.status, 200, answer.body);
        return (answer.json().items as Members[]).map(({ title }) => title).join('');
      };
      const json = (filter: object) =>
        asked('application/json', JSON.stringify({ filter, sort: ['startsAt', 'title'] }));
      const sql = (where: string) =>
        asked('application/sql', `SELECT * FROM meetings WHERE ${where} ORDER BY startsAt, title`);
      const half = '2030-01-01T01:30:00.50+02:00';
      const plus = half.replace('+', '%2B');
      const since = '2029-12-31T23:30:00';
      const cases = [
        [get(`startsAt=${plus}`), 'cd'],
        [get(`startsAt[in]=${plus},${since}Z`), 'acd'],
        [get(`startsAt[gt]=${plus}&startsAt[lte]=${since}.999999999Z`), 'e'],
        [get(`startsAt[gte]=2029-12-31&startsAt[ne]=${plus}`), 'abef'],
        [get(`remindAt=${plus}`), 'cd'],
        [json({ startsAt: half }), 'cd'],
        [json({ startsAt: { gte: `${since}-00:00`, lt: half } }), 'ab'],
        [json({ startsAt: { in: [half, `${since}Z`] }, remindAt: half }), 'cd'],
        [sql(`startsAt = '${half}'`), 'cd'],
        [sql(`startsAt BETWEEN '${since}z' AND '${half}'`), 'abcd'],
        [sql(`'${half}' = ANY (remindAt)`), 'cd'],
        [asked('application/x-www-form-urlencoded', `startsAt=${plus}&sort=startsAt,title`), 'cd'],
      ] as const;
      for (const [index, [found, titles]] of cases.entries())
        assert.equal(await found, titles, `case ${index}`);
      for (const direction of ['', '-']) {
        let seen = '';
        let next = `${path}?startsAt[gte]=2029-12-31&sort=${direction}startsAt,title&limit=1`;
        while (seen.length <= order.length) {
          const { items, nextCursor } = (await program.send('GET', next)).json();
          seen += (items as Members[]).map(({ title }) => title).join('');
          if (nextCursor === null) break;
          next = `${next.replace(/&cursor=.*/, '')}&cursor=${nextCursor}`;
        }
        assert.equal(seen, direction === '' ? 'abcdef' : 'fecdba');
      }
      const spaced = await program.send('GET', `${path}?startsAt=${half}`);
      assert.equal(spaced.status, 400);
      assert.match(String(spaced.json().error), /; write "\+" as %2B in a URL$/);
      const leap = JSON.stringify({ filter: { startsAt: '2026-12-31T23:59:60Z' } });
      const headers = { 'Content-Type': 'application/json' };
      assert.equal((await program.send('QUERY', path, { headers, body: leap })).status, 422);
    });

    test('groups by instant, and shows the shortest spelling', async () => {
      for (const startsAt of [
        '2031-01-01T00:00:00.5Z',
        '2031-01-01T00:00:00.50000Z',
        '2031-01-01T01:00:00.5001+01:00',
      ])
        await done('POST', path, { title: 'group', startsAt });
      const sql = `SELECT startsAt, count(*), max(startsAt) FROM meetings WHERE title = 'group' GROUP BY startsAt
        HAVING min(startsAt) <= '2031-01-01T00:00:00.5001Z' ORDER BY startsAt DESC`;
      const headers = { 'Content-Type': 'application/sql' };
      const { items } = (await program.send('QUERY', path, { headers, body: sql })).json();
      assert.deepEqual(
        (items as Members[]).map((item) => Object.values(item)),
        [
          ['2031-01-01T00:00:00.5001Z', 1, '2031-01-01T00:00:00.5001Z'],
          ['2031-01-01T00:00:00.500Z', 2, '2031-01-01T00:00:00.500Z'],
        ],
      );
    });

    test('rules compare instants', async () => {
      for (const collection of ['gates', 'doors']) {
        for (const opensAt of ['2026-01-31T12:00:00.0000Z', '2026-01-31T14:00:00.001+02:00']) {
          await done('POST', `/api/v1/${collection}`, { opensAt });
        }
        const list = await program.send('GET', `/api/v1/${collection}`, { anonymous: true });
        const items = list.json().items as { id: string; opensAt: string }[];
        assert.deepEqual(
          items.map(({ opensAt }) => opensAt),
          ['2026-01-31T12:00:00.0000Z'],
          list.body,
        );
        const one = await program.send('GET', `/api/v1/${collection}/${items[0]?.id}`, { anonymous: true });
        assert.equal(one.status, 200);
      }
    });
  });
}
