/** The JSON of a message in a thread of handlers: its values are not made where they would take more than the thread has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { receivedMessage } from '../../../src/logic/threads/handler-arguments.ts';

const MiB = 1024 * 1024;

function message(
  body: string | Uint8Array<ArrayBuffer>,
  contentEncoding: string | null = null,
  { contentType = 'application/json', jsonInForm }: { contentType?: string; jsonInForm?: string } = {},
) {
  return receivedMessage(
    {
      ...{ id: 'rec_1', sender: 'bank', dedupeKey: 'k', type: null, receivedAt: '', attempt: 1 },
      ...{ contentType, contentEncoding, jsonInForm, headers: {}, body },
    },
    64 * MiB,
  );
}

test('a long text is parsed, and what would become more objects than the thread has is refused for good', () => {
  const text = JSON.stringify({ text: 'x'.repeat(20 * MiB) });
  assert.deepEqual(Object.keys(message(new Uint8Array(Buffer.from(text))).json() as object), ['text']);
  const values = `[${'{},'.repeat(1_000_000)}{}]`;
  for (const given of [
    message(new Uint8Array(Buffer.from(values))),
    message(Buffer.from(values).toString('base64')),
    message(new Uint8Array(gzipSync(values)), 'gzip'),
  ]) {
    assert.equal(given.text().length, values.length);
    assert.throws(() => given.json(), {
      name: 'UnprocessableMessage',
      message: /COMITY_HANDLER_HEAP_BYTES_MAX/,
    });
  }
});

test('an integer beyond 2^53 is exact, as text or as BigInt where it is asked for, and otherwise an error with words', () => {
  const given = message(
    Buffer.from(
      '{"id":9007199254740993,"n":-9007199254740993,"text":"9007199254740993","at":1e300,"s":7}',
    ).toString('base64'),
  );
  const others = { text: '9007199254740993', at: 1e300, s: 7 };
  assert.deepEqual(given.json({ integers: 'text' }), {
    ...{ id: '9007199254740993', n: '-9007199254740993' },
    ...others,
  });
  assert.deepEqual(given.json({ integers: 'bigint' }), {
    ...{ id: 9007199254740993n, n: -9007199254740993n },
    ...others,
  });
  assert.throws(() => given.json(), {
    name: 'UnprocessableMessage',
    message: /"id" is the integer 9007199254740993/,
  });
  const edge = message(Buffer.from('{"id":9007199254740991}').toString('base64'));
  assert.deepEqual(edge.json(), { id: 9007199254740991 });
});

test('the JSON of a form is in the field that the sender names', () => {
  const form = { contentType: 'application/x-www-form-urlencoded; charset=utf-8', jsonInForm: 'payload' };
  const body = (text: string) => Buffer.from(text).toString('base64');
  assert.deepEqual(message(body('a=1&payload=%7B%22n%22%3A1%7D'), null, form).json(), { n: 1 });
  assert.equal(message(body('payload=1&a=2'), null, form).form().get('a'), '2');
  assert.throws(() => message(body('a=1'), null, form).json(), { message: 'the form has no field payload' });
  assert.deepEqual(message(body('{"n":2}'), null, { jsonInForm: 'payload' }).json(), { n: 2 });
});
