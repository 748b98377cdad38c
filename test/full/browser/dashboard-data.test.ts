/** The data of the dashboard in a real browser: references, history, deleted documents, many rows, faults in JSON, exports. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, reloadDashboard, violationsOn } from './dashboard-window.ts';

const books = '/api/v1/books';

let program: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let keeper: string;

before(async () => {
  const config = fileURLToPath(new URL('./fixtures/library.config.ts', import.meta.url));
  program = await startServer({ config });
  for (const name of ['Ursula Le Guin', 'Stanisław Lem', 'Octavia Butler']) await create('authors', { name });
  keeper = (await create('users', { email: 'irma@library.example', name: 'Irma Keeper' })).id;
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

type Document = { readonly id: string } & Record<string, unknown>;

async function create(collection: string, members: object): Promise<Document> {
  const { status, body } = await program.send('POST', `/api/v1/${collection}`, { json: members });
  assert.equal(status, 201, body);
  return JSON.parse(body) as Document;
}

const enter = (view: string) => enterDashboard(page, program.url, view);
const listOf = (path: string, rest = '') => `#/list?path=${path}${rest}`;
const memberOf = (id: string) => `#/member?path=${books}&id=${id}`;

test('chooses references by search with the keyboard alone, also of accounts', async () => {
  await enter(listOf(books));
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByRole('textbox', { name: 'Title' }).fill('The Dispossessed');
  const author = page.getByRole('combobox', { name: 'Author' });
  await author.focus();
  await page.keyboard.type('gui');
  await page.getByRole('option', { name: 'Ursula Le Guin' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Enter');
  assert.equal(await author.inputValue(), 'Ursula Le Guin');
  const account = page.getByRole('combobox', { name: 'Keeper' });
  await account.focus();
  await page.keyboard.press('ArrowDown');
  await page.getByRole('listbox', { name: 'Users' }).getByRole('option').first().waitFor();
  await page.keyboard.type('irm');
  await page.getByRole('option', { name: 'Irma Keeper' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('link', { name: 'Ursula Le Guin' }).waitFor();
  await page.getByRole('link', { name: 'Irma Keeper' }).waitFor();
  const { items } = (await program.send('GET', `${books}?title=The+Dispossessed`)).json() as {
    items: Document[];
  };
  assert.equal(items[0]?.keeperId, keeper);
  assert.deepEqual(complaints, []);
});

test('takes back a text that names no document', async () => {
  await enter(listOf(books));
  await page.getByRole('button', { name: 'New' }).click();
  const author = page.getByRole('combobox', { name: 'Author' });
  await author.fill('nobody of that name');
  await page.getByText('0 found').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await author.inputValue(), '');
});

test('shows the history of a document with what changed, before and after, and what is related to it', async () => {
  const { id } = await create('books', { title: 'Solaris', keeperId: keeper });
  await program.send('PATCH', `${books}/${id}`, { json: { title: 'Solaris, second copy', pages: 210 } });
  await enter(memberOf(id));
  await page.getByRole('heading', { name: 'Solaris, second copy' }).waitFor();
  const newest = page.locator('.history > li').first();
  await newest.getByText('updated').waitFor();
  await newest.getByText('by the administrator key').waitFor();
  const row = newest.getByRole('row', { name: /^Title/ });
  assert.equal(await row.locator('.before').textContent(), 'Solaris');
  assert.equal(await row.locator('.after').textContent(), 'Solaris, second copy');
  assert.equal(await page.locator('.history > li').count(), 2);
  await page.locator('.cards').getByRole('link', { name: 'Irma Keeper' }).click();
  await page.getByRole('heading', { name: 'Irma Keeper' }).waitFor();
  await page.locator('.cards').getByRole('link', { name: /Books/ }).click();
  await page.getByRole('gridcell', { name: 'Solaris, second copy', exact: true }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('shows deleted documents, and restores one', async () => {
  const { id } = await create('books', { title: 'The Lathe of Heaven' });
  await program.send('DELETE', `${books}/${id}`);
  await enter(listOf(books));
  await page.getByRole('link', { name: 'Deleted' }).click();
  await page.getByRole('cell', { name: 'The Lathe of Heaven', exact: true }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('button', { name: 'Restore The Lathe of Heaven' }).click();
  await page.getByText('Restored').waitFor();
  assert.equal((await program.send('GET', `${books}/${id}`)).status, 200);
  await page.getByRole('link', { name: 'The Lathe of Heaven' }).click();
  await page.getByRole('heading', { name: 'The Lathe of Heaven' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('keeps order, columns, search and filters in the address', async () => {
  await create('books', { title: 'Kindred', state: 'lent', pages: 264 });
  await create('books', { title: 'Fledgling', state: 'lent', pages: 316 });
  await enter(listOf(books));
  await page.getByLabel('Member').selectOption('state');
  await page.getByLabel('Value').selectOption('lent');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByText('2 in this view').waitFor();
  await page.getByRole('button', { name: 'Title' }).click();
  await page
    .getByRole('columnheader', { name: 'title' })
    .and(page.locator('[aria-sort=ascending]'))
    .waitFor();
  await page.getByText('Columns', { exact: true }).click();
  await page.getByRole('checkbox', { name: 'Created at' }).uncheck();
  await reloadDashboard(page);
  await page.getByText('2 in this view').waitFor();
  await page.getByRole('button', { name: /^State = Lent/ }).waitFor();
  const titles = await page.locator('tbody tr td:nth-child(2)').allTextContents();
  assert.deepEqual(titles, ['Fledgling', 'Kindred']);
  assert.equal(await page.getByRole('columnheader', { name: 'Created at' }).count(), 0);
  await page.getByRole('searchbox').fill('kindred');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByText('1 in this view').waitFor();
  assert.deepEqual(complaints, []);
});

test('tells the line of JSON at which a value is wrong, as the server points to it', async () => {
  const { id } = await create('books', { title: 'The Cyberiad' });
  await enter(memberOf(id));
  await page.getByRole('button', { name: 'Edit' }).click();
  const place = page.getByLabel('place');
  await place.fill('{\n  "room": "east",\n  "shelf": {\n    "row": 0\n  }\n}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('line 4, /shelf/row').waitFor();
  await place.fill('{\n  "room": "east",\n  "shelf": { "row": 1 }}\n}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/must be JSON: .* in line 4/).waitFor();
  assert.deepEqual(complaints, []);
});

test('shows 1,000 rows of which few are elements, and deletes all that are marked', async (t) => {
  const items = Array.from({ length: 1000 }, (_, at) => ({ name: `Author ${String(at).padStart(4, '0')}` }));
  const made = await program.send('POST', '/api/v1/authors/bulk', { json: { items } });
  assert.equal(made.status, 200, made.body);
  await enter(listOf('/api/v1/authors', '&limit=1000&sort=-name'));
  await page.getByRole('link', { name: 'Author 0999' }).waitFor({ state: 'attached' });
  assert.ok((await page.locator('tbody tr').count()) < 120);
  const longest = await page.evaluate(`new Promise((done) => {
    const scroller = document.querySelector('section.scroll');
    let longest = 0, before = performance.now(), steps = 0;
    const tick = (now) => {
      longest = Math.max(longest, now - before);
      before = now;
      scroller.scrollTop += 700;
      if (++steps < 60) requestAnimationFrame(tick); else done(longest);
    };
    requestAnimationFrame(tick);
  })`);
  t.diagnostic(`longest frame while scrolling ${Math.round(Number(longest))} ms`);
  await page.getByRole('link', { name: 'Author 0003' }).waitFor();
  await page.getByRole('checkbox', { name: 'Mark all rows' }).check();
  await page.getByText('1000 marked').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('3 in this view').waitFor();
  assert.deepEqual(complaints, []);
});

test('exports the shown list as NDJSON and as CSV of its columns', async () => {
  await create('books', { title: 'Lilith, "first"', pages: 1, state: 'there' });
  await enter(listOf(books, '&state=there&columns=title,pages'));
  await page.getByText('1 in this view').waitFor();
  const save = async (name: string) => {
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name }).click();
    return readFile(await (await download).path(), 'utf8');
  };
  const lines = (await save('Export NDJSON')).trim().split('\n');
  assert.equal((JSON.parse(lines[0] ?? '') as Document).title, 'Lilith, "first"');
  assert.equal(await save('Export CSV'), 'title,pages\r\n"Lilith, ""first""",1\r\n');
  assert.deepEqual(complaints, []);
});

test('completes a query from the schema, and keeps it in the address', async () => {
  await create('books', { title: 'Wild Seed', state: 'there', pages: 248 });
  await enter(`#/query?path=${books}`);
  await page.getByLabel('SQL').check();
  const editor = page.getByRole('textbox', { name: 'Query' });
  await editor.fill('');
  await editor.pressSequentially('SEL');
  await page.getByRole('option', { name: 'SELECT' }).waitFor();
  await page.keyboard.press('Tab');
  await editor.pressSequentially(' tit');
  await page.keyboard.press('Enter');
  await editor.pressSequentially(", pages FROM books WHERE title = 'Wild Seed'");
  await page.keyboard.press('Escape');
  assert.equal(await editor.inputValue(), "SELECT title, pages FROM books WHERE title = 'Wild Seed'");
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('cell', { name: '248' }).waitFor();
  await reloadDashboard(page);
  await page.getByRole('cell', { name: '248' }).waitFor();
  assert.equal(await editor.inputValue(), "SELECT title, pages FROM books WHERE title = 'Wild Seed'");
  assert.deepEqual(complaints, []);
});

test('shows a time with any number of digits of the second, and saves it without losing one', async () => {
  for (const [boughtAt, shown, typed, kept] of [
    [
      '2026-03-02T10:00:00.123456789Z',
      '2026-03-02T10:00:00.123456789Z',
      '2026-03-02T11:30:00.987654321Z',
      undefined,
    ],
    ['2026-03-02T10:00:00.1234Z', '2026-03-02T10:00:00.1234Z', undefined, '2026-03-02T10:00:00.1234Z'],
    [
      '2026-03-02T10:00:00.120Z',
      '2026-03-02T10:00:00.12',
      '2026-03-02T11:30:00.5',
      '2026-03-02T11:30:00.500Z',
    ],
    ['2026-03-02T10:00:00Z', '2026-03-02T10:00', undefined, '2026-03-02T10:00:00.000Z'],
  ] as const) {
    const { id } = await create('books', { title: boughtAt, boughtAt });
    await enter(memberOf(id));
    await page.getByRole('button', { name: 'Edit' }).click();
    const field = page.getByLabel('Bought at');
    assert.equal(await field.inputValue(), shown, boughtAt);
    if (typed !== undefined) await field.fill(typed);
    await page.getByLabel('title', { exact: false }).first().fill(`${boughtAt} again`);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(`${boughtAt} again`).first().waitFor();
    const saved = (await program.send('GET', `${books}/${id}`)).json();
    assert.equal(saved.boughtAt, kept ?? typed);
  }
  assert.deepEqual(complaints, []);
});
