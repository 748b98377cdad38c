/** The client in a real browser, on a page of another origin, as a bundler ships it: with preflights, tabs that share a storage, and lost connections. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, beforeEach, it } from 'node:test';
import { build } from 'esbuild';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { clientOf } from '../../client/client-of.ts';
import { type FaultyProxy, startFaultyProxy } from '../../client/faulty-proxy.ts';
import { adminKey } from '../../harness/exchange.ts';
import { listen } from '../../harness/listening.ts';
import { type RunningServer, repositoryRoot, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { openBrowser } from './chromium.ts';

const endings: (() => unknown)[] = [];
const ending = { after: (dispose: () => unknown) => endings.push(dispose) };
const folder = temporaryFolder();
let env: Readonly<Record<string, string>>;
let program: RunningServer;
let proxy: FaultyProxy;
let browser: Browser;
let origin: string;
let context: BrowserContext;
let page: Page;

before(async () => {
  const { outputFiles } = await build({
    absWorkingDir: repositoryRoot,
    entryPoints: ['src/client/index.ts'],
    ...{ bundle: true, splitting: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022' },
    outdir: 'out',
    write: false,
  });
  const files = new Map(outputFiles.map(({ path, text }) => [path.slice(path.lastIndexOf('/')), text]));
  const server = createServer(({ url = '' }, response) => {
    const script = files.get(url);
    const type = script === undefined ? 'text/html' : 'text/javascript';
    response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` });
    response.end(script ?? '<!doctype html><title>page</title>');
  });
  ({ url: origin } = await listen(server, ending));
  env = { COMITY_CORS_ORIGINS: origin, COMITY_REALTIME_ATTEMPT_MS: '0' };
  program = await startServer({ folder, env });
  proxy = await startFaultyProxy(() => program.port, ending);
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
  for (const end of endings) await end();
});

beforeEach(async () => {
  proxy.fault = () => undefined;
  await context?.close();
  context = await browser.newContext();
  page = await openTab();
});

/** A page with `client` and `createClient` as globals. */
async function openTab(declaration: object = { key: adminKey }): Promise<Page> {
  const tab = await context.newPage();
  await tab.goto(origin);
  const given = JSON.stringify({ baseUrl: proxy.baseUrl, ...declaration });
  await tab.evaluate(
    `import('/index.js').then((made) => { Object.assign(globalThis, made, { ended: 0 });
      globalThis.client = createClient({ ...${given}, onSessionEnd: () => { globalThis.ended += 1; },
        ...(${'storage' in declaration} ? { storage: localStorage } : {}) }); })`,
  );
  return tab;
}

/** Runs code of a page, as the body of an async function. */
const run = <T>(tab: Page, body: string): Promise<T> => tab.evaluate(`(async () => { ${body} })()`);

it('reads, writes and queries from another origin', async () => {
  const seen = await run<Record<string, unknown>>(
    page,
    `const made = await client.categories.create({ name: 'Kitchen' });
     const product = await client.products.create({ name: 'Cup', price: 3, categoryId: made.id });
     await client.products.update(product.id, { price: 4 });
     const merged = await client.products.update(product, { name: 'Mug' });
     const either = { filter: { or: [{ name: 'Mug' }, { name: 'x' }] }, fields: ['name'] };
     const pages = [];
     for (let count = 0; count < 3; count += 1) pages.push(await client.products.query(either));
     const codes = [await client.products.get('missing').catch((error) => error.code)];
     return { merged, pages, codes };`,
  );
  const { merged, pages, codes } = seen as {
    merged: { name: string; price: number };
    pages: { items: { name: string }[] }[];
    codes: string[];
  };
  assert.deepEqual([merged.name, merged.price], ['Mug', 4]);
  assert.deepEqual(
    pages.map(({ items }) => items.map(({ name }) => name)),
    [['Mug'], ['Mug'], ['Mug']],
  );
  assert.deepEqual(codes, ['not_found']);
  assert.equal(proxy.count('QUERY'), 1);
});

it('writes once where a kept connection closes without an answer, which the browser sends again by itself', async () => {
  await run(page, `await client.categories.list()`);
  for (const method of ['POST', 'PATCH', 'PUT', 'DELETE']) {
    let left = 1;
    proxy.fault = (request) => {
      if (request.method !== method) return undefined;
      left -= 1;
      return left >= 0 ? 'lost' : undefined;
    };
    const names = await run<string[]>(
      page,
      `globalThis.once ??= await client.categories.create({ name: 'once' });
       if ('${method}' === 'PATCH') once = await client.categories.update(once, { name: 'patched' });
       if ('${method}' === 'PUT') once = await client.categories.replace(once, { name: 'put' });
       if ('${method}' === 'DELETE') await client.categories.delete(await client.categories.get(once.id));
       const { items } = await client.categories.list({ filter: { name: { in: ['once', 'patched', 'put'] } } });
       return items.map(({ name }) => name);`,
    );
    const [name] = { POST: ['once'], PATCH: ['patched'], PUT: ['put'], DELETE: [] }[method] ?? [];
    assert.deepEqual(names, name === undefined ? [] : [name], method);
    assert.equal(left < 0, true, method);
  }
});

it('keeps tabs signed in that renew one session at once, also where one holds the lock for ever or there is none', async () => {
  const email = 'ada@shop.example';
  const password = 'correct horse battery staple';
  const one = await openTab({ storage: true });
  const other = await openTab({ storage: true });
  await run(one, `await client.auth.register({ email: '${email}', password: '${password}' })`);
  await run(other, `await client.notes.list()`);
  const renew = () => Promise.all([one, other].map((tab) => run(tab, `await client.auth.refresh()`)));
  await renew();
  // As a frozen tab does.
  const frozen = await openTab({ storage: true });
  await run(
    frozen,
    `void navigator.locks.request('comity:${proxy.baseUrl}', () => new Promise(() => {})); await 0;`,
  );
  await renew();
  // As on a page over plain HTTP.
  for (const tab of [one, other])
    await run(
      tab,
      `Object.defineProperty(navigator, 'locks', { value: undefined }); delete crypto.randomUUID;`,
    );
  await renew();
  for (const tab of [one, other]) {
    assert.equal(await run(tab, `return (await client.auth.me()).email`), email);
    assert.equal(await run(tab, `return ended`), 0);
  }
  await run(one, `await client.auth.logout()`);
  assert.equal(await run(other, `return client.notes.list().catch((error) => error.status)`), 401);
  assert.equal(await run(other, `return ended`), 1);
});

for (const transport of ['socket', 'stream', 'poll'] as const)
  it(`keeps a list live over ${transport}, while the network is away and the program starts again`, async () => {
    const writer = clientOf(`${program.url}/api/v1`);
    const tab = await openTab({ key: adminKey, transport });
    const tag = `live-${transport}`;
    const shown = () => run<string>(tab, `return list.page.items.map(({ name }) => name).join()`);
    await run(
      tab,
      `globalThis.list = await client.categories.live({ filter: { name: { in: ['${tag} a', '${tag} b', '${tag} c'] } }, sort: ['name'] })`,
    );
    await writer.categories.create({ name: `${tag} b` });
    await until(async () => (await shown()) === `${tag} b`);
    await context.setOffline(true);
    proxy.cut();
    await until(async () => (await run(tab, `return list.state`)) === 'waiting');
    await writer.categories.create({ name: `${tag} a` });
    await context.setOffline(false);
    await until(async () => (await shown()) === `${tag} a,${tag} b`);
    const { port } = program;
    await program.stop();
    program = await startServer({ folder, env: { ...env, COMITY_PORT: String(port) } });
    await writer.categories.create({ name: `${tag} c` });
    await until(async () => (await shown()) === `${tag} a,${tag} b,${tag} c`);
    await until(async () => (await run(tab, `return list.state`)) === 'live');
  });
