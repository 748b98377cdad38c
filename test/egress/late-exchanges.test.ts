/** Exchanges that nobody asked for yet: nothing is loaded for them, and one that is asked for after the end is aborted. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { loadSettings } from '../../src/config/load-settings.ts';
import { createDialer } from '../../src/egress/dial.ts';
import { exchanged } from '../../src/egress/exchange.ts';
import { createLateExchanges } from '../../src/egress/late-http.ts';
import { createEgressPolicy } from '../../src/egress/policy.ts';
import { listen } from '../harness/listening.ts';

const { settings } = loadSettings({ COMITY_EGRESS_ALLOW: '127.0.0.0/8' });
const policy = createEgressPolicy({ ...settings, ownListeners: () => [] });
const options = { dial: createDialer({ policy, ...settings }), settings };

function callTo(port: number) {
  const url = new URL(`http://127.0.0.1:${port}/`);
  return { url, method: 'POST', fields: [], body: '', timeoutMs: 5000 } as const;
}

test('the first exchanges that are asked for together are all made', async (context) => {
  const server = createServer((_request, response) => void response.writeHead(204).end());
  const { port } = await listen(server, context);
  const exchanges = createLateExchanges(options);
  assert.equal(exchanges.size(), 0);
  const outcomes = await Promise.all([1, 2, 3].map(() => exchanged(exchanges.exchange, callTo(port))));
  assert.deepEqual(
    outcomes.map((outcome) => outcome.kind === 'answered' && outcome.status),
    [204, 204, 204],
  );
  assert.equal(exchanges.size(), 1);
  await exchanges.close();
  assert.equal((await exchanged(exchanges.exchange, callTo(port))).kind, 'failed');
});

test('nothing is sent after the end, though nothing was before', async () => {
  const exchanges = createLateExchanges(options);
  await exchanges.close();
  const outcome = await exchanged(exchanges.exchange, callTo(9));
  assert.equal(outcome.kind === 'failed' && outcome.failure, 'aborted');
});
