/**
 * Requests whose text a client makes up anew each time. What the program remembers of them must not grow with their number and size: with
 * caches bounded by a count of entries, 150 of the QUERYs below ended the process, out of memory.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { adminKey } from '../../harness/exchange.ts';
import { type Attacked, startAttacked } from './attacked-program.ts';

type Sent = {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
};

const MiB = 1024 * 1024;
const memoryBytes = 512 * MiB;
const lanes = 8;
const unlimited = {
  COMITY_RATE_LIMIT_READS: '0',
  COMITY_RATE_LIMIT_WRITES: '0',
  COMITY_REALTIME_ATTEMPT_MS: '0',
};

/** The status; the body is read and dropped. */
function send(port: number, agent: Agent, { path, method = 'GET', headers, body }: Sent): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, agent, path, method, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', reject);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

/** Sends so many requests, eight at a time; each must be answered with the status. */
async function flood(
  { program }: Attacked,
  count: number,
  status: number,
  make: (index: number) => Sent,
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: lanes });
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      const sent = make(index);
      assert.equal(
        await send(program.port, agent, sent),
        status,
        `${sent.method ?? 'GET'} ${sent.path.slice(0, 80)}`,
      );
    }
  };
  try {
    await Promise.all(Array.from({ length: lanes }, lane));
  } finally {
    agent.destroy();
  }
}

/** Health is judged where single requests are made short; here each holds the processor for as long as 1 MB of JSON takes. */
async function assertAlive(attacked: Attacked): Promise<void> {
  const { failures, answers } = await attacked.health();
  assert.equal(failures, 0, `${failures} of ${answers} probes failed`);
  assert.ok(answers > 0);
  const peak = attacked.peakBytes();
  assert.ok(peak <= memoryBytes, `${Math.round(peak / MiB)} MiB were resident`);
}

test('lives through different QUERYs with long lists of values', async (context) => {
  const env = { ...unlimited, COMITY_QUERY_BYTES_MAX: String(MiB) };
  const attacked = await startAttacked(context, { env, memoryBytes });
  // Two members of gzip, of which only the first differs: 1,000 values of 900 characters.
  const values = Array.from({ length: 999 }, (_, at) => `"${at}-${'x'.repeat(900)}"`);
  const rest = gzipSync(`${values.join(',')}]}}}`, { level: 1 });
  await flood(attacked, 150, 200, (index) => ({
    path: '/api/v1/products',
    method: 'QUERY',
    headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
    body: Buffer.concat([gzipSync(`{"filter":{"name":{"in":["${index}",`), rest]),
  }));
  await assertAlive(attacked);
});

test('lives through different credentials, keys, tickets, paths and queries', async (context) => {
  const attacked = await startAttacked(context, { env: unlimited, memoryBytes });
  const long = 'y'.repeat(6000);
  const count = 400;
  await flood(attacked, count, 401, (index) => ({
    path: '/api/v1/products',
    headers: { Authorization: `Bearer ${index}.${long}` },
  }));
  await flood(attacked, count, 404, (index) => ({ path: `/${index}/${long}` }));
  await flood(attacked, count, 200, (index) => ({
    path: `/api/v1/products?name=${index}-${long}&sort=-price&limit=${1 + (index % 1000)}`,
  }));
  await flood(attacked, count, 200, (index) => ({
    path: '/api/v1/products',
    method: 'QUERY',
    headers: { 'Content-Type': 'application/sql' },
    body: `SELECT * FROM products WHERE name IN ('${index}', '${long}') LIMIT 5`,
  }));
  await flood(attacked, count, 201, (index) => ({
    path: '/api/v1/categories',
    method: 'POST',
    headers: {
      Authorization: `Bearer ${adminKey}`,
      'Idempotency-Key': `"${index}-${'k'.repeat(200)}"`,
      'Content-Type': 'application/json',
    },
    body: `{"name":"${index}"}`,
  }));
  await flood(attacked, count, 401, (index) => ({
    path: `/api/v1/realtime?ticket=${index}.${long}`,
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    },
  }));
  await assertAlive(attacked);
});
