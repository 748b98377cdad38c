/** Live lists over each way to hear of events: what they show is what the server would list, whatever is lost on the way. */
import assert from 'node:assert/strict';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import type { LiveList } from '../../src/client/index.ts';
import { adminKey } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { until } from '../harness/until.ts';
import { clientOf, type ShopClient } from './client-of.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const folder = temporaryFolder();
// A test opens more connections than a page does.
const env = {
  COMITY_REALTIME_ATTEMPTS_MAX: '1000',
  COMITY_REALTIME_ATTEMPT_MS: '1',
  COMITY_RATE_LIMIT_READS: '0',
  COMITY_RATE_LIMIT_WRITES: '0',
};
let program: RunningServer = await startServer({ folder, env });
after(() => program.stop());
const proxy = await startFaultyProxy(() => program.port, { after });
const writer = clientOf(`${program.url}/api/v1`);
const clients: ShopClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

beforeEach(() => {
  proxy.fault = () => undefined;
});

type Names = LiveList<{ readonly items: readonly { readonly name: string }[] }>;
const namesOf = ({ page }: Names) => page.items.map(({ name }) => name);

function shows(list: Names, ...names: readonly string[]): Promise<void> {
  return until(
    () => namesOf(list).join() === names.join(),
    `${names.join()} in place of ${namesOf(list).join()}, ${list.state}`,
  );
}

async function restart(): Promise<void> {
  const { port } = program;
  await program.stop();
  program = await startServer({ folder, env: { ...env, COMITY_PORT: String(port) } });
}

let groups = 0;
/** A category of its own for each test, so that lists are apart. */
async function newCategory() {
  groups += 1;
  const { id: categoryId } = await writer.categories.create({ name: `Group ${groups}` });
  const add = (name: string, price: number) => writer.products.create({ name, price, categoryId });
  return { categoryId, add };
}

const transports = ['socket', 'stream', 'poll'] as const;
const isHearing = ({ method, url }: { readonly method: string; readonly url: string }) =>
  method === 'UPGRADE' || /\/events\?.*after=/.test(url);

for (const transport of transports) {
  const open = (): ShopClient => {
    const client = clientOf(proxy.baseUrl, { key: adminKey, transport });
    clients.push(client);
    return client;
  };

  describe(`a live list over ${transport}`, () => {
    it('holds its filter, its order and its limit', async () => {
      const { categoryId, add } = await newCategory();
      const [cup, jug] = [await add('cup', 3), await add('jug', 7)];
      await add('bin', 60);
      const list = await open().products.live({
        filter: { categoryId, price: { lt: 50 } },
        sort: ['-price'],
        fields: ['name', 'price'],
        limit: 3,
      });
      assert.deepEqual([list.state, namesOf(list)], ['live', ['jug', 'cup']]);
      let changes = 0;
      const leave = list.subscribe(() => {
        changes += 1;
      });
      const pan = await add('pan', 5);
      await shows(list, 'jug', 'pan', 'cup');
      assert.deepEqual(Object.keys(list.page.items[1] ?? {}).sort(), ['etag', 'id', 'name', 'price']);
      await add('lid', 1);
      await writer.products.update(cup.id, { price: 40 });
      await shows(list, 'cup', 'jug', 'pan');
      await writer.products.update(jug.id, { price: 55 });
      await shows(list, 'cup', 'pan', 'lid');
      await writer.products.delete(pan.id);
      await shows(list, 'cup', 'lid');
      assert.ok(changes >= 4);
      leave();
      // What it shows can be changed without a read.
      const [first] = list.page.items;
      assert.ok(first !== undefined);
      const changed = await open().products.update(first, { stock: 1 });
      assert.deepEqual([changed.name, changed.stock], ['cup', 1]);
      const ofIt = proxy.passed.filter(({ url }) => url.endsWith(`/products/${cup.id}`));
      assert.deepEqual(
        ofIt.map(({ method, headers }) => [method, headers['if-match']]),
        [['PATCH', first.etag]],
      );
      list.stop();
      assert.equal(list.state, 'ended');
    });

    it('misses nothing that happens between the opening and the read, and goes back to nothing earlier', async () => {
      const { categoryId, add } = await newCategory();
      const cup = await add('cup', 3);
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      proxy.fault = ({ url }) => (url.includes('/products?') ? held : undefined);
      const opening = open().products.live({ filter: { categoryId }, sort: ['price'] });
      await until(() => proxy.passed.some(({ url }) => url.includes(categoryId)));
      await add('jug', 5);
      await writer.products.update(cup.id, { price: 9 });
      release();
      const list = await opening;
      assert.deepEqual(namesOf(list), ['jug', 'cup']);
      const seen: number[] = [];
      list.subscribe(() => seen.push(list.page.items.find(({ id }) => id === cup.id)?.price ?? 0));
      await add('lid', 1);
      await shows(list, 'lid', 'jug', 'cup');
      assert.ok(seen.every((price) => price === 9));
    });

    it('is current again after the connection was cut and refused with 503', async () => {
      const { categoryId, add } = await newCategory();
      await add('cup', 3);
      const list = await open().products.live({ filter: { categoryId }, sort: ['price'] });
      let refusals = 2;
      proxy.fault = (request) => {
        if (!isHearing(request) || refusals === 0) return undefined;
        refusals -= 1;
        return { status: 503, headers: { 'Retry-After': '0' } };
      };
      proxy.cut();
      await add('jug', 5);
      await shows(list, 'cup', 'jug');
      await until(() => list.state === 'live');
      assert.equal(refusals, 0);
    });

    it('is current again after a restart of the program', async () => {
      const { categoryId, add } = await newCategory();
      const cup = await add('cup', 3);
      const list = await open().products.live({ filter: { categoryId }, sort: ['price'] });
      await restart();
      await writer.products.delete(cup.id);
      await add('jug', 5);
      await shows(list, 'jug');
      await until(() => list.state === 'live');
    });

    it('leaves to the server what it cannot tell itself', async () => {
      const { categoryId, add } = await newCategory();
      const client = open();
      const like = await client.products.live({
        filter: { categoryId, name: { like: '%a%' } },
        sort: ['name'],
      });
      const found = await client.products.live({ filter: { categoryId }, q: 'pan' });
      const made = await client.products.live({ filter: { categoryId, createdAt: { gte: 'today-P1D' } } });
      const expanded = await client.products.live({
        filter: { 'categoryId.name': 'Renamed' },
        expand: ['categoryId'],
      });
      await add('pan', 1);
      await add('cup', 2);
      await shows(like, 'pan');
      await shows(found, 'pan');
      await shows(made, 'pan', 'cup');
      assert.deepEqual(namesOf(expanded), []);
      await writer.categories.update(categoryId, { name: 'Renamed' });
      await until(() => expanded.page.items.length === 2);
      assert.equal(expanded.page.included.categories?.[categoryId]?.name, 'Renamed');
      await writer.categories.update(categoryId, { name: 'Other' });
      await until(() => expanded.page.items.length === 0);
    });

    it('ends where the credential does, without another', async () => {
      let ended = 0;
      const client = clientOf(proxy.baseUrl, { transport, onSessionEnd: () => (ended += 1) });
      clients.push(client);
      const email = `ada-${transport}@shop.example`;
      const password = 'correct horse battery staple';
      await client.auth.register({ email, password });
      await client.notes.create({ text: 'mine' });
      const list = await client.notes.live();
      assert.equal(list.page.items.length, 1);
      const elsewhere = clientOf(proxy.baseUrl, {});
      await elsewhere.auth.login({ email, password });
      await elsewhere.auth.logout({ everywhere: true });
      await until(() => list.state === 'ended');
      assert.equal((list.error as { readonly status?: number } | undefined)?.status, 401);
      assert.equal(ended, 1);
      const sent = proxy.passed.length;
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.equal(proxy.passed.length, sent);
    });

    it('removes a document that its reader may no longer read', async () => {
      const reader = clientOf(proxy.baseUrl, { transport });
      clients.push(reader);
      const made = await writer.articles.create({ title: 'Seen', published: true });
      const list = await reader.articles.live({ filter: { title: 'Seen' } });
      assert.equal(list.page.items.length, 1);
      await writer.articles.update(made.id, { published: false });
      await until(() => list.page.items.length === 0);
      await writer.articles.update(made.id, { published: true });
      await until(() => list.page.items.length === 1);
      await writer.articles.delete(made.id);
      await until(() => list.page.items.length === 0);
    });

    it('shows what the server lists, after any writes', async () => {
      const { categoryId } = await newCategory();
      const client = open();
      const queries = [
        { filter: { categoryId }, sort: ['-price', 'name'], limit: 1000 },
        { filter: { categoryId, price: { gte: 3, lt: 8 } }, sort: ['name'], limit: 5 },
        { filter: { categoryId, or: [{ stock: null }, { stock: { gt: 2 } }] }, sort: ['stock'], limit: 1000 },
        { filter: { categoryId, name: { ne: 'b' }, not: { price: 2 } }, limit: 1000 },
        { filter: { categoryId, tags: 'x' }, sort: ['-createdAt'], limit: 4 },
      ] as const;
      const lists = await Promise.all(queries.map((query) => client.products.live(query)));
      const random = (below: number): number => Math.floor(Math.random() * below);
      const names = ['a', 'b', 'B', 'é', '\u{1F600}', '\uFFFD', 'aa', '10', '9'];
      const fields = () => ({
        name: names[random(names.length)] ?? '',
        price: random(10),
        ...(random(2) === 0 ? {} : { stock: random(5) }),
        ...(random(2) === 0 ? {} : { tags: ['x', 'y'].slice(random(2)) }),
      });
      const ids: string[] = [];
      for (let count = 0; count < 60; count += 1) {
        const id = ids[random(ids.length)];
        const way = id === undefined ? 0 : random(4);
        if (way === 0 || id === undefined)
          ids.push((await writer.products.create({ ...fields(), categoryId })).id);
        else if (way === 3) await writer.products.delete(ids.splice(ids.indexOf(id), 1)[0] ?? '');
        else await writer.products.update(id, { ...fields(), ...(random(2) === 0 ? { stock: null } : {}) });
      }
      const expected = await Promise.all(queries.map((query) => writer.products.list(query)));
      const plain = (items: readonly object[]) => JSON.stringify(items);
      await until(
        () => lists.every((list, at) => plain(list.page.items) === plain(expected[at]?.items ?? [])),
        'what is listed is shown',
      );
    });
  });
}

describe('what does not come through', () => {
  it('is replaced: a WebSocket by a stream, and that by polling', async () => {
    const { categoryId, add } = await newCategory();
    proxy.fault = ({ method, headers }) => {
      if (method === 'UPGRADE') return { status: 403 };
      return headers.accept === 'text/event-stream' ? { status: 200, body: 'buffered' } : undefined;
    };
    const client = clientOf(proxy.baseUrl, { key: adminKey, transport: 'socket' });
    clients.push(client);
    const list = await client.products.live({ filter: { categoryId } });
    await add('cup', 1);
    await shows(list, 'cup');
    assert.ok(proxy.passed.some(({ headers }) => headers.prefer === 'wait=20'));
  });
});

describe('following the log', () => {
  it('gives every event once, over cuts and a restart', async () => {
    for (const transport of transports) {
      const client = clientOf(proxy.baseUrl, { key: adminKey, transport });
      clients.push(client);
      const controller = new AbortController();
      const reason = new Error('enough');
      const names: string[] = [];
      const reading = (async () => {
        const { signal } = controller;
        for await (const event of client.events.follow({ types: ['categories.created'] }, { signal }))
          if (event.type === 'categories.created') names.push(event.data.object.name);
      })();
      const sent = proxy.passed.length;
      await until(() =>
        proxy.passed.slice(sent).some((request) => isHearing(request) && !request.url.includes('after=now')),
      );
      const expected: string[] = [];
      for (let count = 0; count < 6; count += 1) {
        const name = `${transport} ${count}`;
        expected.push(name);
        await writer.categories.create({ name });
        if (count % 2 === 0) proxy.cut();
        if (count === 3) await restart();
      }
      await until(() => names.length >= expected.length, `all of ${expected.length} events`);
      assert.deepEqual(names, expected);
      controller.abort(reason);
      await assert.rejects(reading, reason);
    }
  });

  it('does not lose what its reader has not taken yet', async () => {
    const streams: (AbortSignal | null | undefined)[] = [];
    const client = clientOf(proxy.baseUrl, {
      ...{ key: adminKey, transport: 'stream' },
      fetch: (url, init) => {
        if (url.includes('type=')) streams.push(init.signal);
        return fetch(url, init);
      },
    });
    clients.push(client);
    const events = client.events.follow({ types: ['categories.created'] })[Symbol.asyncIterator]();
    const first = events.next();
    await until(() => streams.length === 1);
    for (let count = 0; count < 3; count += 1) {
      const items = Array.from({ length: 600 }, (_, at) => ({ name: `${count}.${at}` }));
      await writer.request('POST', '/categories/bulk', { body: { items } });
    }
    // It hears no more than 1,000 events ahead of its reader.
    await until(() => streams[0]?.aborted === true);
    const seen = new Set<string>();
    while (seen.size < 1_800) {
      const { value } = await (seen.size === 0 ? first : events.next());
      if (value?.type === 'categories.created') seen.add(value.data.object.name);
    }
    await events.return?.();
    assert.equal(streams.length, 2);
  });

  it('says that events were missed, and where to go on', async () => {
    for (const transport of transports) {
      const client = clientOf(proxy.baseUrl, { key: adminKey, transport });
      const events = client.events.follow({ after: 'evt_unknown' })[Symbol.asyncIterator]();
      await assert.rejects(events.next(), { code: 'position_expired', status: 410 });
    }
  });
});
