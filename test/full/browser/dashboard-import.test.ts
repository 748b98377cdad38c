/** The import of files in the dashboard: preview, names of columns, dry run, progress, cancel, and the faults as a file. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { bearer, makeKey, openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const customers = '/api/v1/customers';

let program: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];

before(async () => {
  const config = fileURLToPath(new URL('./fixtures/work-orders.config.ts', import.meta.url));
  program = await startServer({ config });
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

const enter = (path = customers) => enterDashboard(page, program.url, `#/list?path=${path}`);
const choose = (name: string, text: string) =>
  page.getByLabel('File').setInputFiles({ name, mimeType: '', buffer: Buffer.from(text) });
const check = () => page.getByRole('button', { name: 'Check' });
const start = () => page.getByRole('button', { name: 'Import', exact: true });

async function named(city: string): Promise<readonly Record<string, unknown>[]> {
  const { items } = (await program.send('GET', `${customers}?city=${city}&sort=name`)).json();
  return items as Record<string, unknown>[];
}

test('shows the first 20 records with their members, checks them, and imports them', async () => {
  const rows = Array.from({ length: 30 }, (_, at) => `"Firm ${String(at).padStart(2, '0')}",Ulm,DE`);
  await enter();
  await page.getByRole('link', { name: 'Import' }).click();
  await choose(
    'customers.csv',
    `\uFEFFFirm,city,country\r\n${rows.join('\r\n')}\r\n"Long, ""land""",Ulm,Germany\r\n`,
  );
  await page.getByText('no member of this name').waitFor();
  assert.equal(await page.locator('.import-preview tbody tr').count(), 20);
  await page.getByRole('combobox', { name: 'Member of the column Firm' }).selectOption('Name');
  await page.getByText('text, required').waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await check().click();
  await page.getByText('30 would be created, 0 updated, 0 unchanged, 1 refused.').waitFor();
  const fault = page.getByRole('region', { name: 'Faults' }).getByRole('row').nth(1);
  assert.deepEqual((await fault.getByRole('cell').allTextContents()).slice(0, 3), [
    '32',
    '3: country',
    'Country',
  ]);
  assert.deepEqual(await named('Ulm'), []);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download the faults' }).click();
  const faults = await readFile(await (await download).path(), 'utf8');
  assert.match(faults, /^line,column,member,code,message\r\n32,3,\/country,validation_failed,/);
  await start().click();
  await page.getByText('30 created, 0 updated, 0 unchanged, 1 refused.').waitFor();
  assert.equal((await named('Ulm')).length, 20);
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('link', { name: 'Show the list' }).click();
  await page.getByRole('gridcell', { name: 'Firm 29, Ulm' }).first().waitFor();
  assert.deepEqual(complaints, []);
});

test('takes a file without a header, leaves a column out, and finds a reference by a unique member', async () => {
  const { id: customerId } = (await program.send('POST', customers, { json: { name: 'Werft' } })).json();
  const client = openClient(program.port);
  const { userId } = await register(client, 'tess@service.example', 'correct horse battery staple');
  client.close();
  await enter('/api/v1/orders');
  await page.getByRole('link', { name: 'Import' }).click();
  await choose(
    'orders.csv',
    `W-1,${customerId},old,tess@service.example\nW-2,${customerId},old,nobody@service.example\n`,
  );
  await page.getByLabel('The first line names the columns').uncheck();
  await page.getByRole('cell', { name: 'W-1' }).waitFor();
  const member = (column: number) =>
    page.getByRole('combobox', { name: `Member of the column Column ${column}` });
  await page.getByText('No column is No., Customer').waitFor();
  await member(1).selectOption('number');
  await member(2).selectOption('customerId');
  await member(4).selectOption('technicianId.email');
  assert.deepEqual(await member(3).inputValue(), '', 'is left out');
  assert.deepEqual(await violationsOn(page), []);
  await start().click();
  await page.getByText('1 created, 0 updated, 0 unchanged, 1 refused.').waitFor();
  const faults = page.getByRole('region', { name: 'Faults' });
  await faults.getByText('no document of users has email "nobody@service.example"').waitFor();
  assert.deepEqual((await faults.getByRole('row').nth(1).getByRole('cell').allTextContents()).slice(0, 2), [
    '2',
    '4: technicianId.email',
  ]);
  const { items } = (await program.send('GET', '/api/v1/orders?number=W-1')).json();
  assert.equal(items[0].technicianId, userId);
  assert.deepEqual(complaints, []);
});

test('changes documents that exist, found by a key, from NDJSON, and all or none from a JSON list', async () => {
  const { id } = (await program.send('POST', customers, { json: { name: 'Orpheum', city: 'Graz' } })).json();
  await enter();
  await page.getByRole('link', { name: 'Import' }).click();
  await choose(
    'more.ndjson',
    `{"id":"${id}","name":"Orpheum neu","city":"Graz"}\n{"id":"new-1","name":"Kunsthaus","city":"Graz"}\n`,
  );
  await page.getByRole('combobox', { name: 'Records' }).selectOption('upsert');
  await page.getByLabel('Found by').fill('id');
  await start().click();
  await page.getByText('1 created, 1 updated, 0 unchanged, 0 refused.').waitFor();
  assert.deepEqual(
    (await named('Graz')).map(({ name }) => name),
    ['Kunsthaus', 'Orpheum neu'],
  );
  await choose('list.json', '[{"name":"A","city":"Linz"},\n {"city":"Linz"}]');
  await page.getByRole('cell', { name: 'Linz' }).first().waitFor();
  await page.getByRole('combobox', { name: 'Records' }).selectOption('create');
  await page.getByLabel('All or nothing').check();
  await start().click();
  await page.getByRole('alert').waitFor();
  await page.getByRole('region', { name: 'Faults' }).getByText('required').waitFor();
  assert.deepEqual(await named('Linz'), []);
  assert.deepEqual(complaints, []);
});

test('shows how much was sent, and stops when it is cancelled', async () => {
  await enter();
  await page.getByRole('link', { name: 'Import' }).click();
  const line = '{"name":"Many","city":"Bregenz"}\n';
  await choose('many.ndjson', line.repeat(400_000));
  await start().click();
  await page.getByRole('progressbar', { name: 'Progress of the import' }).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('alert').getByText('the import was cancelled after').waitFor();
  const count = await program.send('GET', `${customers}?city=Bregenz&limit=1`, {
    headers: { Prefer: 'count=exact' },
  });
  assert.ok(Number(count.headers['x-total-count']) < 400_000);
  assert.deepEqual(complaints, []);
});

test('says what is wrong with a file that has another format', async () => {
  await enter();
  await page.getByRole('link', { name: 'Import' }).click();
  await choose('wrong.json', '{"name":"No list"}');
  await page.getByRole('alert').getByText('no JSON list').waitFor();
  await page.getByLabel('Format').selectOption('ndjson');
  await page.getByRole('cell', { name: 'No list' }).waitFor();
});

test('offers no import to a caller that may not write', async () => {
  const client = openClient(program.port);
  const { token } = await register(client, 'una@service.example', 'correct horse battery staple');
  const { key } = await makeKey(client, bearer(token), { scopes: ['read'] });
  client.close();
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Use the key' }).click();
  await page.getByRole('heading', { name: 'Collections' }).waitFor();
  const asked = page.waitForResponse((response) => response.url().includes('/import?dryRun=true'));
  await page.evaluate(`location.hash = '#/list?path=${customers}'`);
  assert.equal((await asked).status(), 403);
  await page.getByRole('button', { name: 'Reload' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Import' }).count(), 0);
  await page.evaluate(`location.hash = '#/import?path=${customers}'`);
  await page.getByText('You may not write documents of this list.').waitFor();
  assert.equal(await page.getByLabel('File').count(), 0);
  assert.deepEqual(complaints, []);
});
