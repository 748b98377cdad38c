/** The example page in a real browser: it follows events of another origin, by ticket, and misses none when the program restarts. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { adminKey } from '../../harness/exchange.ts';
import { listen } from '../../harness/listening.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { openBrowser } from './chromium.ts';

const page = new URL('../../../examples/realtime-page/index.html', import.meta.url);

async function makeCategory(program: RunningServer, name: string): Promise<void> {
  const answer = await program.send('POST', '/api/v1/categories', { json: { name } });
  assert.equal(answer.status, 201);
}

test('the example page shows events as they happen, and those of a restart once it is back', async (context) => {
  const html = await readFile(page);
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    response.end(html);
  });
  const { url: origin, close } = await listen(server);
  const folder = temporaryFolder();
  const env = { COMITY_CORS_ORIGINS: origin };
  let program = await startServer({ folder, env });
  const browser = await openBrowser();
  context.after(async () => {
    await browser.close();
    await program.stop();
    await close();
  });

  const tab = await browser.newPage();
  await tab.goto(`${origin}/?api=${encodeURIComponent(`${program.url}/api/v1`)}&patterns=categories.*`);
  const status = tab.getByRole('status');
  await status.filter({ hasText: 'following categories.*' }).waitFor();
  await tab.getByLabel('Key').fill('sk_wrong');
  await tab.getByRole('button').click();
  await status.filter({ hasText: 'trying again' }).waitFor();
  assert.match((await status.textContent()) ?? '', /^invalid API key;|^invalid token;/);
  await tab.getByLabel('Key').fill(adminKey);
  // An address may try once a second: the page tries again by itself.
  await tab.getByRole('button').click();
  await status.filter({ hasText: 'following categories.*' }).waitFor();
  await makeCategory(program, 'before the restart');
  await tab.getByRole('listitem').filter({ hasText: 'before the restart' }).waitFor();

  const { port } = program;
  await program.stop();
  program = await startServer({ folder, env: { ...env, COMITY_PORT: String(port) } });
  for (const name of ['missed one', 'missed two']) await makeCategory(program, name);
  await status.filter({ hasText: 'following categories.*' }).waitFor();
  await tab.getByRole('listitem').filter({ hasText: 'missed two' }).waitFor();
  await makeCategory(program, 'live again');
  await tab.getByRole('listitem').filter({ hasText: 'live again' }).waitFor();
  const shown = await tab.getByRole('listitem').locator('code').allTextContents();
  assert.deepEqual(
    shown.map((text) => (JSON.parse(text) as { name: string }).name),
    ['live again', 'missed two', 'missed one', 'before the restart'],
  );
});
