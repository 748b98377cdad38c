/** HTTP/3 by Caddy before Comity, with examples/proxies/Caddyfile as it stands but for ports, files and names, and Chromium as its client. */
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { Agent, request } from 'undici';
import { cert } from '../../accounts/mail/certificate.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from '../browser/chromium.ts';
import { findCommand } from './command.ts';
import { answersAt, caddy, type RunningProxy, startProxy } from './proxy-program.ts';

const path = findCommand(caddy.command);

describe('HTTP/3', { skip: path === undefined ? `${caddy.command} is not installed` : false }, () => {
  let program: RunningServer;
  let proxy: RunningProxy;
  let browser: Browser;
  let page: Page;

  before(async () => {
    program = await startServer({ env: { COMITY_BEHIND_PROXY: 'on' } });
    const configuration = readFileSync('examples/proxies/Caddyfile', 'utf8');
    const address = { '127.0.0.1:4000': `127.0.0.1:${program.port}` };
    proxy = await startProxy(caddy, path ?? '', configuration, address, answersAt);
    const publicKey = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
    const keyDigest = createHash('sha256').update(publicKey).digest('base64');
    browser = await openBrowser({ origin: `localhost:${proxy.port}`, keyDigest });
    page = await browser.newPage();
    await page.goto(`https://localhost:${proxy.port}/health/live`);
  });

  after(async () => {
    await browser?.close();
    await proxy?.stop();
    await program?.stop();
  });

  type Answer = { readonly status: number; readonly tag: string | null; readonly text: string };

  /** Fetches in the page, which must do it over HTTP/3. */
  async function fetchOverHttp3(
    target: string,
    options: { method?: string; headers?: object; body?: string } = {},
  ): Promise<Answer> {
    const headers = { 'x-api-key': adminKey, ...options.headers };
    const found = (await page.evaluate(`(async () => {
      performance.clearResourceTimings();
      const answer = await fetch(${JSON.stringify(target)}, ${JSON.stringify({ ...options, headers, cache: 'no-store' })});
      const text = await answer.text();
      while (performance.getEntriesByType('resource').length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      const [{ nextHopProtocol }] = performance.getEntriesByType('resource');
      return { status: answer.status, tag: answer.headers.get('etag'), text, nextHopProtocol };
    })()`)) as Answer & { readonly nextHopProtocol: string };
    assert.equal(found.nextHopProtocol, 'h3');
    return found;
  }

  test('is offered by Alt-Svc, which Caddy sets', async () => {
    const dispatcher = new Agent({ connect: { ca: cert } });
    const { headers, body } = await request(`https://localhost:${proxy.port}/health/live`, { dispatcher });
    await body.dump();
    assert.match(String(headers['alt-svc']), new RegExp(`^h3=":${proxy.port}"`));
    await dispatcher.destroy();
  });

  test('carries GET, 304, QUERY, POST and a PATCH with the tag of what was read', async () => {
    const json = { 'content-type': 'application/json' };
    const body = JSON.stringify({ title: 'long', body: 'text '.repeat(2000) });
    const made = await fetchOverHttp3('/api/v1/articles', { method: 'POST', headers: json, body });
    assert.equal(made.status, 201, made.text);
    const target = `/api/v1/articles/${(JSON.parse(made.text) as { readonly id: string }).id}`;
    const read = await fetchOverHttp3(target);
    assert.equal(read.status, 200);
    const tag = read.tag ?? assert.fail('no tag');
    assert.equal((await fetchOverHttp3(target, { headers: { 'if-none-match': tag } })).status, 304);
    const change = { method: 'PATCH', headers: { ...json, 'if-match': tag }, body: '{"title":"changed"}' };
    assert.equal((await fetchOverHttp3(target, change)).status, 200);
    assert.equal((await fetchOverHttp3(target, change)).status, 412);
    const query = { method: 'QUERY', headers: json, body: '{"filter":{"title":"changed"}}' };
    const { items } = JSON.parse((await fetchOverHttp3('/api/v1/articles', query)).text);
    assert.equal(items.length, 1);
  });

  test('carries an event stream, whose events come before its end', async () => {
    await page.evaluate(`(async () => {
      const headers = { accept: 'text/event-stream', 'x-api-key': ${JSON.stringify(adminKey)} };
      const stream = (await fetch('/api/v1/events', { headers })).body.pipeThrough(new TextDecoderStream());
      window.received = '';
      stream.pipeTo(new WritableStream({ write: (text) => { window.received += text; } }));
    })()`);
    await page.waitForFunction('window.received.includes(": comity events")');
    for (const name of ['one', 'two']) {
      const made = await program.send('POST', '/api/v1/categories', { json: { name } });
      const { id } = made.json() as { readonly id: string };
      await page.waitForFunction(`window.received.includes(${JSON.stringify(id)})`);
    }
  });

  test('leaves WebSockets of the same page to HTTP/1.1 or HTTP/2', async () => {
    const said = await page.evaluate(`new Promise((resolve, reject) => {
      const socket = new WebSocket('wss://' + location.host + '/api/v1/realtime', 'comity.v1');
      socket.onerror = () => reject(new Error('no socket'));
      socket.onopen = () => socket.send('{"subscribe":["*"]}');
      socket.onmessage = ({ data }) => { socket.close(1000); resolve(data); };
    })`);
    assert.equal(said, '{"subscribed":["*"]}');
  });
});
