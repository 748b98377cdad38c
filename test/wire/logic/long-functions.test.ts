/** Functions of an application that go on for long: others are served meanwhile, on both stores, and a client that leaves ends them. */
import assert from 'node:assert/strict';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';
import { until } from '../../harness/until.ts';
import { spun } from './fixtures/long-functions.config.ts';

const config = fileURLToPath(new URL('./fixtures/long-functions.config.ts', import.meta.url));

for (const engine of engineNames) {
  describe(`long functions on ${engine}`, () => {
    let server: RunningServer;
    const start = serversOn(engine, config);
    before(async () => {
      server = await start({ COMITY_HANDLER_READS_MAX: '1000000', COMITY_HOOK_TIMEOUT_MS: '60000' });
    });
    beforeEach(() => {
      spun.isSeen = false;
      spun.ends.length = 0;
    });

    for (const [what, method, path, json] of [
      ['an action that reads', 'POST', 'reads', undefined],
      ['a stream whose calls are refused', 'POST', 'refused', undefined],
      ['a stream that yields nothing', 'GET', 'pieces', undefined],
      ['a hook that reads', 'POST', 'items', { name: 'reads' }],
      [
        'a hook of many writes that reads',
        'POST',
        'items/bulk',
        { items: [{ name: 'reads' }, { name: '' }] },
      ],
    ] as const) {
      test(`${what} lets others be served`, async () => {
        const answer = server.send(method, `/api/v1/${path}`, json === undefined ? {} : { json });
        const live = await server.send('GET', '/health/live');
        spun.isSeen = true;
        assert.equal(live.status, 200);
        assert.ok((await answer).status < 300);
        assert.ok(!spun.ends.includes('held'), 'the event loop was held');
      });
    }

    test('a page of documents that a hook shows slowly lets others be served', async () => {
      const items = Array.from({ length: 300 }, () => ({ name: 'slow' }));
      assert.equal((await server.send('POST', '/api/v1/items/bulk', { json: { items } })).status, 200);
      const order: string[] = [];
      const page = server.send('GET', '/api/v1/items?limit=1000').then(() => order.push('page'));
      for (let asked = 0; asked < 5; asked += 1) await server.send('GET', '/health/live');
      order.push('health');
      await page;
      assert.deepEqual(order, ['health', 'page']);
    });

    for (const path of ['octets', 'pieces', 'waiting']) {
      test(`a client of HTTP/1.1 that leaves ends the generator of ${path}`, async () => {
        const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
        socket.write(`GET /api/v1/${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${adminKey}\r\n\r\n`);
        await new Promise((resolve) => socket.once('data', resolve));
        socket.pause();
        socket.resetAndDestroy();
        await until(() => spun.ends.length > 0);
        assert.deepEqual(spun.ends, ['ended']);
      });

      test(`a client of HTTP/2 that leaves ends the generator of ${path}`, async () => {
        const session = connectHttp2(server.url).on('error', () => undefined);
        const stream = session
          .request({ ':path': `/api/v1/${path}`, 'x-api-key': adminKey })
          .on('error', () => undefined);
        await new Promise((resolve) => stream.once('response', resolve));
        stream.close(8);
        await until(() => spun.ends.length > 0);
        session.destroy();
        assert.deepEqual(spun.ends, ['ended']);
      });
    }

    test('a program that stops ends the generators of its streams', async () => {
      const stopped = await start();
      const answer = stopped.send('GET', '/api/v1/pieces').catch(() => undefined);
      await stopped.send('GET', '/health/live');
      await stopped.stop();
      await answer;
      assert.deepEqual(spun.ends, ['ended']);
    });
  });
}
