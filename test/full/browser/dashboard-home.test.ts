/** Home of the dashboard, in a real browser: what needs a person first, how things go, and what the caller may see of both. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { openClient, register } from '../../harness/account-client.ts';
import { type Listening, listen } from '../../harness/listening.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';
import { localEgress } from '../../wire/webhooks/program-with-receiver.ts';
import { openBrowser } from './chromium.ts';
import { type DashboardWindow, enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const config = fileURLToPath(new URL('./fixtures/repairs.config.ts', import.meta.url));
const base = '/api/v1';

let quiet: RunningServer;
let program: RunningServer;
let receiver: Listening;
let browser: Browser;

before(async () => {
  quiet = await startServer();
  program = await startServer({ config, env: localEgress });
  receiver = await listen(
    createServer((_request, response) => response.writeHead(500).end('the belt is torn')),
  );
  browser = await openBrowser();
  const post = async (path: string, json: object = {}) => {
    const { status, body } = await program.send('POST', `${base}/${path}`, { json });
    assert.ok(status < 300, body);
  };
  await post('endpoints', { url: `${receiver.url}/hook`, events: ['customers.*'] });
  await post('customers', { name: 'Mill' });
  await post('repairs', { title: 'Pump' });
  await post('jobs/count/run');
  const ended = async (path: string) => {
    const [item] = await program.list(`${base}/${path}`);
    return item;
  };
  await eventually(() => ended('received?status=failed&sender=job:count'), 'the run of the job fails');
  await eventually(() => ended('deliveries?status=not_delivered'), 'the delivery fails');
});

after(async () => {
  await browser?.close();
  await quiet?.stop();
  await program?.stop();
  await receiver?.close();
});

async function open(url: string, width = 1280): Promise<DashboardWindow> {
  return openWindow(await browser.newContext({ viewport: { width, height: 844 } }), url);
}

const finding = (page: Page, text: RegExp) =>
  page.getByRole('region', { name: 'Needs you now' }).getByRole('listitem').filter({ hasText: text });

test('says that nothing needs a person where nothing does', async () => {
  const { page, complaints } = await open(quiet.url);
  await enterDashboard(page, quiet.url);
  await page.getByText('Nothing needs you.').waitFor();
  assert.equal(await page.locator('.findings').count(), 0);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('begins with what needs a person, each with its number, its age and the page that mends it', async () => {
  const { page, complaints } = await open(program.url);
  await enterDashboard(page, program.url);
  await finding(page, /2 messages are dead letters\..*(?:ago|just now).*Of /).waitFor();
  await finding(page, /The last run of the job count failed\..*the shelf is locked/).waitFor();
  await finding(
    page,
    /1 delivery of the newest 1 failed, and will be tried again\..*The last answer was 500\./,
  ).waitFor();
  await finding(page, /The endpoint http:\S+\/hook has failed \d times? in a row\./).waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOn(page), []);
  }
  await finding(page, /dead letters/)
    .getByRole('link')
    .click();
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  assert.equal(await page.getByLabel('State').inputValue(), 'dead');
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('shows how things went in the last hour and day as lines, and as a table', async () => {
  const { page, complaints } = await open(program.url);
  await enterDashboard(page, program.url);
  const figure = page.getByRole('figure', { name: /^Deliveries/ });
  await figure
    .getByText('failed 1')
    .or(figure.getByRole('listitem').filter({ hasText: /failed\s*\d/ }))
    .waitFor();
  await page.getByText('As a table').click();
  const table = page.getByRole('region', { name: 'Activity as a table' });
  await table.getByRole('columnheader', { name: 'Deliveries, failed' }).waitFor();
  await table.getByRole('row').nth(1).waitFor();
  await page.getByLabel('Last day').check();
  await page.getByRole('figure', { name: /^Requests in 15 minutes/ }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('asks for nothing that the caller may not see, and shows no more than that', async () => {
  const client = openClient(program.port);
  await register(client, 'ada@shop.example', 'correct horse battery staple');
  client.close();
  const { page, complaints } = await open(program.url);
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill('ada@shop.example');
  await page.getByLabel('Password').fill('correct horse battery staple');
  const asked: string[] = [];
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('Nothing needs you.').waitFor();
  page.on('response', (response) => {
    // A HEAD asks whether a list may be read.
    if (response.status() === 403 && response.request().method() !== 'HEAD') asked.push(response.url());
  });
  await page.reload();
  await page.getByText('Nothing needs you.').waitFor();
  assert.deepEqual(asked, []);
  assert.equal(await page.getByRole('heading', { name: 'How things go' }).count(), 0);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('fits a phone, with the latest events', async () => {
  const { page, complaints } = await open(program.url, 390);
  await enterDashboard(page, program.url);
  await finding(page, /dead letters/).waitFor();
  await page.getByRole('heading', { name: 'Latest events' }).waitFor();
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  assert.equal(overflow, 0, 'the page scrolls sideways');
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('shows why a message of a function is a dead letter, with the place, and replays it', async () => {
  const { page, complaints } = await open(program.url);
  await enterDashboard(page, program.url, '#/inbox?state=dead');
  const row = page.getByRole('row', { name: /subscriber:bill/ });
  await row.getByText('The function threw').waitFor();
  await row.getByRole('link').click();
  const failure = page.getByRole('region', { name: 'Why it failed' });
  await failure.getByText('Error: the printer has no paper').waitFor();
  await failure.getByText('attempt 1').waitFor();
  assert.match((await failure.getByRole('code').textContent()) ?? '', /^repairs\.config\.ts:\d+:\d+$/);
  assert.deepEqual(await violationsOn(page), []);
  await page.goBack();
  await row.getByRole('button', { name: 'Replay' }).click();
  await eventually(async () => {
    const [item] = await program.list(`${base}/received?sender=subscriber:bill`);
    return item.attempts === 2 ? item : undefined;
  }, 'the message is handed on again');
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('shows the last answer to a delivery that failed, with its first octets', async () => {
  const { page, complaints } = await open(program.url);
  const [{ id }] = await program.list(`${base}/deliveries`);
  await enterDashboard(page, program.url, `#/delivery?id=${id}`);
  const failure = page.getByRole('region', { name: 'Why it failed' });
  await failure.getByText('The answer was 500').waitFor();
  await failure.getByText('the belt is torn').waitFor();
  await page.getByRole('button', { name: 'Resend' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
  await page.context().close();
});
