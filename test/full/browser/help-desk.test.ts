/**
 * The help desk of the examples in a real browser: a customer asks, an agent sees it at once and solves it, the customer sees that. Files are
 * attached, over cuts and kills of the program.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startFaultyProxy } from '../../client/faulty-proxy.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { openBrowser } from './chromium.ts';

const config = fileURLToPath(new URL('../../../examples/help-desk/comity.config.ts', import.meta.url));
const password = 'correct horse battery';

async function account(server: ServerProcess, email: string, change: object): Promise<void> {
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
  const server = await spawnServer({ config });
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

async function openDesk(context: TestContext) {
  const folder = temporaryFolder();
  const start = () => spawnServer({ config, folder });
  let server = await start();
  const proxy = await startFaultyProxy(() => server.port, context);
  const browser = await openBrowser();
  context.after(async () => {
    await browser.close();
    await server.stop();
  });
  await server.send('PUT', '/api/v1/organisations/lighthouse', { json: { name: 'Lighthouse Ltd' } });
  await account(server, 'ada@lighthouse.example', { tenant: 'lighthouse' });
  const restart = async () => {
    await server.kill();
    server = await start();
  };
  const tab = await (await browser.newContext()).newPage();
  const faults: string[] = [];
  tab.on('pageerror', (error) => faults.push(error.message));
  await tab.goto(`${proxy.baseUrl}/desk`);
  await tab.getByLabel('E-mail').fill('ada@lighthouse.example');
  await tab.getByLabel('Password').fill(password);
  await tab.getByRole('button', { name: 'Log in' }).click();
  await tab.getByRole('form', { name: 'Ask a question' }).waitFor();

  let killing: Promise<void> | undefined;
  /** The program carries a request out and is killed, its answer is lost, and what the page sends again waits for the next program. */
  const killAfter = (isMet: (method: string, url: string) => boolean) => {
    let back: Promise<void> | undefined;
    const lostBefore = proxy.lost;
    proxy.fault = ({ method, url }) => {
      if (!isMet(method, url)) return undefined;
      if (back !== undefined) return back;
      const { promise, resolve } = Promise.withResolvers<void>();
      back = promise;
      killing = until(() => proxy.lost > lostBefore)
        .then(restart)
        .then(resolve);
      return 'lost';
    };
  };
  /** Resolves when the program is there again. */
  const killed = async () => {
    await until(() => killing !== undefined);
    await killing;
    killing = undefined;
  };
  const tickets = async () =>
    (await server.send('GET', '/api/v1/tickets')).json().items as {
      attachments?: { name: string; bytes: number; url: string }[];
    }[];
  return { tab, proxy, faults, killAfter, killed, tickets };
}

test('attaches files over cuts, and a program that is killed before it answers leaves one document', {
  timeout: 180_000,
}, async (context) => {
  const { tab, proxy, faults, killAfter, killed, tickets } = await openDesk(context);
  killAfter((method, url) => method === 'POST' && url === '/api/v1/tickets');
  await tab.getByRole('textbox', { name: 'Question' }).fill('The mast is bent');
  await tab.getByRole('button', { name: 'Ask' }).click();
  const item = tab.getByRole('listitem').filter({ hasText: 'The mast is bent' });
  await killed();
  await tab.reload();
  await item.waitFor();
  assert.equal(await item.count(), 1);
  assert.equal((await tickets()).length, 1);

  // A long file is cut in the middle by the end of the program, and goes on.
  const octets = Buffer.alloc(3_000_000, 'mast ');
  const first = proxy.passed.length;
  killAfter((method, url) => method === 'PATCH' && url.includes('/uploads/') && proxy.count('PATCH') > 2);
  const choosing = tab.getByLabel('Attach to The mast is bent');
  await choosing.setInputFiles({ name: 'log.bin', mimeType: 'application/x-log', buffer: octets });
  const bar = tab.getByRole('progressbar', { name: 'Upload' });
  await until(() => proxy.count('PATCH') > 2);
  assert.ok((await bar.evaluate((each) => (each as unknown as { value: number }).value)) > 0);
  await killed();
  await item.getByRole('link', { name: 'log.bin' }).waitFor();
  assert.match((await item.textContent()) ?? '', /2,929\.7 KiB/);
  const sent = proxy.passed.slice(first);
  const count = (method: string, path: string) =>
    sent.filter((each) => each.method === method && each.url.includes(path)).length;
  assert.equal(count('POST', '/uploads'), 1, 'nothing began anew');
  // Chromium sends the chunk again by itself, and is told the offset (409).
  const offsets = sent.flatMap(({ headers }) => headers['upload-offset'] ?? []);
  assert.equal(offsets.filter((offset) => offset === '0').length, 1, String(offsets));

  // A picture is dropped, and the program ends after the commit that names it.
  killAfter((method, url) => method === 'POST' && url.endsWith('/attachments'));
  const dropped = await tab.evaluateHandle(`(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 48 });
    canvas.getContext('2d').fillRect(8, 8, 32, 32);
    const transfer = new DataTransfer();
    const blob = await new Promise((resolve) => canvas.toBlob(resolve));
    transfer.items.add(new File([blob], 'mast.png', { type: 'image/png' }));
    return transfer;
  })()`);
  await item.dispatchEvent('dragover', { dataTransfer: dropped });
  await item.dispatchEvent('drop', { dataTransfer: dropped });
  await killed();
  const picture = item.getByRole('img', { name: 'mast.png' });
  await picture.waitFor();
  await until(() =>
    picture.evaluate((each) => (each as unknown as { naturalWidth: number }).naturalWidth === 64),
  );
  const [ticket] = await tickets();
  assert.deepEqual(
    ticket?.attachments?.map(({ name, bytes }) => [name, name === 'log.bin' ? bytes : 0]),
    [
      ['log.bin', octets.length],
      ['mast.png', 0],
    ],
  );
  const saving = tab.waitForEvent('download');
  await item.getByRole('link', { name: 'log.bin' }).click();
  assert.equal((await saving).suggestedFilename(), 'log.bin');
  if (process.env.COMITY_TEST_PICTURE !== undefined)
    await tab.screenshot({ path: process.env.COMITY_TEST_PICTURE });
  assert.deepEqual(faults, []);
});

test('goes on with an upload after a reload, when the same file is chosen again', {
  timeout: 120_000,
}, async (context) => {
  const { tab, proxy, faults, tickets } = await openDesk(context);
  await tab.getByRole('textbox', { name: 'Question' }).fill('The mast is bent');
  await tab.getByRole('button', { name: 'Ask' }).click();
  const item = tab.getByRole('listitem').filter({ hasText: 'The mast is bent' });
  await until(async () => (await tickets()).length === 1);
  await tab.reload();
  await item.waitFor();
  const path = join(temporaryFolder(), 'log.bin');
  await writeFile(path, Buffer.alloc(3_000_000, 'mast '));
  const choose = () => tab.getByLabel('Attach to The mast is bent').setInputFiles(path);
  const held = Promise.withResolvers<void>();
  let chunks = 0;
  proxy.fault = ({ method, url }) =>
    method === 'PATCH' && url.includes('/uploads/') && ++chunks > 2 ? held.promise : undefined;
  await choose();
  await until(() => chunks > 2);
  await tab.reload();
  await item.waitFor();
  proxy.fault = () => undefined;
  const first = proxy.passed.length;
  await choose();
  await item.getByRole('link', { name: 'log.bin' }).waitFor();
  held.resolve();
  const sent = proxy.passed.slice(first).filter(({ url }) => url.includes('/uploads'));
  assert.equal(sent[0]?.method, 'HEAD');
  assert.ok(sent.slice(1).every(({ method }) => method === 'PATCH'));
  assert.ok(Number(sent[1]?.headers['upload-offset']) > 0);
  assert.equal(await tab.evaluate(`localStorage.getItem('comity.uploads')`), '[]');
  const [ticket] = await tickets();
  assert.deepEqual(
    ticket?.attachments?.map(({ bytes }) => bytes),
    [3_000_000],
  );
  assert.deepEqual(faults, []);
});
