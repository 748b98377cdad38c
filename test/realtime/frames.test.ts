/** Frames of `comity.v1`: what a client may say, and the sentence that it is told where it said something else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readClientFrame } from '../../src/realtime/subprotocol.ts';

test('reads subscriptions, with and without a place, and their ends', () => {
  const sound: readonly (readonly [string, unknown])[] = [
    ['{"subscribe":["a.*"]}', { kind: 'subscribe', patterns: ['a.*'], after: undefined }],
    ['{"subscribe":["a"],"after":""}', { kind: 'subscribe', patterns: ['a'], after: '' }],
    ['{"subscribe":["a"],"after":"now"}', { kind: 'subscribe', patterns: ['a'], after: undefined }],
    [' {"after":"evt_1","subscribe":[]} ', { kind: 'subscribe', patterns: [], after: 'evt_1' }],
    ['{"unsubscribe":["a.*","*"]}', { kind: 'unsubscribe', patterns: ['a.*', '*'] }],
  ];
  for (const [text, frame] of sound) assert.deepEqual(readClientFrame(text, 2), { ok: true, frame });
});

const refused: readonly (readonly [text: string, sentence: RegExp])[] = [
  ['', /^a frame must be JSON: .* at character 0$/],
  ['{"subscribe":["a"]', /must be JSON/],
  ['{"subscribe":["a"],"subscribe":["b"]}', /must be JSON/],
  ['{"subscribe":["a"],"__proto__":{}}', /must be JSON/],
  ['[[[[[]]]]]', /must be JSON/],
  ['null', /must be an object/],
  ['["subscribe"]', /must be an object/],
  ['"subscribe"', /must be an object/],
  ['{}', /either subscribe or unsubscribe/],
  ['{"subscribe":["a"],"unsubscribe":["b"]}', /either subscribe or unsubscribe/],
  ['{"subscribe":["a"],"since":"x"}', /^unknown member "since"; a frame may have/],
  ['{"unsubscribe":["a"],"after":"x"}', /^after requires subscribe$/],
  ['{"after":"x"}', /either subscribe or unsubscribe/],
  ['{"subscribe":["a"],"after":null}', /^after must be the id of an event/],
  [`{"subscribe":["a"],"after":"${'x'.repeat(256)}"}`, /^after must be the id of an event/],
  ['{"subscribe":"a"}', /^subscribe must be a list of strings/],
  ['{"subscribe":["a",1]}', /^subscribe must be a list of strings/],
  ['{"unsubscribe":{"a":1}}', /^unsubscribe must be a list of strings/],
  ['{"subscribe":["a","b","c"]}', /^subscribe may name at most 2 patterns$/],
  ['{"subscribe":["a","b c"]}', /^subscribe\[1\] must be segments/],
  ['{"subscribe":["*.created"]}', /^subscribe\[0\] may have a \* only/],
  [`{"unsubscribe":["${'x'.repeat(256)}"]}`, /^unsubscribe\[0\] must have at most 200 characters$/],
];

for (const [text, sentence] of refused) {
  test(`refuses ${text.length > 60 ? `${text.slice(0, 40)}...` : JSON.stringify(text)} with a sentence`, () => {
    const read = readClientFrame(text, 2);
    assert.equal(read.ok, false);
    if (!read.ok) assert.match(read.error, sentence);
  });
}
