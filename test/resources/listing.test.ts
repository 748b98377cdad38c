/** What lists keep between requests: pages from the second request on, and the results that Content-Location names. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { parseQueryString } from '../../src/http/syntax/query-string.ts';
import { SeenBefore } from '../../src/memory/octet-cache.ts';
import { always } from '../../src/model/filter.ts';
import { anonymous } from '../../src/model/principal.ts';
import { createListCaches, Listing } from '../../src/resources/collection/listing.ts';
import { compileForm } from '../../src/resources/query/form-query.ts';
import { keptRow } from '../../src/store/store.ts';
import { tableOf } from '../../src/store-tables.ts';
import { openEmbedded } from '../harness/stores.ts';

async function open(context: TestContext) {
  const things = resolveCollections({ things: { schema: Type.Object({ name: Type.String() }) } }).get(
    'things',
  );
  assert.ok(things);
  const store = await openEmbedded(context, [tableOf(things)]);
  const { settings } = loadSettings({}, {}, {});
  const caches = createListCaches(settings);
  const listingWith = (asked: SeenBefore) =>
    new Listing(
      {
        ...{ store, settings, caches: { ...caches, asked }, pageLine: undefined },
        mac: (text) => hash('sha256', text, 'base64url').slice(0, 22),
      },
      {
        ...{ table: 'things', fields: things.fields, searched: false, path: '/things', cacheControl: '' },
        permission: () => 'granted',
        visibility: () => always,
      },
    );
  const add = (id: string) => {
    const doc = JSON.stringify({ id, name: 'é' });
    const next = keptRow(doc, null, 0, 0);
    const change = { table: 'things', id, expect: { absent: true } as const, next };
    return store.commit({ changes: [change], events: [] });
  };
  await add('a');
  return { listing: listingWith(caches.asked), listingWith, caches, settings, add };
}

type Opened = Awaited<ReturnType<typeof open>>;

async function ask({ listing, settings }: Opened, query: string, keepsFirst = false) {
  const prepared = listing.prepare(query, { principal: anonymous, now: 0 }, (target) =>
    compileForm(parseQueryString(query) ?? [], target, settings),
  );
  assert.ok(!('faults' in prepared));
  return {
    prepared,
    page: await listing.page(prepared, anonymous, { from: 'start' }, { party: '', keepsFirst }),
  };
}

const sizes = ({ caches: { pages, plans, prepared } }: Opened) => [prepared.size, plans.size, pages.size];

test('keeps nothing of a list that is asked once, and its page from the second request on', async (context) => {
  const opened = await open(context);
  const first = await ask(opened, 'limit=1');
  assert.deepEqual(sizes(opened), [0, 0, 0]);
  const second = await ask(opened, 'limit=1');
  assert.deepEqual(sizes(opened), [1, 1, 1]);
  const third = await ask(opened, 'limit=1');
  assert.equal(third.page, second.page);
  assert.deepEqual(second.page, first.page);
  await opened.add('b');
  assert.notDeepEqual((await ask(opened, 'limit=1')).page, second.page, 'a write ends it');
});

test('keeps the first result of a QUERY, which Content-Location names, over a write', async (context) => {
  const opened = await open(context);
  const { page, prepared } = await ask(opened, 'limit=1', true);
  await opened.add('b');
  const kept = opened.listing.kept(prepared, { from: 'start' }, page.tag);
  assert.equal(String(kept?.body), page.body);
  assert.equal(kept?.nextCursor, page.nextCursor);
});

test('answers the second time with the same text', async (context) => {
  const opened = await open(context);
  const { page } = await ask(opened, 'limit=1', true);
  for (const again of [await ask(opened, 'limit=1', true), await ask(opened, 'limit=1', true)]) {
    assert.deepEqual(again.page, page);
  }
});

test('keeps a list that is cached, whatever else is asked between', async (context) => {
  const opened = await open(context);
  const asked = { ...opened, listing: opened.listingWith(new SeenBefore(1)) };
  await ask(asked, 'limit=1');
  const { page } = await ask(asked, 'limit=1');
  await ask(asked, 'limit=2');
  assert.equal((await ask(asked, 'limit=1')).page, page);
});
