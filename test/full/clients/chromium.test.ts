/** Chromium as a client: WebSockets over HTTP/1.1, over HTTP/2, and through the tunnel (§4.10, §4.13). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { openBrowser } from '../browser/chromium.ts';
import { type Served, serveClients } from './served.ts';

let served: Served;
let browser: Browser;

before(async () => {
  served = await serveClients();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await served?.end();
});

/** Opens a WebSocket on a page of the same origin, subscribes, and waits for what it is told. */
const watch = `async (url) => {
  const socket = new WebSocket(url.replace('http', 'ws') + '/api/v1/realtime', 'comity.v1');
  const said = [];
  window.said = said;
  window.wasClosed = new Promise((resolve) => { socket.onclose = ({ code }) => resolve(code); });
  socket.onmessage = ({ data }) => said.push(JSON.parse(data));
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = () => reject(new Error('no socket')); });
  socket.send('{"subscribe":["categories.*"]}');
  window.socket = socket;
}`;

async function withPage(
  url: string,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  const page = await context.newPage();
  try {
    await page.goto(`${url}/health/live`);
    await use(page);
  } finally {
    await context.close();
  }
}

async function expectEvent(page: Page, url: string, name: string): Promise<void> {
  await page.evaluate(`(${watch})(${JSON.stringify(url)})`);
  await page.waitForFunction('window.said.some((each) => each.subscribed)');
  await served.program.send('POST', '/api/v1/categories', { json: { name } });
  await page.waitForFunction(
    `window.said.some((each) => each.event?.data.object.name === ${JSON.stringify(name)})`,
  );
  await page.evaluate('window.socket.close(1000)');
  assert.equal(await page.evaluate('window.wasClosed'), 1000);
}

test('opens a WebSocket over HTTP/1.1', () =>
  withPage(served.program.url, {}, (page) => expectEvent(page, served.program.url, 'seen over HTTP/1.1')));

test('opens a WebSocket on the HTTP/2 connection of its page', () =>
  withPage(served.tlsUrl, {}, async (page) => {
    const protocol = 'performance.getEntriesByType("navigation")[0].nextHopProtocol';
    assert.equal(await page.evaluate(protocol), 'h2');
    const devTools = await page.context().newCDPSession(page);
    const statuses: number[] = [];
    devTools.on('Network.webSocketHandshakeResponseReceived', ({ response }) =>
      statuses.push(response.status),
    );
    await devTools.send('Network.enable');
    await expectEvent(page, served.tlsUrl, 'seen over HTTP/2');
    assert.deepEqual(statuses, [200]);
  }));

test('goes through the tunnel, to a page and by a WebSocket', async () => {
  const proxy = {
    server: served.program.url,
    username: served.tunnelKey,
    password: '',
    bypass: '<-loopback>',
  };
  const context = await browser.newContext({ ignoreHTTPSErrors: true, proxy });
  const page = await context.newPage();
  await page.goto(`${served.tlsDestination}/page`);
  assert.equal(await page.evaluate('document.body.innerText'), 'GET /page');
  await page.goto(`${served.destination}/forwarded`);
  assert.equal(await page.evaluate('document.body.innerText'), 'GET /forwarded');
  const echo = `new Promise((resolve, reject) => {
    const socket = new WebSocket(${JSON.stringify(served.destination.replace('http', 'ws'))});
    socket.onopen = () => socket.send('there and back');
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = () => reject(new Error('no socket'));
  })`;
  assert.equal(await page.evaluate(echo), 'there and back');
  await context.close();
});
