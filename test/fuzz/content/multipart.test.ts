import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { contentLimitsDefault } from '../../../src/kernel/content/content-shape.ts';
import {
  type MultipartEntries,
  readArrivingMultipart,
  readMultipart,
} from '../../../src/kernel/content/multipart.ts';
import { bounds } from './bounds.ts';

const boundary = 'B-x';
const mediaType = { type: 'multipart/form-data', parameters: new Map([['boundary', boundary]]) };

/** Texts made of what delimiters are made of; one that holds a whole delimiter cannot be sent in this form. */
const value = fc
  .oneof(
    fc
      .array(fc.constantFrom('\r', '\n', '\r\n', '-', '--', 'B', '-x', '--B', 'a', 'é', '\0', ':'), {
        maxLength: 12,
      })
      .map((parts) => parts.join('')),
    fc.string({ unit: 'grapheme' }),
    fc.integer({ min: 0, max: 200_000 }).map((length) => 'v'.repeat(length)),
  )
  .filter((text) => !`\r\n${text}`.includes(`\r\n--${boundary}`));
const name = fc
  .string({ unit: 'grapheme' })
  .filter((text) => !/["\\\r\n\0]/.test(text) && text.isWellFormed());

const form = fc.array(fc.tuple(name, value), { maxLength: 6 });

function write(entries: readonly (readonly [string, string])[], preamble = '', epilogue = ''): Buffer {
  const parts = entries.map(
    ([each, text]) => `--${boundary}\r\nContent-Disposition: form-data; name="${each}"\r\n\r\n${text}\r\n`,
  );
  return Buffer.from(`${preamble}${parts.join('')}--${boundary}--${epilogue}`);
}

/** A reading that never ends would hang the request: it fails here instead. */
async function read(bytes: Uint8Array): Promise<MultipartEntries> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the reading did not end within 5 s')), 5000);
  });
  try {
    return await Promise.race([readMultipart(bytes, mediaType, contentLimitsDefault), late]);
  } finally {
    clearTimeout(timer);
  }
}

test('a form written as multipart is read as the same form', async () => {
  await fc.assert(
    fc.asyncProperty(
      form,
      fc.constantFrom('', 'x\r\n', '\r\n'),
      fc.constantFrom('', '\r\n', '\r\nx'),
      async (entries, preamble, epilogue) => {
        assert.deepEqual(await read(write(entries, preamble, epilogue)), { ok: true, entries, files: [] });
      },
    ),
    bounds,
  );
});

test('a form cut short anywhere is refused', async () => {
  await fc.assert(
    fc.asyncProperty(form, fc.nat(), async (entries, at) => {
      const whole = write(entries);
      const result = await read(whole.subarray(0, at % whole.length));
      assert.equal(result.ok ? '' : result.problem.code, 'content_malformed');
    }),
    bounds,
  );
});

test('a form damaged anywhere is read or refused, and its reading ends', async () => {
  const damage = fc.tuple(fc.nat(), fc.nat({ max: 6 }), fc.uint8Array({ maxLength: 6 }));
  await fc.assert(
    fc.asyncProperty(form, fc.array(damage, { minLength: 1, maxLength: 4 }), async (entries, damages) => {
      let bytes = write(entries);
      for (const [at, length, inserted] of damages) {
        const from = at % (bytes.length + 1);
        bytes = Buffer.concat([bytes.subarray(0, from), inserted, bytes.subarray(from + length)]);
      }
      const result = await read(bytes);
      if (!result.ok) assert.match(result.problem.code, /^(content_malformed|validation_failed)$/);
    }),
    bounds,
  );
});

test('pieces of multipart syntax in any order are read or refused, and the reading ends', async () => {
  const piece = fc.constantFrom(
    `--${boundary}`,
    `--${boundary}--`,
    '\r\n',
    '\r\n\r\n',
    '--',
    '-',
    'Content-Disposition: form-data; name="a"',
    'Content-Disposition: form-data; name="f"; filename="x"',
    'Content-Type: text/plain',
    'value',
    ': ',
    'v'.repeat(70_000),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 14 }), async (pieces) => {
      const result = await read(Buffer.from(pieces.join('')));
      if (!result.ok) assert.match(result.problem.code, /^(content_malformed|validation_failed)$/);
    }),
    bounds,
  );
});

test('content is read or refused alike, however it is cut into pieces while it arrives', async () => {
  const piece = fc.constantFrom(
    `--${boundary}`,
    `\r\n--${boundary}`,
    `\r\n--${boundary}--`,
    `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n`,
    `--${boundary}\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n`,
    ...['\r\n', '\r', '\n', '--', 'value', '\r\n--B', ': ', '\t'],
  );
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), cuts, async (pieces, lengths) => {
      const bytes = Buffer.from(`${pieces.join('')}\r\n--${boundary}--`);
      async function* arriving(): AsyncGenerator<Uint8Array> {
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const length = lengths[turn % lengths.length] ?? 1;
          yield bytes.subarray(at, at + length);
          at += length;
        }
      }
      const taken: string[] = [];
      const cut = await readArrivingMultipart(arriving(), mediaType, contentLimitsDefault, {
        files: new Map([['f', { bytesMax: 50 }]]),
        textBytesMax: 10_000,
        onFile: async ({ content }) => {
          const chunks: Uint8Array[] = [];
          for await (const chunk of content) chunks.push(chunk);
          return taken.push(Buffer.concat(chunks).toString()) - 1;
        },
      });
      const whole = await readMultipart(
        bytes,
        mediaType,
        contentLimitsDefault,
        new Map([['f', { bytesMax: 50 }]]),
      );
      if (!whole.ok) assert.deepEqual(cut, whole);
      else {
        assert.deepEqual(cut, { ok: true, entries: whole.entries });
        assert.deepEqual(
          taken,
          whole.files.map((file) => Buffer.from(file.bytes).toString()),
        );
      }
    }),
    bounds,
  );
});
