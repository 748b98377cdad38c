/** Pages that end by octets (`pageBytesMax`): every list and QUERY gives what fits, at least one item, and a cursor to the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOfFile } from '../../harness/running-server.ts';

const pageBytesMax = 4096;
const notes = '/api/v1/notes';
const ids: string[] = [];

const program = await serverOfFile({ env: { COMITY_PAGE_BYTES_MAX: String(pageBytesMax) } });
for (let index = 0; index < 12; index += 1) {
  // The sixth alone is longer than a page.
  const text = String(index).padStart(index === 5 ? 6000 : 900, '-');
  const made = await program.send('POST', notes, { json: { text } });
  assert.equal(made.status, 201);
  ids.push(String(made.json().id));
}

type Page = { readonly items: readonly { readonly id: string }[]; readonly nextCursor: string | null };

/** Every page, by `nextCursor`. */
async function pagesOf(ask: (cursor: string | null) => Promise<Page>): Promise<readonly Page[]> {
  const pages: Page[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = await ask(cursor);
    pages.push(page);
    cursor = page.nextCursor;
    if (cursor === null) return pages;
  }
}

function assertWhole(pages: readonly Page[]): void {
  assert.deepEqual(
    pages.flatMap(({ items }) => items.map(({ id }) => id)),
    ids,
  );
  for (const { items } of pages) {
    const before = items.slice(0, -1).reduce((sum, item) => sum + JSON.stringify(item).length, 0);
    assert.ok(items.length > 0 && before < pageBytesMax);
  }
}

test('a list ends its page by octets before its limit, and nextCursor goes on', async () => {
  const pages = await pagesOf(async (cursor) => {
    const answer = await program.send(
      'GET',
      `${notes}?limit=1000${cursor === null ? '' : `&cursor=${cursor}`}`,
    );
    assert.equal(answer.status, 200);
    const page = answer.json() as Page;
    assert.equal(String(answer.headers.link).includes('rel="next"'), page.nextCursor !== null);
    return page;
  });
  assertWhole(pages);
  assert.equal(pages.length, 4);
});

test('a QUERY and a sort that no index serves end their pages by octets too', async () => {
  for (const sort of ['id', 'text']) {
    const pages = await pagesOf(async (cursor) => {
      const answer = await program.send('QUERY', notes, {
        json: { limit: 1000, sort: [sort === 'id' ? 'id' : '-text'], ...(cursor === null ? {} : { cursor }) },
      });
      assert.equal(answer.status, 200, answer.body.slice(0, 300));
      return answer.json() as Page;
    });
    assert.equal(pages.flatMap(({ items }) => items).length, ids.length);
    assert.ok(pages.length >= 3);
    if (sort === 'id') assertWhole(pages);
  }
});

test('the event log ends its pages by octets', async () => {
  const pages = await pagesOf(async (cursor) => {
    const answer = await program.send(
      'GET',
      `/api/v1/events?limit=100${cursor === null ? '' : `&cursor=${cursor}`}`,
    );
    assert.equal(answer.status, 200);
    return answer.json() as Page;
  });
  assert.equal(pages.flatMap(({ items }) => items).length, ids.length);
  assert.ok(pages.length > 3);
});

test('a count and the pages by number are those of the limit, whatever octets end', async () => {
  const answer = await program.send('GET', `${notes}?limit=6&page=2`, { headers: { Prefer: 'count=exact' } });
  assert.equal(answer.headers['x-total-count'], '12');
  const { items } = answer.json() as Page;
  assert.deepEqual(
    items.map(({ id }) => id),
    ids.slice(6, 6 + items.length),
  );
  assert.equal(items.length, 5, 'octets ended it before its six');
});
