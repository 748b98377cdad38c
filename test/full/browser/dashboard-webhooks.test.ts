/** The pages of webhooks in the dashboard, by what an operator does: endpoints of any tenant, and the inbox with its dead letters. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../../../examples/receiver/start-receiver.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { localEgress } from '../../wire/webhooks/program-with-receiver.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, reloadDashboard, violationsOn } from './dashboard-window.ts';

const secret = 'whsec_0123456789abcdef0123456789abcdef';

let program: RunningServer;
let receiver: Receiver;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];

before(async () => {
  receiver = await startReceiver();
  program = await startServer({ env: { ...localEgress, BILLING_WEBHOOK_SECRET: secret } });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await receiver?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

/** A message whose product does not exist fails for good, because no repetition would help. */
async function postCheckout(id: string): Promise<void> {
  const type = 'checkout.session.completed';
  const body = JSON.stringify({ id, object: 'event', type, created: 0, data: { object: { id, items: [] } } });
  const time = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
  const { status, body: answer } = await program.send('POST', '/api/v1/webhooks/billing', {
    anonymous: true,
    headers: { 'Content-Type': 'application/json', 'Service-Signature': `t=${time},v1=${signature}` },
    body,
  });
  assert.ok(status < 300, answer);
}

test('creates an endpoint for a tenant, shows its performance, and finds its deliveries', async () => {
  await enterDashboard(page, program.url);
  await page.getByRole('link', { name: 'Endpoints', exact: true }).click();
  await page.getByRole('button', { name: 'New endpoint' }).click();
  await page.getByLabel('Endpoint URL').fill(`${receiver.url}/shop`);
  await page.getByText('More', { exact: true }).click();
  await page.getByLabel('Tenant').fill('acme');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  receiver.trust(await page.getByRole('textbox', { name: 'Signing secret' }).inputValue());
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('heading', { name: `${receiver.url}/shop` }).waitFor();
  await page.getByText('acme', { exact: true }).waitFor();
  await page.getByRole('combobox', { name: 'Event type' }).first().selectOption('products.created');
  await page.getByRole('button', { name: 'Send a test event' }).click();
  await page.getByRole('status').getByText('Delivered').waitFor();
  await reloadDashboard(page);
  await page.getByText('1 of 1 deliveries').waitFor();
  await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
  await page.getByRole('link', { name: 'products.created' }).click();
  await page.getByRole('heading', { name: 'products.created' }).waitFor();
  await page.locator('.timeline > .good').waitFor();
  assert.deepEqual(complaints, []);
});

test('shows the inbox, a message with its body and attempts, and replays after a count', async () => {
  await postCheckout('cs_1');
  await enterDashboard(page, program.url);
  await page.getByRole('link', { name: 'Senders', exact: true }).click();
  await page
    .getByRole('row', { name: /billing/ })
    .getByRole('link')
    .nth(1)
    .click();
  await page.getByRole('link', { name: 'checkout.session.completed' }).click();
  await page.getByRole('heading', { name: 'checkout.session.completed' }).waitFor();
  await page.locator('.timeline li').first().waitFor();
  await page.getByText('Body', { exact: true }).click();
  await page.getByLabel('Body of the message').getByText('cs_1').first().waitFor();
  await page.getByRole('button', { name: 'Replay' }).click();
  await page.locator('.timeline li').nth(1).waitFor();
  await page.getByRole('link', { name: 'Inbox' }).click();
  await page.getByLabel('Sender').selectOption('billing');
  await page.getByRole('button', { name: 'Replay all of these…' }).click();
  await page.getByText('1 message would be replayed').waitFor();
  await page.getByRole('button', { name: 'Replay 1' }).click();
  await page.getByText('Replayed 1, skipped 0.').waitFor();
  await page.getByLabel('State').selectOption('Dead letters');
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('makes a link to the portal of a tenant, which is shown once and opens it', async () => {
  await enterDashboard(page, program.url);
  await page.getByRole('link', { name: 'Portal links', exact: true }).click();
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByRole('dialog').getByLabel('Tenant').fill('acme');
  await page.getByRole('button', { name: 'Create' }).click();
  const link = await page.locator('.secret code').textContent();
  assert.match(link ?? '', /\/portal#pl_/);
  const { page: opened, complaints: others } = await openWindow(context, program.url);
  await opened.goto(link ?? '');
  await opened.getByRole('heading', { name: 'Endpoints' }).waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('cell', { name: 'acme' }).waitFor();
  assert.deepEqual([...complaints, ...others], []);
});

for (const view of ['endpoints', 'deliveries', 'event-types', 'senders', 'inbox']) {
  test(`has no violation of accessibility in light and dark, and fits a phone: ${view}`, async () => {
    await enterDashboard(page, program.url, `#/${view}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForLoadState('networkidle');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violationsOn(page), []);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    const overflow = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.equal(overflow, 0, 'the page scrolls sideways');
    assert.deepEqual(complaints, []);
  });
}
