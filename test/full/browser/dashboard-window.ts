/** A window of the dashboard in a real browser, which gathers what the page should not do. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContext, Page } from 'playwright-core';
import { adminKey } from '../../harness/exchange.ts';

export type DashboardWindow = {
  readonly page: Page;
  /** Errors, violations of the policy, and requests of other hosts. */
  readonly complaints: readonly string[];
};

/** @param url of the program */
export async function openWindow(context: BrowserContext, url: string): Promise<DashboardWindow> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // The browser reports each status of 400 and above that the program means to send.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url()))
      complaints.push(request.url());
  });
  return { page, complaints };
}

/** Loads the page again, which has forgotten the key. */
export async function reloadDashboard(page: Page): Promise<void> {
  await page.reload();
  await page.getByText('Only this page has the key: a reload asks for it again.').waitFor();
  await useKey(page);
}

async function useKey(page: Page): Promise<void> {
  await page.getByLabel('API key').fill(adminKey);
  await page.getByRole('button', { name: 'Use the key' }).click();
}

/** Enters with the administrator key and goes to a view, such as `#/live`. */
export async function enterDashboard(page: Page, url: string, view = ''): Promise<void> {
  await page.goto(`${url}/dashboard`);
  await useKey(page);
  const stored = await page.evaluate(
    'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])',
  );
  if (String(stored).includes(adminKey)) throw new Error('the browser keeps the key');
  const overview = page.getByRole('heading', { name: 'Collections' });
  // Without an account of an administrator, the page for the first one comes before.
  const later = page.getByRole('button', { name: 'Later' });
  await later.or(overview).waitFor();
  if (await later.isVisible()) await later.click();
  await overview.waitFor();
  if (view !== '') await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** By axe-core, which the policy of the page lets no page load: the browser evaluates it. */
export async function violationsOn(on: Page): Promise<readonly string[]> {
  await on.evaluate(axe);
  const found = (await on.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
