/**
 * Two senders on one store, with their own clocks and timers, and a receiver that speaks HTTP: what each event leads to while both run,
 * and when one of them is gone from one moment to the next.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import type { ExchangeOutcome } from '../../../src/egress/exchange.ts';
import type { Store } from '../../../src/store/store.ts';
import type { Claim } from '../../../src/webhooks/sending/conclude-delivery.ts';
import type { Timers } from '../../../src/work/timers.ts';
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { engines } from '../../harness/stores.ts';
import { until } from '../../harness/until.ts';
import { turnOver } from '../../webhooks/engine/fake-time.ts';
import { answered, openSender } from '../../webhooks/engine/sender.ts';

const endpointIds = Array.from({ length: 24 }, (_, at) => `ep_${at}`);
const leases = { webhookLeaseMs: 2500, webhookTimeoutMs: 700 };
const patienceMs = 20_000;

async function openReceiver(context: TestContext) {
  const { url, received } = await startDeliveryReceiver(context);
  const pool = new Pool(url, { connections: 32 });
  context.after(() => pool.destroy());
  /** How often each delivery came. */
  const came = () => Map.groupBy(received, ({ headers }) => headers['webhook-id']);
  return {
    async post({ delivery, endpoint }: Claim): Promise<ExchangeOutcome> {
      const headers = { 'webhook-id': delivery.id };
      const { pathname: path } = endpoint.url;
      const { statusCode, body } = await pool.request({ path, method: 'POST', body: '{}', headers });
      await body.dump();
      return answered(statusCode);
    },
    /** How often each came, once so many different ones have. */
    async reached(count: number): Promise<readonly number[]> {
      await until(() => came().size >= count, `${count} deliveries`, patienceMs);
      return [...new Set([...came().values()].map(({ length }) => length))];
    },
  };
}

/** A process that can die: then no timer of it rings, it hears of nothing, and writes nothing. */
function mortal(store: Store): {
  readonly store: Store;
  readonly timers: Timers;
  readonly life: { over: boolean };
} {
  const life = { over: false };
  return {
    life,
    store: {
      ...store,
      onChange: (table, listener) => store.onChange(table, () => life.over || listener()),
      onAppend: (listener) => store.onAppend(() => life.over || listener()),
      commit: (unit) => (life.over ? new Promise<never>(() => undefined) : store.commit(unit)),
    },
    timers: {
      after(ms, call) {
        const timer = setTimeout(() => life.over || call(), ms);
        timer.unref();
        return () => clearTimeout(timer);
      },
      monotonic: () => performance.now(),
    },
  };
}

for (const [engine, open] of engines) {
  test(`two processes on ${engine} send each event once, and one goes on for both`, async (context) => {
    const [one, other] = await open(context);
    const receiver = await openReceiver(context);
    const { life, ...parts } = mortal(one);
    const first = await openSender({
      ...{ ...parts, pid: 1, settings: leases },
      answer: (claim) => (life.over ? new Promise<never>(() => undefined) : receiver.post(claim)),
    });
    const second = await openSender({ store: other, pid: 2, settings: leases, answer: receiver.post });
    const owned = () => [first, second].map(({ lanes }) => endpointIds.filter((id) => lanes.owns(id)).length);
    const shared = new Promise<void>((resolve) => {
      function look(): void {
        if (Math.min(...owned()) > 0) resolve();
      }
      first.lanes.onChange(look);
      second.lanes.onChange(look);
      look();
    });
    await first.endpoints(endpointIds);
    await first.engine.start();
    await second.engine.start();
    await Promise.race([shared, wait(patienceMs, undefined, { ref: false })]);
    assert.ok(Math.min(...owned()) > 0, `${owned()} endpoints each`);

    for (let round = 0; round < 5; round += 1) {
      await first.events(2);
      await second.events(2);
    }
    assert.deepEqual(await receiver.reached(20 * endpointIds.length), [1], 'each once');
    assert.deepEqual(
      owned().reduce((sum, count) => sum + count),
      endpointIds.length,
    );

    // What it has not written down would come a second time.
    while (first.engine.counts().inFlight + first.engine.counts().settling > 0) await turnOver();
    life.over = true;
    const before = performance.now();
    await second.events(2);
    assert.deepEqual(await receiver.reached(22 * endpointIds.length), [1], 'each once');
    const waitedMs = performance.now() - before;
    assert.ok(waitedMs > 500, `its lease was respected: ${waitedMs} ms`);
    await second.close();
  });
}
