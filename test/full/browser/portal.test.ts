/** The portal in a real browser, by what a customer's engineer does, also within a frame of another site. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../../../examples/receiver/start-receiver.ts';
import { type Listening, listen } from '../../harness/listening.ts';
import { type RunningServer, repositoryRoot, startServer } from '../../harness/running-server.ts';
import { makeLink, openPortal } from '../../wire/portal/portal-client.ts';
import { localEgress } from '../../wire/webhooks/program-with-receiver.ts';
import { openBrowser } from './chromium.ts';
import { openWindow, violationsOn } from './dashboard-window.ts';

let program: RunningServer;
let receiver: Receiver;
let host: Listening;
let stranger: Listening;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];

/** A page of another site that frames what its query names. `localhost` and `127.0.0.1` are two sites. */
function framing() {
  return createServer((request, response) => {
    const framed = new URL(request.url ?? '/', 'http://host').searchParams.get('url') ?? '';
    response.setHeader('Content-Type', 'text/html');
    response.end(
      `<!doctype html><title>Host</title><iframe src="${framed}" width="1000" height="700"></iframe>`,
    );
  });
}

before(async () => {
  receiver = await startReceiver();
  [host, stranger] = [await listen(framing()), await listen(framing())];
  process.env.PORTAL_FRAME_ANCESTORS = `http://localhost:${host.port}`;
  program = await startServer({
    config: join(repositoryRoot, 'test/full/browser/fixtures/portal.config.ts'),
    env: localEgress,
  });
  delete process.env.PORTAL_FRAME_ANCESTORS;
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  for (const each of [host, stranger]) await each?.close();
  await receiver?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

async function enter(tenant: string, on = page): Promise<void> {
  const link = await makeLink(program, tenant);
  await on.goto(link.url);
  await on.getByRole('heading', { name: 'Endpoints' }).waitFor();
}

async function post(tenant: string, type = 'invoice.paid'): Promise<void> {
  const json = { type, tenant, data: { object: { id: 'inv_1', amount: 100 } } };
  const { status, body } = await program.send('POST', '/api/v1/events', { json });
  assert.equal(status, 202, body);
}

async function addEndpoint(url: string): Promise<string> {
  await page.getByRole('button', { name: 'New endpoint' }).click();
  await page.getByLabel('Endpoint URL').fill(url);
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  const secret = await page.getByRole('textbox', { name: 'Signing secret' }).inputValue();
  receiver.trust(secret);
  return secret;
}

test('exchanges the link once, takes it out of the address, and stays after a reload', async () => {
  const link = await makeLink(program, 'once');
  await page.goto(link.url);
  await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
  assert.ok(!page.url().includes(link.token));
  await page.getByText('Acme <Cloud>').waitFor();
  assert.equal(await page.title(), 'Endpoints – Acme <Cloud>');
  await page.reload();
  await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
  assert.deepEqual(await context.cookies(), []);
  const other = await browser.newContext();
  const second = await openWindow(other, program.url);
  await second.page.goto(link.url);
  await second.page.getByRole('heading', { name: 'This link does not work' }).waitFor();
  await second.page.goto(`${program.url}/portal`);
  await second.page.reload();
  await second.page.getByRole('heading', { name: 'This page needs a link' }).waitFor();
  await other.close();
  await program.send('DELETE', `/api/v1/portal-links/${link.id}`);
  await page.getByRole('link', { name: 'Event types' }).click();
  await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
  assert.deepEqual([...complaints, ...second.complaints], []);
});

test('adds an endpoint, whose secret it shows once, and tests it', async () => {
  await enter('adds');
  await page.getByRole('button', { name: 'New endpoint' }).click();
  await page.getByLabel('Endpoint URL').fill('http://10.0.0.1/hooks');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  const secret = await addEndpoint(`${receiver.url}/adds`);
  assert.match(secret, /^whsec_/);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('heading', { name: `${receiver.url}/adds` }).waitFor();
  assert.equal(await page.getByText(secret).count(), 0);
  await page.getByRole('combobox', { name: 'Event type' }).first().selectOption('stock.ran-out');
  await page.getByRole('button', { name: 'Send a test event' }).click();
  await page.getByRole('status').getByText('Delivered').waitFor();
  assert.ok(receiver.received.some(({ path, body }) => path === '/adds' && body.includes('stock.ran-out')));
  await page.getByRole('link', { name: 'The delivery' }).click();
  await page.getByRole('heading', { name: 'stock.ran-out' }).waitFor();
  await page.getByText('Request', { exact: true }).click();
  await page.getByText('webhook-signature: ********').waitFor();
  assert.deepEqual(complaints, []);
});

test('adds an endpoint by the keyboard alone', async () => {
  await enter('keyboard');
  await page.getByText('No endpoint yet').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'New endpoint');
  await page.keyboard.press('Enter');
  await page.locator('#url:focus').waitFor();
  await page.keyboard.type(`${receiver.url}/keyboard`);
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Signing secret' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('offers on an endpoint of an administrator only what the session may do', async () => {
  const json = { url: `${receiver.url}/ours`, events: ['invoice.paid', 'stock.*'], tenant: 'limited' };
  const made = await program.send('POST', '/api/v1/endpoints', { json });
  assert.equal(made.status, 201, made.body);
  await enter('limited');
  await page.getByRole('link', { name: json.url }).click();
  await page.getByRole('heading', { name: json.url }).waitFor();
  for (const name of ['Delete', 'Rotate the secret'])
    assert.equal(await page.getByRole('button', { name }).count(), 0);
  assert.equal(await page.getByText('Signing secret').count(), 0);
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Description').fill('Ours');
  for (const label of ['Endpoint URL', 'Attempts a second, at most', 'All events', 'Another type or pattern'])
    assert.equal(await page.getByLabel(label).count(), 0, label);
  assert.equal(await page.getByRole('checkbox').count(), 2);
  await page.getByLabel('stock.*').uncheck();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Ours', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('button', { name: 'Enable' }).waitFor();
  await page.getByRole('button', { name: 'Send a test event' }).waitFor();
  const now = (await program.send('GET', `/api/v1/endpoints/${made.json().id}`)).json();
  assert.deepEqual([now.description, now.events, now.status], ['Ours', ['invoice.paid'], 'disabled']);
  await page.goto(`${program.url}/portal#/endpoints`);
  await addEndpoint(`${receiver.url}/theirs`);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  for (const name of ['Delete', 'Rotate the secret']) await page.getByRole('button', { name }).waitFor();
  assert.deepEqual(complaints, []);
});

test('changes, disables and deletes an endpoint, and tells of a change by somebody else', async () => {
  await enter('changes');
  await addEndpoint(`${receiver.url}/changes`);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('button', { name: 'Edit' }).click();
  const { ask } = await openPortal(program, 'changes');
  const { items } = (await ask('GET', 'endpoints')).json() as { items: readonly { id: string }[] };
  const path = `endpoints/${items[0]?.id}`;
  assert.equal((await ask('PATCH', path, { description: 'Theirs' })).status, 200);
  await page.getByLabel('Description').fill('Mine');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('somebody else has changed this endpoint').first().waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Mine').first().waitFor();
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByText('Disabled', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Enable' }).click();
  await page.getByRole('button', { name: 'Disable' }).waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('No endpoint yet').waitFor();
  assert.equal((await ask('GET', path)).status, 404);
  assert.deepEqual(complaints, []);
});

test('rotates the secret with an overlap, and shows how long the earlier one still signs', async () => {
  await enter('rotates');
  const first = await addEndpoint(`${receiver.url}/rotates`);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByLabel('The present secret ends').selectOption('after an hour');
  await page.getByRole('button', { name: 'Rotate the secret' }).click();
  const field = page.getByRole('textbox', { name: 'Signing secret' });
  await field.waitFor();
  assert.notEqual(await field.inputValue(), first);
  await page.locator('.overlap .countdown', { hasText: /^00:59:|^01:00:00$/ }).waitFor();
  await page.reload();
  await page.locator('.overlap .countdown').waitFor();
  assert.equal(await field.count(), 0);
  assert.deepEqual(complaints, []);
});

test('lists deliveries as they happen, filters them, and resends one and all of a filter', async () => {
  await enter('resends');
  await addEndpoint(`${receiver.url}/status/500`);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('link', { name: 'Deliveries' }).click();
  await page.getByText('No deliveries match').waitFor();
  for (let at = 0; at < 3; at += 1) await post('resends');
  await page.getByRole('link', { name: 'invoice.paid' }).nth(2).waitFor();
  await page.locator('tbody .badge', { hasText: 'Retrying' }).nth(2).waitFor();
  await page.getByRole('link', { name: 'Endpoints' }).click();
  await page
    .getByRole('row', { name: /Failing 0 % of 3/ })
    .getByRole('link')
    .first()
    .click();
  await page.getByText('Paused, next attempt in').waitFor();
  await page.getByRole('link', { name: 'Deliveries' }).click();
  // The page that is left has a list with the same filters.
  await page.getByRole('heading', { name: 'Deliveries', level: 1 }).waitFor();
  await page.getByLabel('State').selectOption('Delivered');
  await page.getByText('No deliveries match').waitFor();
  await page.getByLabel('State').selectOption('Failed or retrying');
  await page.getByRole('button', { name: 'Resend all of these…' }).click();
  await page.getByText('3 deliveries would be sent again').waitFor();
  const before = receiver.received.length;
  await page.getByRole('button', { name: 'Resend 3' }).click();
  await page.getByText('Resent 3 of 3.').waitFor();
  await receiver.until((received) => received.length >= before + 3);
  await page.getByRole('link', { name: 'invoice.paid' }).first().click();
  await page.getByRole('heading', { name: 'Attempts' }).waitFor();
  await page.getByText('sent by hand').waitFor();
  await page.getByText('Next attempt').waitFor();
  await page.getByRole('button', { name: 'Resend' }).click();
  await page.locator('.timeline > .bad').nth(2).waitFor();
  assert.deepEqual(complaints, []);
});

test('recovers what an endpoint missed while it was disabled, after a count', async () => {
  await enter('recovers');
  await addEndpoint(`${receiver.url}/recovers`);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('button', { name: 'Enable' }).waitFor();
  for (let at = 0; at < 2; at += 1) await post('recovers');
  await page.getByRole('button', { name: 'Enable' }).click();
  await page.getByRole('button', { name: 'Disable' }).waitFor();
  await page.getByRole('button', { name: 'Count them' }).click();
  await page.getByText('2 events would be sent').waitFor();
  await page.getByRole('button', { name: 'Send 2 events' }).click();
  await page.getByText('Recovered 2 events.').waitFor();
  await receiver.until((received) => received.filter(({ path }) => path === '/recovers').length === 2);
  assert.deepEqual(complaints, []);
});

test('shows nothing of another tenant, whatever id is in the address', async () => {
  const other = await openPortal(program, 'other');
  const made = await other.ask('POST', 'endpoints', { url: `${receiver.url}/other`, events: ['*'] });
  await post('other');
  const { items } = (await other.ask('GET', 'deliveries')).json() as { items: readonly { id: string }[] };
  await enter('curious');
  await page.getByText('No endpoint yet').waitFor();
  for (const view of [
    `endpoint?id=${made.json().id}`,
    `delivery?id=${items[0]?.id}`,
    'endpoint?id=../users',
  ]) {
    await page.evaluate(`location.hash = '#/${view}'`);
    await page
      .getByRole('alert')
      .getByText(/404|403/)
      .waitFor();
    assert.ok(!(await page.content()).includes(`${receiver.url}/other`));
  }
  await page.evaluate(`location.hash = '#/deliveries?endpointId=${made.json().id}'`);
  await page.getByText('No deliveries match').waitFor();
  assert.deepEqual(complaints, []);
});

test('works in a frame of an allowed site, without cookies, and is refused elsewhere', async () => {
  const link = await makeLink(program, 'framed');
  const framing = await openWindow(context, program.url);
  await framing.page.goto(`http://localhost:${host.port}/?url=${encodeURIComponent(link.url)}`);
  const frame = framing.page.frameLocator('iframe');
  await frame.getByRole('button', { name: 'New endpoint' }).click();
  await frame.getByLabel('Endpoint URL').fill(`${receiver.url}/framed`);
  await frame.getByRole('button', { name: 'Create endpoint' }).click();
  await frame.getByRole('textbox', { name: 'Signing secret' }).waitFor();
  await frame.getByRole('button', { name: 'Copy' }).click();
  assert.deepEqual(await context.cookies(), []);
  for (const origin of [`http://127.0.0.1:${host.port}`, `http://localhost:${stranger.port}`]) {
    const unused = await makeLink(program, 'framed');
    const refused = await openWindow(context, program.url);
    await refused.page.goto(`${origin}/?url=${encodeURIComponent(unused.url)}`);
    await refused.page.waitForLoadState('load');
    assert.ok(
      refused.complaints.some((text) => text.includes('frame-ancestors')),
      refused.complaints.join('\n'),
    );
    const kept = await program.send('GET', `/api/v1/portal-links/${unused.id}`);
    assert.equal(kept.json().usedAt, undefined, 'a refused page exchanged the link');
  }
});

for (const name of ['endpoints', 'an endpoint', 'deliveries', 'a delivery', 'event types'] as const) {
  test(`has no violation of accessibility in light and dark, and fits a phone and 200 %: ${name}`, async () => {
    await seed('judged');
    await enter('judged');
    await open(name);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violationsOn(page), []);
    }
    // 640 pixels are 1,280 at 200 %.
    for (const width of [640, 390]) {
      await page.setViewportSize({ width, height: 844 });
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      assert.equal(overflow, 0, `the page scrolls sideways at ${width}`);
    }
    assert.deepEqual(complaints, []);
  });
}

let isSeeded = false;

/** Endpoints that work and that fail, with deliveries of each. */
async function seed(tenant: string): Promise<void> {
  if (isSeeded) return;
  isSeeded = true;
  const { ask } = await openPortal(program, tenant);
  for (const path of ['/works', '/status/500']) {
    const json = { url: receiver.url + path, events: ['invoice.*'], description: `Answers at ${path}` };
    const made = await ask('POST', 'endpoints', json);
    receiver.trust(String(made.json().secret));
  }
  for (let at = 0; at < 4; at += 1) await post(tenant);
}

async function open(name: string): Promise<void> {
  if (name === 'an endpoint') {
    await page.getByRole('link', { name: '/status/500' }).click();
    await page.getByRole('link', { name: 'invoice.paid' }).first().waitFor();
  } else if (name === 'deliveries' || name === 'a delivery') {
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByRole('link', { name: 'invoice.paid' }).first().waitFor();
    if (name === 'deliveries') return;
    await page.getByRole('link', { name: 'invoice.paid' }).first().click();
    await page.locator('.timeline').waitFor();
  } else if (name === 'event types') {
    await page.getByRole('link', { name: 'Event types' }).click();
    await page.locator('summary', { hasText: 'stock.ran-out' }).click();
    await page.getByLabel('Sample of stock.ran-out').waitFor();
  }
}
