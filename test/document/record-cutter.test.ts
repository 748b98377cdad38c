/** Content is cut into the same records wherever its chunks end, and within the bounds of a batch and a record. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CutBounds,
  RecordCutter,
  type RecordFormat,
} from '../../src/resources/document/record-cutter.ts';

const bounds: CutBounds = { recordBytesMax: 40, batchRecordsMax: 2, batchBytesMax: 30 };

type Cut = { readonly line: number; readonly text: string | undefined };

function cut(format: RecordFormat, content: string, chunkBytes: number) {
  const cutter = new RecordCutter(format, bounds);
  const bytes = Buffer.from(content);
  const records: Cut[] = [];
  let most = 0;
  const add = (batch: ReturnType<RecordCutter['next']>): boolean => {
    for (const { line, start, end, isTooLong } of batch?.records ?? [])
      records.push({
        line,
        text:
          isTooLong === true ? undefined : Buffer.from(batch?.bytes.subarray(start, end) ?? []).toString(),
      });
    most = Math.max(most, batch?.records.length ?? 0);
    return batch !== undefined;
  };
  for (let at = 0; at < bytes.length && cutter.fault === undefined; at += chunkBytes) {
    cutter.take(bytes.subarray(at, at + chunkBytes));
    while (add(cutter.next()));
  }
  while (add(cutter.last()));
  return { records, fault: cutter.fault, most };
}

const long = 'x'.repeat(60);
const cases: readonly (readonly [
  format: RecordFormat,
  content: string,
  records: readonly Cut[],
  fault?: number,
])[] = [
  [
    'csv',
    '\ufeffa,b\r\n"1\n""2""",x\n\n"",5" \r\nlast',
    [
      { line: 1, text: 'a,b' },
      { line: 2, text: '"1\n""2""",x' },
      { line: 5, text: '"",5" ' },
      { line: 6, text: 'last' },
    ],
  ],
  [
    'csv',
    `a\n${long}\nb\n`,
    [
      { line: 1, text: 'a' },
      { line: 2, text: undefined },
      { line: 3, text: 'b' },
    ],
  ],
  ['csv', 'a\n"b\nc', [{ line: 1, text: 'a' }], 2],
  [
    'ndjson',
    `{}\n\n[1]\r\n${long}`,
    [
      { line: 1, text: '{}' },
      { line: 3, text: '[1]' },
      { line: 4, text: undefined },
    ],
  ],
  [
    'json',
    ' [\n{"a":"]},[\\""},\n {"b":[1,{}]} , 3]\n',
    [
      { line: 2, text: '{"a":"]},[\\""}' },
      { line: 3, text: '{"b":[1,{}]} ' },
      { line: 3, text: '3' },
    ],
  ],
  ['json', '[]', []],
  [
    'json',
    `[1,"${long}",2]`,
    [
      { line: 1, text: '1' },
      { line: 1, text: undefined },
      { line: 1, text: '2' },
    ],
  ],
  ['json', '[1,\n,2]', [{ line: 1, text: '1' }], 2],
  ['json', '[1\n', [], 2],
];

describe('a cutter of records', () => {
  for (const [format, content, records, fault] of cases)
    test(`of ${format} finds ${records.length} in ${JSON.stringify(content.slice(0, 30))}`, () => {
      for (const chunkBytes of [1, 2, 3, 7, 1000]) {
        const found = cut(format, content, chunkBytes);
        assert.deepEqual([found.records, found.fault?.line], [records, fault], `chunks of ${chunkBytes}`);
        assert.ok(found.most <= bounds.batchRecordsMax);
      }
    });

  test('holds little more than a record and a chunk, however long a record is', () => {
    const cutter = new RecordCutter('csv', { ...bounds, recordBytesMax: 64 * 1024 });
    const chunk = Buffer.from('"'.padEnd(16 * 1024, 'x'));
    for (let count = 0; count < 1000; count += 1) {
      cutter.take(chunk);
      cutter.next();
      assert.ok(cutter.capacity <= 256 * 1024, String(cutter.capacity));
    }
  });
});
