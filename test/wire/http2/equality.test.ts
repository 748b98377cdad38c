/** Answers over HTTP/2 are those over HTTP/1.1, field for field, for the requests that hold the two stores to each other. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventLists, everyMethod, refusals, shopResources } from '../../full/stores/ask-shop.ts';
import type { Pair } from '../../full/stores/pair.ts';
import { shopConfig } from '../../harness/running-server.ts';
import { type ProtocolPair, startProtocolPair } from './protocol-pair.ts';

let pair: ProtocolPair;

before(async () => {
  pair = await startProtocolPair(shopConfig);
});

after(() => pair.stop());

for (const [title, ask] of [
  ['every media type', shopResources],
  ['every method on every path', everyMethod],
  ['refusals', refusals],
  ['events', eventLists],
] as const) {
  test(`answers ${title} alike over HTTP/1.1 and HTTP/2`, async () => {
    // None of these races, restarts or waits for what goes on behind an answer.
    await ask(pair as Pair);
    pair.settle();
  });
}

test('has compared requests enough for that to mean something', () => {
  assert.ok(pair.requests > 60, `${pair.requests}`);
});
