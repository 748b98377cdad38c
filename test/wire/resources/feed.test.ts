/**
 * The feed of events (§6.15): pages in the order of commits that miss nothing while many write, the places from which it goes on, and
 * empty pages that are held.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { asAdministrator, base, bearer, register, serveAccounts } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { createFollowers } from '../../harness/event-followers.ts';
import { followFeed, nameOf, readFeed } from '../../harness/feed-follower.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/leaving.config.ts', import.meta.url));

type Headers = Readonly<Record<string, string>>;

describeOnEachStore('the feed', async (engine) => {
  const followers = createFollowers(() => program);
  after(() => followers.close());
  const env = { COMITY_EVENTS_WAIT_SECONDS_MAX: '2', COMITY_STREAMS_MAX: '12' };
  const { program, client } = await serveAccounts({ config, engine, env });
  const ada = await register(client, 'ada@feed.example', 'correct horse battery');
  const [asAda, adaId] = [bearer(ada.token), ada.userId];

  const write = async (method: string, path: string, json?: unknown): Promise<string> => {
    const answer = await client.ask(method, `${base}/${path}`, {
      headers: asAdministrator,
      ...(json === undefined ? {} : { json }),
    });
    assert.ok(answer.status < 300, `${answer.status} ${answer.body}`);
    return method === 'DELETE' ? '' : String(answer.json().id);
  };
  const article = (keeper: string, open = false) => ({ text: 't', open, keeper });
  /** Streams and held pages. */
  const open = async (): Promise<number> => {
    const answer = await client.ask('GET', `${base}/meta/connections`, { headers: asAdministrator });
    return (answer.json().items as unknown[]).length;
  };
  const page = (query: string, headers: Headers = asAdministrator) => readFeed(program.url, query, headers);

  test('three followers with pages of any length get what the stream has, in its order, while 12 writers write', async () => {
    const readers = [{}, asAda, asAdministrator];
    const streams = await Promise.all(readers.map((headers) => followers.stream(headers)));
    const places = await Promise.all(readers.map((headers) => page('after=now', headers)));
    let writing = true;
    const limits = [1, 3, 20, 1000];
    const feeds = readers.map((headers) =>
      followFeed(() => ({ url: program.url, limit: limits[Math.floor(Math.random() * 4)] ?? 1 }), {
        headers,
        isOver: () => !writing,
      }),
    );
    const keepers = [adaId, 'nobody', 'another'];
    await Promise.all(
      Array.from({ length: 12 }, async (_, writer) => {
        for (let round = 0; round < 6; round += 1) {
          const id = await write(
            'POST',
            'articles',
            article(keepers[(writer + round) % 3] ?? '', round === 0),
          );
          await write('PATCH', `articles/${id}`, { keeper: keepers[writer % 3], open: false });
          if (round % 2 === 0) await write('DELETE', `articles/${id}`);
        }
      }),
    );
    const last = await write('POST', 'articles', article('nobody', true));
    writing = false;
    for (const [at, stream] of streams.entries()) {
      await until(() => stream.some(({ data }) => data.includes(last)), 'the stream has the last event');
      const streamed = stream.map(({ data }) => nameOf(JSON.parse(data)));
      const polled = (await feeds[at]) ?? [];
      assert.equal(new Set(polled).size, polled.length, 'nothing twice');
      // The stream begins with the next event, the feed with the oldest.
      assert.deepEqual(polled.slice(-streamed.length), streamed);
      const fromNow = await page(`after=${places[at]?.nextCursor}&limit=1000`, readers[at]);
      assert.deepEqual(fromNow.items.map(nameOf), streamed);
      assert.ok(streamed.length > 20);
    }
    followers.close();
  });

  test('a list gives the place from which the feed, the stream and a WebSocket tell what happened since', async () => {
    await write('POST', 'articles', article('nobody', true));
    const list = await fetch(`${program.url}${base}/articles?limit=1`);
    const place = String(list.headers.get('Comity-Position'));
    const query = `after=${encodeURIComponent(place)}`;
    const queried = await fetch(`${program.url}${base}/articles`, {
      method: 'QUERY',
      headers: { 'Content-Type': 'application/json' },
      body: '{"limit":1}',
    });
    assert.ok(queried.headers.has('Comity-Position'));
    const id = await write('POST', 'articles', article('nobody', true));
    await write('POST', 'articles', article('nobody'));
    const { items } = await page(query, {});
    assert.deepEqual(
      items.map(({ data }) => (data as { object: { id: string } }).object.id),
      [id],
    );
    const [wanted] = items.map(nameOf);
    const stream = await followers.stream({}, `?${query}`);
    const resumed = await followers.stream({ 'Last-Event-ID': place });
    const frames = await followers.socket({}, place);
    await until(() => stream.length > 0 && resumed.length > 0 && frames.length > 1, 'each tells it');
    assert.deepEqual([stream[0]?.id, resumed[0]?.id], [wanted, wanted]);
    assert.equal(JSON.parse(frames[1] ?? '').event.id, wanted);
    followers.close();
  });

  test('a 304 and an export give the place of now, which a cache keeps with the list that it has', async () => {
    const lists = {
      'a list': { method: 'GET', path: 'articles?limit=1' },
      'a list with what it refers to': { method: 'GET', path: 'books?limit=1&expand=shelfId' },
      'a QUERY': { method: 'QUERY', path: 'articles', body: '{"limit":1}' },
      'an export': { method: 'GET', path: 'articles/bulk?limit=1' },
    } as const;
    for (const [name, { path, ...init }] of Object.entries(lists)) {
      const ask = (fields: Record<string, string> = {}) =>
        fetch(`${program.url}${base}/${path}`, {
          ...init,
          headers: {
            ...asAdministrator,
            ...('body' in init ? { 'Content-Type': 'application/json' } : {}),
            ...fields,
          },
        });
      const first = await ask();
      assert.equal(first.status, 200, `${name}: ${await first.text()}`);
      await write('POST', 'drafts', { text: 't' });
      const place = (await page('after=now')).nextCursor;
      const again = await ask({ 'If-None-Match': String(first.headers.get('ETag')) });
      assert.deepEqual([again.status, again.headers.get('Comity-Position')], [304, place], name);
      assert.ok(first.headers.has('Comity-Position'), name);
    }
  });

  test('filters, selects and bounds its pages, and refuses an order or another position', async () => {
    const from = (await page('after=now')).nextCursor;
    const ids = [];
    for (let index = 0; index < 3; index += 1) ids.push(await write('POST', 'articles', article('nobody')));
    await write('DELETE', `articles/${ids[0]}`);
    const deleted = await page(`after=${from}&type=articles.deleted&fields=type,data.object.id`);
    assert.deepEqual(deleted.items, [{ type: 'articles.deleted', data: { object: { id: ids[0] } } }]);
    const first = await page(`after=${from}&limit=2`);
    assert.equal(first.items.length, 2);
    assert.match(String(first.headers.get('Link')), /after=[^>]+>; rel="next"/);
    const rest = await page(`limit=1000&after=${first.nextCursor}`);
    assert.equal(rest.items.length, 2);
    assert.equal(rest.headers.get('Cache-Control'), 'no-store');
    const types = Array.from({ length: 120 }, (_, n) => `articles.deleted${n}`);
    const long = `limit=1&type[in]=articles.created,${types.join(',')}`;
    const unlinked = await page(`after=${from}&${long}`);
    assert.deepEqual([unlinked.items.length, unlinked.headers.has('Link')], [1, false]);
    const second = await page(`after=${unlinked.nextCursor}&${long}`);
    assert.deepEqual(second.items.map(nameOf), [nameOf(first.items[1] ?? {})]);
    const empty = await page(`after=${rest.nextCursor}`);
    assert.deepEqual([empty.items, empty.headers.has('Link')], [[], false]);
    const lastId = nameOf(rest.items[1] ?? {});
    assert.deepEqual((await page(`after=${nameOf(first.items[1] ?? {})}`)).items.map(nameOf).at(-1), lastId);
    for (const [query, wanted] of [
      ['sort=-created', 'sort'],
      ['order=desc', 'order'],
      ['page=2', 'page'],
      ['cursor=abc', 'cursor'],
      ['after=now', 'more than once'],
      ['limit=1001', 'limit'],
      ['nothing=1', 'nothing'],
    ] as const) {
      const answer = await client.ask('GET', `${base}/events?after=now&${query}`, {
        headers: asAdministrator,
      });
      assert.equal(answer.status, 400, query);
      assert.ok(answer.body.includes(wanted), answer.body);
    }
  });

  test('a stream refuses what orders, bounds or places a page', async () => {
    const headers = { ...asAdministrator, Accept: 'text/event-stream' };
    const queries = ['sort=-id', 'order=desc', 'limit=1', 'per_page=1', 'page=2', 'cursor=abc'];
    for (const query of queries.flatMap((each) => [each, `after=&${each}`])) {
      const answer = await client.ask('GET', `${base}/events?${query}`, { headers });
      assert.equal(answer.status, 400, query);
      assert.match(answer.body, /"code":"query_parameter_invalid"/);
      const [, name] = /([a-z_]+)=[^=]+$/.exec(query) ?? [];
      assert.ok(answer.body.includes(`leave out ${name}`), answer.body);
    }
    await followers.stream(asAdministrator, '?type=articles.created&fields=type');
    followers.close();
  });

  test('a place that is unknown is answered 410 in the feed, and with a reset by the stream', async () => {
    const { nextCursor } = await page('after=now');
    const altered = `${nextCursor.slice(0, -2)}${nextCursor.endsWith('A') ? 'BB' : 'AA'}`;
    for (const unknown of ['evt_unknown', altered]) {
      const answer = await client.ask('GET', `${base}/events?after=${unknown}`, {
        headers: asAdministrator,
      });
      assert.deepEqual([answer.status, answer.json().code], [410, 'position_expired']);
      const heard = await followers.stream(asAdministrator, `?after=${unknown}`);
      await until(() => heard.length > 0, 'the reset');
      assert.equal(heard[0]?.event, 'reset');
    }
    followers.close();
    await until(async () => (await open()) === 0, 'the streams are closed');
  });

  test('holds an empty page until something that the caller may read follows, at most for the bound', async () => {
    const { nextCursor } = await page('after=now', asAda);
    const held = page(`after=${nextCursor}`, { ...asAda, Prefer: 'wait=2' });
    await until(async () => (await open()) > 0, 'the page is held');
    await write('POST', 'articles', article('nobody'));
    const id = await write('POST', 'articles', article(adaId));
    const found = await held;
    assert.deepEqual(
      found.items.map(({ data }) => (data as { object: { id: string } }).object.id),
      [id],
    );
    assert.equal(found.headers.get('Preference-Applied'), 'wait=2');
    const began = performance.now();
    const empty = await page(`after=${found.nextCursor}`, { ...asAda, Prefer: `wait=${'9'.repeat(20)}` });
    assert.deepEqual(empty.items, []);
    assert.equal(empty.headers.get('Preference-Applied'), 'wait=2');
    assert.ok(performance.now() - began >= 1990);
    const unheld = await page(`after=${found.nextCursor}`, { ...asAda, Prefer: 'wait=0' });
    assert.equal(unheld.headers.has('Preference-Applied'), false);
    const head = await fetch(`${program.url}${base}/events?after=${found.nextCursor}`, {
      method: 'HEAD',
      headers: { ...asAda, Prefer: 'wait=2' },
    });
    assert.equal(head.status, 200);
    assert.equal(await open(), 0, 'nothing is held for HEAD');
  });

  test('pages that are held count as streams: 503 beyond the limit, and a client that leaves frees its place', async () => {
    const { nextCursor } = await page('after=now', {});
    const abort = new AbortController();
    const asked = () =>
      fetch(`${program.url}${base}/events?after=${nextCursor}`, {
        headers: { Prefer: 'wait=2' },
        signal: abort.signal,
      });
    const held = await Promise.all(Array.from({ length: 12 }, asked));
    const refused = await asked();
    assert.equal(refused.status, 503);
    assert.match(String(refused.headers.get('Retry-After')), /^\d+$/);
    await refused.text();
    abort.abort();
    await Promise.allSettled(held.map((answer) => answer.text()));
    await until(async () => (await open()) === 0, 'the places are free');
  });

  test('ends a held page with the session of its caller, and every held page when the program drains', async () => {
    const grace = await register(client, 'grace@feed.example', 'correct horse battery');
    const { nextCursor } = await page('after=now', {});
    const query = `after=${nextCursor}`;
    const own = page(query, { ...bearer(grace.token), Prefer: 'wait=2' });
    const others = page(query, { Prefer: 'wait=2' });
    await until(async () => (await open()) === 2, 'both are held');
    const out = await client.ask('POST', `${base}/auth/logout`, { headers: bearer(grace.token) });
    assert.equal(out.status, 204);
    assert.deepEqual((await own).items, []);
    const again = await client.ask('GET', `${base}/events?${query}`, { headers: bearer(grace.token) });
    assert.equal(again.status, 401);
    await program.stop();
    const drained = await others;
    assert.deepEqual(drained.items, []);
  });
});
