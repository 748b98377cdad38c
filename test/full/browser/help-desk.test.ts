/** The help desk of the examples in a real browser: a customer asks, an agent sees it at once and solves it, the customer sees that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';

const config = fileURLToPath(new URL('../../../examples/help-desk/comity.config.ts', import.meta.url));
const password = 'correct horse battery';

async function account(server: RunningServer, email: string, change: object): Promise<void> {
  const made = await server.send('POST', '/api/v1/auth/register', { json: { email, password } });
  assert.equal(made.status, 201, made.body);
  const { id } = made.json().user as { id: string };
  const patched = await server.send('PATCH', `/api/v1/users/${id}`, {
    body: JSON.stringify(change),
    headers: { 'Content-Type': 'application/merge-patch+json' },
  });
  assert.equal(patched.status, 200, patched.body);
}

test('shows a customer and an agent what each may see, as it happens', {
  timeout: 120_000,
}, async (context) => {
  const server = await startServer({ config });
  const browser = await openBrowser();
  context.after(async () => {
    await browser.close();
    await server.stop();
  });
  const put = await server.send('PUT', '/api/v1/organisations/lighthouse', {
    json: { name: 'Lighthouse Ltd' },
  });
  assert.equal(put.status, 201);
  await account(server, 'ada@lighthouse.example', { tenant: 'lighthouse' });
  await account(server, 'eve@other.example', { tenant: 'other' });
  await account(server, 'sam@desk.example', { roles: ['agent'] });

  const enter = async (email: string) => {
    const tab = await (await browser.newContext()).newPage();
    const faults: string[] = [];
    tab.on('pageerror', (error) => faults.push(error.message));
    await tab.goto(`${server.url}/api/v1/desk`);
    await tab.getByLabel('E-mail').fill(email);
    await tab.getByLabel('Password').fill('wrong password');
    await tab.getByRole('button', { name: 'Log in' }).click();
    await tab.getByRole('status').filter({ hasText: 'invalid credentials' }).waitFor();
    await tab.getByLabel('Password').fill(password);
    await tab.getByRole('button', { name: 'Log in' }).click();
    await tab.getByRole('form', { name: 'Ask a question' }).waitFor();
    return { tab, faults };
  };
  const [customer, stranger, agent] = [
    await enter('ada@lighthouse.example'),
    await enter('eve@other.example'),
    await enter('sam@desk.example'),
  ];
  await customer.tab.getByRole('textbox', { name: 'Question' }).fill('The door does not close');
  await customer.tab.getByLabel('Priority').selectOption('urgent');
  await customer.tab.getByRole('button', { name: 'Ask' }).click();
  const item = (tab: typeof customer.tab) =>
    tab.getByRole('listitem').filter({ hasText: 'The door does not close' });
  await item(customer.tab).waitFor();
  await item(agent.tab).filter({ hasText: 'open, urgent' }).waitFor();
  await agent.tab.getByRole('button', { name: 'Solve The door does not close' }).click();
  await item(customer.tab).filter({ hasText: 'solved, urgent' }).waitFor();
  assert.equal(await stranger.tab.getByRole('listitem').count(), 0);
  if (process.env.COMITY_TEST_PICTURE !== undefined)
    await agent.tab.screenshot({ path: process.env.COMITY_TEST_PICTURE });
  for (const { faults } of [customer, stranger, agent]) assert.deepEqual(faults, []);
});
