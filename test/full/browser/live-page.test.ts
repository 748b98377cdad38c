/** The example page in two windows of a real browser: both show what is there now, also after a restart, and a change in both is told apart. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../harness/command-line.ts';
import { shopConfig, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { openBrowser } from './chromium.ts';

const script = fileURLToPath(new URL('../../../examples/live-page/serve.ts', import.meta.url));

test('the types of the example are those that the shop prints', async () => {
  const { stdout } = await runCommand(['types', '-c', shopConfig]);
  assert.equal(readFileSync(new URL('../../../examples/live-page/api.ts', import.meta.url), 'utf8'), stdout);
});

test('the example page stays live in two windows, over a restart of the program', async (context) => {
  const served = spawn(process.execPath, [script], {
    env: { PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(served.stdout.setEncoding('utf8'), 'data')) as [string];
  const origin = line.trim().replace('page on ', '');
  const folder = temporaryFolder();
  const env = { COMITY_CORS_ORIGINS: origin };
  let program = await startServer({ folder, env });
  const browser = await openBrowser();
  context.after(async () => {
    await browser.close();
    await program.stop();
    served.kill();
    await once(served, 'exit');
  });
  const url = `${origin}/?api=${encodeURIComponent(`${program.url}/api/v1`)}`;
  const window = await browser.newContext();
  const [one, other] = [await window.newPage(), await window.newPage()];
  await Promise.all([one.goto(url), other.goto(url)]);
  const live = (tab: typeof one, text: string) => tab.getByRole('status').filter({ hasText: text }).waitFor();
  await live(one, '0 categories, live');
  await live(other, '0 categories, live');
  await one.getByLabel('E-mail').fill('ada@shop.example');
  await one.getByLabel('Password').fill('correct horse battery');
  await one.getByRole('button', { name: 'Sign in' }).click();
  for (const name of ['Kitchen', 'Garden']) {
    await one.locator('#add input').fill(name);
    await one.getByRole('button', { name: 'Add' }).click();
    await live(other, name === 'Kitchen' ? '1 categories, live' : '2 categories, live');
  }
  const names = (tab: typeof one) =>
    tab
      .locator('li input')
      .evaluateAll((inputs) => inputs.map((input) => (input as { value?: string }).value));
  assert.deepEqual(await names(other), ['Garden', 'Kitchen']);

  // The second window edits what the first one changes meanwhile; it has the session from the storage.
  await other.reload();
  await live(other, '2 categories, live');
  await other.locator('li input').first().focus();
  await one.locator('li input').first().fill('Yard');
  await one.locator('li input').first().press('Enter');
  await live(one, '2 categories, live');
  await one.waitForFunction("document.querySelectorAll('li input')[1]?.value === 'Yard'");
  await other.waitForFunction(
    "document.querySelectorAll('li')[0]?.querySelector('input').value === 'Kitchen'",
  );
  await other.evaluate(
    "[...document.querySelectorAll('li input')].find((input) => input.value === 'Garden').focus()",
  );
  await other.keyboard.type('s');
  await other.keyboard.press('Enter');
  await other.getByRole('alert').filter({ hasText: 'Someone else changed name' }).waitFor();

  const { port } = program;
  await program.stop();
  program = await startServer({ folder, env: { ...env, COMITY_PORT: String(port) } });
  await program.send('POST', '/api/v1/categories', { json: { name: 'Attic' } });
  for (const tab of [one, other]) await live(tab, '3 categories, live');
});
