/** The JSON of a message in a thread of handlers: its values are not made where they would take more than the thread has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { receivedMessage } from '../../../src/logic/threads/handler-arguments.ts';

const MiB = 1024 * 1024;

function message(body: string | Uint8Array<ArrayBuffer>, contentEncoding: string | null = null) {
  return receivedMessage(
    {
      ...{ id: 'rec_1', sender: 'bank', dedupeKey: 'k', type: null, receivedAt: '', attempt: 1 },
      ...{ contentType: 'application/json', contentEncoding, headers: {}, body },
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
