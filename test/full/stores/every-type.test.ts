/**
 * Both stores give the same answers, byte for byte, to the same requests in the same order: fields of every type. What an answer should be is
 * asked elsewhere; here PostgreSQL is held to SQLite, and each to the other.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readEvents } from '../../wire/resources/event-reader.ts';
import { filterLists, search, selectAndCount, walkOrders } from './ask-lists.ts';
import { queryForms, queryJson, querySql, storedQueries } from './ask-queries.ts';
import { readRetyped } from './ask-retyped.ts';
import {
  bounds,
  bulkDeletes,
  conditions,
  keysAndPreferences,
  patches,
  references,
  roundTrips,
  uniqueness,
} from './ask-writes.ts';
import { chapters, fixture, pairFor } from './chapters.ts';
import { type Pair, withoutRequestIds } from './pair.ts';
import { sampleBodies } from './sample-rows.ts';

const base = '/api/v1';

describe('every type of field', () => {
  const pair = pairFor(fixture('every-type'));

  chapters(pair, [
    ['makes the rows', makeSamples],
    ['orders and pages', walkOrders],
    ['filters lists', filterLists],
    ['searches', search],
    ['selects, counts and revalidates', selectAndCount],
    ['queries in JSON', queryJson],
    ['queries in SQL', querySql],
    ['queries by form', queryForms],
    ['stores queries', storedQueries],
    ['takes and gives back every value', roundTrips],
    ['keeps the same bounds', bounds],
    ['patches', patches],
    ['judges conditions', conditions],
    ['holds unique values', uniqueness],
    ['holds references', references],
    ['deletes in bulk', bulkDeletes],
    ['replays and defers', keysAndPreferences],
    ['lists everything that was left', listEverything],
    ['streams the log', streamTheLog],
    ['reads rows whose fields were of other types', readRetyped],
  ]);

  it('was asked more than two thousand requests', (context) => {
    context.diagnostic(`${pair().requests} requests`);
    assert.ok(pair().requests > 2000, String(pair().requests));
  });
});

async function makeSamples(pair: Pair): Promise<void> {
  const ids: string[] = [];
  for (const name of ['one', 'two', 'three']) {
    ids.push(String((await pair.ask('POST', `${base}/groups`, 201, { json: { name } })).json().id));
  }
  for (const body of sampleBodies(ids)) {
    await pair.ask('POST', `${base}/samples`, 201, { body, headers: { 'Content-Type': 'application/json' } });
  }
}

async function listEverything(pair: Pair): Promise<void> {
  for (const collection of ['samples', 'groups', 'pages', 'events']) {
    let answer = await pair.ask('GET', `${base}/${collection}?limit=1000`, 200);
    for (let target = answer.link('next'); target !== undefined; target = answer.link('next')) {
      answer = await pair.ask('GET', target, 200);
    }
    pair.settle();
  }
}

async function streamTheLog(pair: Pair): Promise<void> {
  const { items } = (await pair.ask('GET', `${base}/events?limit=1000`, 200)).json() as {
    items: { id: string }[];
  };
  const resumed = items[2]?.id ?? '';
  const wanted = items.length - 3;
  const seen = [];
  for (const port of pair.ports) {
    const reader = await readEvents(port, { lastEventId: resumed });
    try {
      await reader.until(({ events }) => events.length >= wanted);
    } finally {
      reader.close();
    }
    const events = reader.events.slice(0, wanted);
    seen.push(events.map((event) => ({ ...event, data: withoutRequestIds(event.data) })));
  }
  assert.deepEqual(seen[0], seen[1]);
}
