/** Repetitions that come at the same moment, to two processes (§4.14.4): one insert decides, on both stores. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { engines } from '../../harness/stores.ts';
import { standardFields, walkSenders } from './walked-senders.ts';

const repetitions = 30;

for (const [engine, open] of engines) {
  test(`of thirty repetitions at once, at two processes, one is kept, with ${engine}`, async (context) => {
    const rooms = (await open(context)).map((store) => walkSenders(store));
    const [room] = rooms;
    assert(room !== undefined);
    const body = '{"type":"stock.counted","data":{"sku":"A-1","stock":3}}';
    const fields = standardFields(body, 'msg_once', room.clock());
    const answered = await Promise.all(
      Array.from({ length: repetitions }, (_, at) =>
        (rooms[at % rooms.length] ?? room).post('partner', { body, fields }),
      ),
    );
    assert.deepEqual(
      answered.map(({ status }) => status),
      answered.map(() => 204),
    );
    const received = await room.received('partner');
    assert.deepEqual(
      received.map(({ dedupeKey, type }) => [dedupeKey, type]),
      [['msg_once', 'stock.counted']],
    );
    assert.equal((await room.content('partner', 'msg_once')).id, received[0]?.id);
    const outcomes = rooms.flatMap(({ observed }) =>
      observed.map((fact) => 'outcome' in fact && fact.outcome),
    );
    assert.deepEqual(
      [
        outcomes.filter((each) => each === 'accepted').length,
        outcomes.filter((each) => each === 'duplicate').length,
      ],
      [1, repetitions - 1],
    );
    // A message without a body to go with it, or the other way round, would be lost for good.
    const again = await room.post('partner', {
      body,
      fields: standardFields(body, 'msg_next', room.clock()),
    });
    assert.deepEqual([again.status, (await room.received('partner')).length], [204, 2]);
  });
}
