/** The hub asks many listeners before it passes an event on, some in each turn of the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Hub, type Listener } from '../../src/realtime/hub.ts';
import { createReaders } from '../../src/realtime/readers.ts';
import { createLogViews } from '../../src/resources/events/seen-event.ts';
import { openEmbedded } from '../harness/stores.ts';
import { until } from '../harness/until.ts';
import { administrator, collections, emit } from './realtime-room.ts';

const listenersPerTurn = 1_000;

for (const [count, turns] of [
  [listenersPerTurn, 1],
  [listenersPerTurn + 1, 2],
  [3 * listenersPerTurn, 3],
] as const) {
  test(`asks ${count} listeners in ${turns} turns, and then passes the event on to each once`, async (context) => {
    const store = await openEmbedded(context);
    const hub = new Hub(store, new Map(), { batchEventsMax: 100, batchBytesMax: 65_536 });
    const readers = createReaders(collections, createLogViews(collections)).hold(administrator);
    let turn = 0;
    const asked = new Map<number, number>();
    let heard = 0;
    const listeners = Array.from(
      { length: count },
      (): Listener => ({
        confirm: () => void asked.set(turn, (asked.get(turn) ?? 0) + 1),
        hear: () => {
          heard += 1;
        },
        hearOfChildren: () => assert.fail('no document refers to it'),
        fail: () => assert.fail('the log can be read'),
      }),
    );
    const head = await hub.head();
    for (const listener of listeners) {
      hub.enter(listener, head);
      hub.subscribe('staff.created', readers, listener);
    }
    void emit(store);
    for (; heard === 0; turn += 1) await setImmediate();
    await until(() => heard === count);
    assert.equal(
      [...asked.values()].reduce((sum, each) => sum + each),
      count,
    );
    assert.equal(asked.size, turns);
    assert.ok(Math.max(...asked.values()) <= listenersPerTurn);
    for (const listener of listeners) {
      hub.unsubscribe('staff.created', readers, listener);
      hub.leave(listener);
    }
  });
}
