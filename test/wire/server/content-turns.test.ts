/** The reading of long contents in turns of the event loop. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ContentReading, ContentWatch } from '../../../src/server/content-reading.ts';
import type { ServerLimits } from '../../../src/server/limits.ts';

const partBytes = 64 * 1024;
const limits = {
  contentTimeoutMs: 60_000,
  contentGraceMs: 60_000,
  contentBytesPerSecondMin: 1,
} as ServerLimits;

function scene({ isSpent }: { readonly isSpent: () => boolean }) {
  const watch = new ContentWatch(
    { isSpent, nextOfBegun: () => undefined },
    { monotonic: () => 0, intervalMs: 1000 },
  );
  /** A request whose content has arrived in parts. */
  const arrive = (parts: number) => {
    const source = Object.assign(new PassThrough({ highWaterMark: parts * partBytes }), { aborted: false });
    const reading = new ContentReading(source, {
      bytesMax: parts * partBytes,
      hold: () => true,
      withoutRoom: () => ({ ok: false, code: 'unavailable' }),
      ...{ watch, limits, nowMs: 0 },
    });
    let read = 0;
    source.on('data', ({ length }: Buffer) => {
      read += length / partBytes;
    });
    for (let part = 0; part < parts; part += 1) source.write(Buffer.alloc(partBytes, part));
    source.end();
    return { source, received: reading.received, partsRead: () => read };
  };
  return { arrive };
}

test('contents whose turn is spent are read on eight a turn, in order, and whole', async () => {
  const { arrive } = scene({ isSpent: () => true });
  const contents = Array.from({ length: 20 }, () => arrive(3));
  await nextTurn();
  const second = contents.map(({ partsRead }) => partsRead());
  assert.ok(
    second.every((parts, at) => (at < 8 ? parts <= 2 : parts <= 1)),
    second.join(),
  );
  for (const { received } of contents) {
    const got = await received;
    assert.ok(got.ok);
    assert.deepEqual(
      [got.bytes.length, got.bytes[0], got.bytes[partBytes], got.bytes.at(-1)],
      [3 * partBytes, 0, 1, 2],
    );
  }
});

test('a content is read at once while its turn has time', async () => {
  const { arrive } = scene({ isSpent: () => false });
  const { received, partsRead } = arrive(5);
  await nextTurn();
  assert.equal(partsRead(), 5);
  assert.ok((await received).ok);
});

test('a client that leaves while its content waits for a turn ends the reading', async () => {
  const { arrive } = scene({ isSpent: () => true });
  const { source, received } = arrive(4);
  source.destroy();
  assert.deepEqual(await received, { ok: false, code: 'content_malformed' });
});
