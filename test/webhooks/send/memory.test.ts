/** Events that are being sent are held within a budget of octets, of which each tenant or owner has a share. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExchangeOutcome } from '../../../src/egress/exchange.ts';
import { MemoryBudget } from '../../../src/memory/budget.ts';
import { authenticated } from '../../../src/model/principal.ts';
import { createSend } from '../../../src/webhooks/sending/send-delivery.ts';
import { createEventSource } from '../../../src/webhooks/sending/sent-event.ts';
import { noStarts } from '../../harness/due-work.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { until } from '../../harness/until.ts';
import { claimOf, sendBy, startSender } from './fixture.ts';

const KiB = 1024;
const url = new URL('https://receiver.example/');
const other = authenticated({ id: 'usr_2', tenant: 'other', scopes: ['webhooks'] });
const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 };
const aborted: ExchangeOutcome = { kind: 'failed', failure: 'aborted', message: 'the engine stops', timing };

const store = await openEmbedded();
const { post, keys, clock } = await startSender(store);
const eventId = await post(`{"id":"prd_1","text":"${'x'.repeat(100 * KiB)}"}`);
/** What one attempt counts for. */
const each = 3 * Buffer.byteLength((await store.read('events', eventId))?.doc ?? '');

/** Sends to receivers that take the body and do not answer until they are told to. */
function startHanging(memory: MemoryBudget) {
  const hanging: (() => void)[] = [];
  const stop = new AbortController();
  const send = createSend({
    events: createEventSource(servicesOver(store, { clock: () => clock.now })),
    exchange({ signal }, done) {
      if (signal?.aborted) done(aborted);
      else hanging.push(() => done(aborted));
    },
    directory: { get: () => undefined, mayReceive: async () => true },
    view: () => undefined,
    starts: noStarts,
    keys,
    memory,
    clock: () => clock.now,
    version: '1.2.3',
    webhookTimeoutMs: 5000,
  });
  return {
    hanging,
    stop,
    send: (given = {}) => sendBy(send, claimOf({ scheme: 'plain', url, eventId, ...given }), stop.signal),
  };
}

test('holds no more events than there is room for, and sends the rest as room comes', async () => {
  const memory = new MemoryBudget({ bytesMax: 8 * each, sharePercent: 50 });
  const { hanging, send } = startHanging(memory);
  const all = Array.from({ length: 10 }, () => send());
  await until(() => hanging.length === 4, 'as many as half of the budget holds are under way');
  assert.equal(memory.bytes('deliveries'), 4 * each);
  const theirs = send({ principal: other });
  await until(() => hanging.length === 5, 'another tenant does not wait for them');
  for (let answered = 0; answered < 11; answered += 1) {
    await until(() => hanging.length > answered, 'the next is under way');
    assert.ok(memory.bytes() <= 7 * each);
    hanging[answered]?.();
  }
  await Promise.all([...all, theirs]);
  assert.equal(memory.bytes(), 0);
});

test('sends an event that is longer than a share, one at a time', async () => {
  const memory = new MemoryBudget({ bytesMax: each, sharePercent: 50 });
  const { hanging, send } = startHanging(memory);
  const all = [send(), send()];
  await until(() => hanging.length === 1, 'the first is under way');
  hanging[0]?.();
  await until(() => hanging.length === 2, 'then the second');
  hanging[1]?.();
  await Promise.all(all);
  assert.equal(memory.bytes(), 0);
});

test('waits no longer for room when the engine stops', async () => {
  const memory = new MemoryBudget({ bytesMax: 2 * each, sharePercent: 50 });
  const { hanging, stop, send } = startHanging(memory);
  const first = send();
  await until(() => hanging.length === 1, 'the first is under way');
  const waiting = send();
  stop.abort();
  assert.deepEqual((await waiting).outcome, aborted);
  hanging[0]?.();
  await first;
  assert.equal(memory.bytes(), 0);
});
