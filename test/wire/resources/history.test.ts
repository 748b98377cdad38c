/** GET {member}/history (§4.15) on both stores: what it lists, to whom, and what it never shows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { asAdministrator, base, bearer, register, serveAccounts } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';

const config = fileURLToPath(new URL('../fixtures/history.config.ts', import.meta.url));

type Headers = Readonly<Record<string, string>>;
type Version = {
  readonly id: string;
  readonly change: string;
  readonly at: string;
  readonly actor?: unknown;
  readonly requestId?: string;
  readonly changes: Readonly<Record<string, { readonly before?: unknown; readonly after?: unknown }>>;
};

describeOnEachStore('history', async (engine) => {
  const env = { COMITY_RATE_LIMIT_WRITES: '0' };
  const { client } = await serveAccounts({ config, engine, env });
  const ada = await register(client, 'ada@history.example', 'correct horse battery');
  const [asAda, adaId] = [bearer(ada.token), ada.userId];

  async function write(method: string, path: string, json?: unknown, headers = asAdministrator as Headers) {
    const answer = await client.ask(method, `${base}/${path}`, {
      headers,
      ...(json === undefined ? {} : { json }),
    });
    assert.ok(answer.status < 300, `${answer.status} ${answer.body}`);
    return method === 'DELETE' ? {} : answer.json();
  }

  async function history(path: string, headers: Headers = asAdministrator): Promise<readonly Version[]> {
    const answer = await client.ask('GET', `${base}/${path}`, { headers });
    assert.equal(answer.status, 200, answer.body);
    return answer.json().items as readonly Version[];
  }

  test('lists who changed what, and when, newest first', async () => {
    const { id } = await write('POST', 'counters', { count: 1 }, asAda);
    const patched = await write('PATCH', `counters/${id}`, { count: 2 });
    await write('DELETE', `counters/${id}`, undefined);
    assert.equal((await client.ask('GET', `${base}/counters/${id}/history`, { headers: asAda })).status, 404);
    const [deleted, updated, created, ...others] = await history(`counters/${id}/history`);
    assert.deepEqual(others, []);
    assert.deepEqual([deleted?.change, deleted?.changes], ['deleted', {}]);
    assert.deepEqual(updated?.changes, { count: { before: 1, after: 2 } });
    assert.deepEqual(updated?.actor, { kind: 'administrator-key', id: 'administrator' });
    assert.equal(updated?.at, patched.updatedAt);
    assert.deepEqual(created?.changes, { count: { after: 1 } });
    assert.deepEqual([created?.change, created?.actor], ['created', { kind: 'user', id: adaId }]);
    assert.match(String(created?.requestId), /-/);
  });

  test('says what it takes instead of fields', async () => {
    const { id } = await write('POST', 'counters', { count: 1 });
    for (const query of ['fields=etag', 'sort=id', 'count=1']) {
      const answer = await client.ask('GET', `${base}/counters/${id}/history?${query}`, {
        headers: asAdministrator,
      });
      assert.equal(answer.status, 400, query);
      assert.match(answer.body, /this list takes only limit, page and cursor"/);
    }
    const ordered = await client.ask('GET', `${base}/counters/${id}/history?order=asc`, {
      headers: asAdministrator,
    });
    assert.deepEqual(
      [ordered.status, ordered.json().error],
      [400, 'a history is newest first; leave out order'],
    );
  });

  test('leaves out what is hidden, in the version or now, and versions that the caller may not read', async () => {
    const made = await write('POST', 'tickets', {
      title: 'draft text',
      secret: 's1',
      note: 'n1',
      status: 'told',
    });
    const path = `tickets/${made.id}`;
    await write('PATCH', path, { title: 'published', open: true, secret: 's2', note: 'n2' });
    await write('PATCH', path, { note: 'n3', status: null, secret: 's3' });
    await write('PATCH', path, { title: 'more' });
    const seen = await history(`${path}/history`, asAda);
    assert.equal(JSON.stringify(seen).match(/draft|"s\d"|"n\d"|secret|note/), null, JSON.stringify(seen));
    assert.deepEqual(
      seen.map(({ changes }) => changes),
      [
        { title: { before: 'published', after: 'more' } },
        { status: { before: 'told' } },
        { title: { after: 'published' }, status: { after: 'told' }, open: { after: true } },
      ],
    );
    assert.deepEqual(seen[0]?.actor, { kind: 'administrator-key', id: 'administrator' });
    assert.equal(seen[0]?.requestId, undefined);
    await write('PATCH', path, { status: 'told' });
    const told = await history(`${path}/history`, asAda);
    assert.deepEqual(told[0]?.changes, { status: { after: 'told' }, note: { after: 'n3' } });
    assert.deepEqual(told[2]?.changes.note, { before: 'n2' }, 'hidden in the version after');
    assert.equal((await history(`${path}/history`)).length, 5);
    await write('PATCH', path, { open: false });
    assert.equal((await client.ask('GET', `${base}/${path}/history`, { headers: asAda })).status, 404);
    assert.equal((await client.ask('GET', `${base}/${path}/history`)).status, 404);
    assert.equal(
      (await client.ask('GET', `${base}/tickets/none/history`, { headers: asAdministrator })).status,
      404,
    );
  });

  test('is paged like every list, over 1,000 changes of one row; an altered cursor is 400, and so is one of another document', async () => {
    const { id } = await write('POST', 'counters', { count: 0 });
    const other = await write('POST', 'counters', { count: 0 });
    let next = 1;
    const worker = async () => {
      for (let count = next++; count <= 1000; count = next++)
        await write('PATCH', `counters/${id}`, { count });
    };
    await Promise.all(Array.from({ length: 16 }, worker));
    const ids = new Set<string>();
    let values = 0;
    let path: string | undefined = `counters/${id}/history?limit=100`;
    let cursor = '';
    let last: unknown;
    while (path !== undefined) {
      const answer = await client.ask('GET', `${base}/${path}`, { headers: asAdministrator });
      assert.equal(answer.status, 200, answer.body);
      for (const version of answer.json().items as Version[]) {
        ids.add(version.id);
        if (last !== undefined)
          assert.equal(version.changes.count?.after, last, 'each begins where the other ended');
        last = version.changes.count?.before;
        values += 1;
      }
      const found = answer.json().nextCursor as string | null;
      if (found !== null) cursor = found;
      path = found === null ? undefined : `counters/${id}/history?limit=100&cursor=${found}`;
    }
    assert.deepEqual([ids.size, values], [1001, 1001]);
    const altered = `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const [of, with_] of [
      [id, altered],
      [other.id, cursor],
    ]) {
      const answer = await client.ask('GET', `${base}/counters/${of}/history?cursor=${with_}`, {
        headers: asAdministrator,
      });
      assert.equal(answer.status, 400, answer.body);
    }
    const counted = await client.ask('GET', `${base}/counters/${id}/history?limit=1`, {
      headers: { ...asAdministrator, Prefer: 'count=exact' },
    });
    assert.equal(counted.headers['x-total-count'], '1001');
    assert.match(String(counted.headers.link), /history\?limit=1&cursor=.*rel="next"/);
    for (const query of ['limit=101', 'sort=at', 'change=created', 'limit=0']) {
      const answer = await client.ask('GET', `${base}/counters/${id}/history?${query}`);
      assert.equal(answer.status, 400, query);
    }
  });
});
