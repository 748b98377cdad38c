/** What requests make out of less is charged before it is made: never less than there are items or ids, and refused when too much waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OctetLine } from '../../src/memory/program-memory.ts';
import {
  bulkBound,
  bulkDeleteOctets,
  bulkOctets,
  handedOnOctets,
  messageBound,
  messageOctets,
  workRules,
} from '../../src/memory/work-rules.ts';
import { readInLine } from '../../src/resources/collection/list-page.ts';
import { startServer } from '../harness/running-server.ts';
import { until } from '../harness/until.ts';

const octets = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

test('a bulk request is charged for each of its items, and one that is coded for as many as may be', () => {
  const { bulkItem, bulkOctet, deletedId } = workRules;
  const content = octets({ items: [{}, { title: '{' }, {}] });
  assert.ok(bulkOctets(content, 1000) >= 3 * bulkItem.octets + content.length * bulkOctet.octets);
  const most = octets({ items: Array.from({ length: 50 }, () => ({})) });
  assert.equal(bulkOctets(most, 10), 10 * bulkItem.octets + most.length * bulkOctet.octets);
  assert.equal(bulkOctets(undefined, 10), 10 * bulkItem.octets);
  assert.equal(bulkDeleteOctets(octets({ ids: ['a', 'b', 'c'] }), 1000), 3 * deletedId.octets);
  assert.equal(bulkDeleteOctets(undefined, 10), 10 * deletedId.octets);
});

test('the longest content that is taken is charged no more than the whole budget, and the refusal says why', () => {
  const MiB = 1024 * 1024;
  for (const memoryBytes of [16, 47, 48, 64, 128, 200].map((size) => size * MiB)) {
    const message = messageBound({ most: 25 * MiB, memoryBytes });
    assert.ok(messageOctets(message.contentBytesMax) <= memoryBytes, `${memoryBytes}`);
    assert.ok(handedOnOctets(message.contentBytesMax) <= memoryBytes, `${memoryBytes}`);
    const bulk = bulkBound(1000, { most: 4 * MiB, memoryBytes });
    const content = octets({ items: Array.from({ length: 1000 }, () => ({})) });
    const longest = new Uint8Array(bulk.contentBytesMax);
    longest.set(content);
    assert.ok(bulkOctets(longest, 1000) <= memoryBytes, `${memoryBytes}`);
  }
  assert.deepEqual(messageBound({ most: 25 * MiB, memoryBytes: 128 * MiB }), {
    contentBytesMax: 25 * MiB,
    contentBound: `the content of a message has at most ${25 * MiB} octets (COMITY_RECEIVED_BYTES_MAX)`,
  });
  const { contentBytesMax, contentBound } = messageBound({ most: 25 * MiB, memoryBytes: 64 * MiB });
  assert.equal(contentBytesMax, 16 * MiB);
  assert.match(contentBound, /at most 16777216 octets .*67108864 octets.*COMITY_MEMORY_BYTES_MAX/);
});

test('a line is full while as much waits as may', async () => {
  const line = new OctetLine(10, 15);
  assert.equal(line.enter(10), undefined);
  const waiting = [line.enter(10), line.enter(5)];
  assert.equal(line.isFull, true);
  line.leave(10);
  await waiting[0];
  assert.equal(line.isFull, false);
  line.leave(10);
  await waiting[1];
  assert.equal(line.bytes, 5);
});

test('a page is not read for a client that left while it waited in the line', async () => {
  const pageLine = new OctetLine(1);
  const line = { pageLine, pageBytesMax: 1 };
  assert.equal(pageLine.enter(1), undefined);
  const request = { isGone: false };
  let reads = 0;
  const read = () => {
    reads += 1;
    return reads;
  };
  const left = readInLine(line, request, read);
  const stays = readInLine(line, undefined, read);
  request.isGone = true;
  pageLine.leave(1);
  await assert.rejects(async () => left, /the client has left/);
  assert.equal(await stays, 1);
  assert.equal(pageLine.bytes, 0);
});

test('bulk requests beyond what may wait are 503 with Retry-After, and the others are carried out', async () => {
  const server = await startServer({ env: { COMITY_MEMORY_BYTES_MAX: String(16 * 1024 * 1024) } });
  try {
    const items = Array.from({ length: 1000 }, (_, index) => ({ name: `${index}` }));
    const body = JSON.stringify({ items });
    const headers = { 'Content-Type': 'application/json' };
    const answers = await Promise.all(
      Array.from({ length: 70 }, () => server.send('POST', '/api/v1/categories/bulk', { body, headers })),
    );
    const made = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 503);
    assert.equal(made.length + refused.length, answers.length);
    assert.ok(made.length > 0 && refused.length > 0, `${made.length} were made, ${refused.length} refused`);
    assert.equal(refused[0]?.headers['retry-after'], '1');
    await until(async () => {
      const { body: metrics } = await server.send('GET', '/metrics');
      return /^comity_made_bytes 0$/m.test(metrics) && /^comity_made_waiting 0$/m.test(metrics);
    });
  } finally {
    await server.stop();
  }
});
