/** Events in memory for a moment: read once for many endpoints, bounded, and forgotten before they could be wrong for long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Row } from '../../../src/store/store.ts';
import { createEventSource } from '../../../src/webhooks/sending/sent-event.ts';
import { servicesOver } from '../../harness/services-over.ts';

const times = { createdAt: 1, updatedAt: 1, deletedAt: null };

/** A store of events of ten characters that counts what is read, at once or later. */
function counting(later: boolean) {
  const reads: string[] = [];
  const clock = { now: 0 };
  const read = (_table: string, id: string): Row | Promise<Row> => {
    reads.push(id);
    const row: Row = { id, rev: 1, doc: `${reads.length}`.padStart(10), owner: null, ...times };
    return later ? Promise.resolve(row) : row;
  };
  const services = servicesOver({ read }, { clock: () => clock.now });
  const source = createEventSource(services, { octetsMax: 8000, ageMsMax: 2000 });
  return { reads, clock, source };
}

for (const later of [false, true]) {
  const how = later ? 'a store that answers later' : 'a store that answers at once';

  test(`${how}: an event is read once for all that want it in the same moment`, async () => {
    const { reads, source } = counting(later);
    const [one, other] = await Promise.all([source.read('a'), source.read('a')]);
    assert.equal(one?.doc, other?.doc);
    await source.read('a');
    assert.deepEqual(reads, ['a']);
  });

  test(`${how}: a copy is used for less than two seconds, also by a clock that steps back`, async () => {
    const { reads, clock, source } = counting(later);
    await source.read('a');
    clock.now = 1999;
    await source.read('a');
    assert.equal(reads.length, 1);
    clock.now = 2000;
    await source.read('a');
    assert.equal(reads.length, 2);
    clock.now = -1;
    await source.read('a');
    assert.equal(reads.length, 3);
  });

  test(`${how}: holds no more octets than it may, and forgets what was read first`, async () => {
    const { reads, source } = counting(later);
    const ids = Array.from({ length: 50 }, (_, at) => `event ${at}`);
    for (const id of ids) await source.read(id);
    await source.read('event 49');
    assert.deepEqual(reads, ids);
    await source.read('event 0');
    assert.deepEqual(reads, [...ids, 'event 0']);
  });

  test(`${how}: what is forgotten is read anew, even if it was being read`, async () => {
    const { reads, source } = counting(later);
    const reading = source.read('a');
    source.forget('a');
    await reading;
    await source.read('a');
    assert.deepEqual(reads, ['a', 'a']);
  });
}
