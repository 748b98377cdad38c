/** Multipart content that is read while it arrives: files one at a time, in order, with backpressure; and no further than to its refusal. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ContentFailed } from '../../src/http/message.ts';
import { parseMediaType } from '../../src/http/syntax/media-type.ts';
import { contentLimitsDefault } from '../../src/kernel/content/content-shape.ts';
import {
  type FilePart,
  type FormReceiver,
  readArrivingMultipart,
} from '../../src/kernel/content/multipart.ts';

const mediaType = parseMediaType('multipart/form-data; boundary=B');
assert.ok(mediaType);

const field = (name: string, value: string) =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (name: string, content: string, more = '; filename="a.bin"\r\nContent-Type: image/png') =>
  `--B\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`;
const end = '--B--\r\n';

const rules = new Map([
  ['photo', { bytesMax: 1_000 }],
  ['large', { bytesMax: 1_000_000 }],
]);

async function textOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}

/** Reads pieces as they are pulled, and says how many were and whether the rest was left. */
async function read(pieces: readonly string[], given: Partial<FormReceiver> = {}) {
  let pulled = 0;
  let isLeft = false;
  async function* arriving(): AsyncGenerator<Uint8Array> {
    try {
      for (const piece of pieces) {
        pulled += 1;
        yield Buffer.from(piece, 'latin1');
      }
    } finally {
      isLeft = true;
    }
  }
  const files: unknown[] = [];
  const onFile = async ({ content, ...rest }: FilePart): Promise<number> =>
    files.push({ ...rest, content: await textOf(content) }) - 1;
  assert.ok(mediaType);
  const receiver = { files: rules, onFile, textBytesMax: 1_000_000, ...given };
  const result = await readArrivingMultipart(arriving(), mediaType, contentLimitsDefault, receiver);
  assert.ok(isLeft, 'the source is ended');
  return { result, files, pulled: () => pulled };
}

describe('multipart content that arrives', () => {
  const whole = `preamble\r\n${field('name', 'é')}${file('photo', '\r\n--A\x00-\r')}${field('age', '1')}${file('photo', '')}${end}epilogue`;
  const expected = {
    entries: [
      ['name', '\u00e9'],
      ['photo', 0],
      ['age', '1'],
      ['photo', 1],
    ],
    files: [
      { name: 'photo', fileName: 'a.bin', type: 'image/png', content: '\r\n--A\x00-\r' },
      { name: 'photo', fileName: 'a.bin', type: 'image/png', content: '' },
    ],
  };
  const bytes = Buffer.from(whole.replace('é', '\u00c3\u00a9'), 'latin1').toString('latin1');

  test('is read alike whole, octet by octet, and cut in two anywhere', async () => {
    const cuts = [[bytes], [...bytes]];
    for (let at = 1; at < bytes.length; at += 1) cuts.push([bytes.slice(0, at), bytes.slice(at)]);
    for (const pieces of cuts) {
      const { result, files } = await read(pieces);
      assert.ok(result.ok, JSON.stringify(pieces.slice(0, 3)));
      assert.deepEqual({ entries: result.entries, files }, expected);
    }
  });

  test('is pulled only as fast as a file is taken', async () => {
    const pieces = [file('large', '').slice(0, -2), ...Array.from({ length: 100 }, () => 'x'.repeat(1_000))];
    const seen: number[] = [];
    const { pulled } = await read([...pieces, `\r\n${end}`], {
      onFile: async ({ content }) => {
        let taken = 0;
        for await (const chunk of content) {
          taken += chunk.length;
          // The pieces behind what was taken have not been asked for.
          seen.push(taken / 1_000);
          await new Promise((resolve) => setImmediate(resolve));
        }
        return 0;
      },
    });
    assert.equal(seen.at(-1), 100);
    assert.equal(pulled(), 102);
  });

  test('hands over no second file before the first is taken', async () => {
    const order: string[] = [];
    const onFile = async ({ content }: FilePart) => {
      order.push('begin');
      await new Promise((resolve) => setTimeout(resolve, 5));
      order.push(await textOf(content));
      return order.length;
    };
    await read([file('photo', '1') + file('photo', '2') + end], { onFile });
    assert.deepEqual(order, ['begin', '1', 'begin', '2']);
  });

  test('skips what the receiver leaves of a file', async () => {
    for (const onFile of [
      async () => 7,
      async ({ content }: FilePart) => {
        for await (const _ of content) break;
        return 7;
      },
    ]) {
      const { result } = await read([file('large', 'x'.repeat(100)), field('name', 'y'), end], { onFile });
      assert.deepEqual(result, {
        ok: true,
        entries: [
          ['large', 7],
          ['name', 'y'],
        ],
      });
    }
  });

  test('leaves out the empty control of a browser, and takes an empty file with a name', async () => {
    const none = await read([
      file('photo', '', '; filename=""\r\nContent-Type: application/octet-stream'),
      end,
    ]);
    assert.deepEqual([none.result, none.files], [{ ok: true, entries: [] }, []]);
    const unnamed = await read([file('photo', 'x', '; filename=""'), end]);
    assert.deepEqual(unnamed.files, [{ name: 'photo', fileName: 'file', type: undefined, content: 'x' }]);
  });
});

describe('a refusal', () => {
  const more = Array.from({ length: 50 }, () => field('name', 'x'));

  test('of a file that is too long comes with the octet that is too much, to the receiver as well', async () => {
    const failures: unknown[] = [];
    const onFile = async ({ content }: FilePart) => {
      try {
        await textOf(content);
      } catch (error) {
        failures.push(error);
        throw error;
      }
      return 0;
    };
    const exact = await read([file('photo', 'x'.repeat(1_000)), end], { onFile });
    assert.ok(exact.result.ok);
    const head = file('photo', '').slice(0, -2);
    const over = await read([head, 'x'.repeat(600), 'x'.repeat(400), 'x', 'x'.repeat(600), ...more, end], {
      onFile,
    });
    const message = 'must be at most 1000 bytes long';
    const errors = [{ pointer: '/photo', message }];
    const problem = { code: 'content_too_large', message: `photo ${message}`, errors };
    assert.deepEqual(over.result, { ok: false, problem });
    // What may begin a delimiter is held back; x cannot.
    assert.equal(over.pulled(), 4);
    assert.ok(failures[0] instanceof ContentFailed);
  });

  for (const [what, pieces, pulled] of [
    ['of the receiver', [file('photo', 'x'), ...more, end], 1],
    ['of a part without a name', ['--B\r\nContent-Disposition: form-data\r\n\r\n', ...more, end], 1],
    [
      'of a text that must be a file, at the next file,',
      [field('photo', 'x'), file('photo', 'y'), ...more, end],
      2,
    ],
    [
      'of a file that must be a text, at the next file,',
      [file('name', 'x'), file('photo', 'y'), ...more, end],
      2,
    ],
    ['of a delimiter with text behind it', ['--Bx\r\n', ...more, end], 1],
    ['of a header that is too long', [`--B\r\nX: ${'x'.repeat(9_000)}`, ...more, end], 1],
    [
      'of a header without an end',
      ['--B\r\n', ...Array.from({ length: 100 }, () => `X: ${'x'.repeat(1_000)}`)],
      10,
    ],
  ] as const)
    test(`${what} comes at once`, async () => {
      const onFile = async () => ({ code: 'media_type_unsupported' }) as const;
      const given = await read([...pieces], { onFile });
      assert.equal(given.result.ok, false);
      assert.equal(given.pulled(), pulled);
    });

  test('of all texts together comes at their bound', async () => {
    const ten = field('name', '0123456789');
    assert.ok((await read([ten, ten, end], { textBytesMax: 20 })).result.ok);
    const over = await read([ten, ten, field('name', 'x'), ...more, end], { textBytesMax: 20 });
    assert.deepEqual(over.result, { ok: false, problem: { code: 'content_too_large' } });
    assert.ok(over.pulled() <= 4);
  });

  test('counts texts in the memory of the request', async () => {
    const held: number[] = [];
    const memory = {
      hold(octets: number) {
        held.push(octets);
        return held.reduce((sum, each) => sum + each, 0) <= 10;
      },
    };
    assert.ok((await read([field('name', '0123456789'), end], { memory })).result.ok);
    const over = await read([field('name', '0'), end], { memory });
    assert.deepEqual(over.result, { ok: false, problem: { code: 'unavailable' } });
  });

  test('is no answer to a failure of the receiver', async () => {
    const onFile = async () => {
      throw new Error('the disk is gone');
    };
    await assert.rejects(read([file('photo', 'x'), end], { onFile }), /the disk is gone/);
  });
});
