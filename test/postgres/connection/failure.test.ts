import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import {
  asStoreError,
  endsSession,
  isMistake,
  isRetryable,
  messageOf,
} from '../../../src/store/postgres/postgres-failure.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';

function failure(code: string, routine?: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError('what the server said', 0, 'error'), { code, routine });
}

/** As Node makes it when each address of a name refuses. */
function wordless(...parts: readonly Error[]): AggregateError {
  return Object.assign(new AggregateError(parts, 'none'), { message: '' });
}

const mistakes = [
  '0A000',
  '21000',
  '22012',
  '22021',
  '23505',
  '23503',
  '42601',
  '42P01',
  '42883',
  '54000',
  'CM001',
  'P0001',
];
const storageFailing = [
  '08006',
  '08P01',
  '25006',
  '25P02',
  '25P03',
  '26000',
  '28P01',
  '3D000',
  '40001',
  '40P01',
  '42501',
  '42P05',
  '53100',
  '53300',
  '55P03',
  '57014',
  '57P01',
  '57P03',
  '58030',
  'F0000',
  'XX000',
  'XX001',
];

for (const code of mistakes) {
  test(`${code} is the asker's mistake, told as it came`, () => {
    const error = failure(code);
    assert.equal(isMistake(error), true);
    assert.equal(asStoreError(error), error);
  });
}

for (const code of storageFailing) {
  test(`${code} is storage failing`, () => {
    const error = failure(code);
    assert.equal(isMistake(error), false);
    const told = asStoreError(error);
    assert.ok(told instanceof StoreUnavailable);
    assert.equal(told.cause, error);
    assert.match(told.message, /storage failed: what the server said/);
  });
}

test('a plan that no longer fits its table is storage failing, another missing feature a mistake', () => {
  assert.equal(isMistake(failure('0A000', 'RevalidateCachedQuery')), false);
  assert.equal(isMistake(failure('0A000', 'parserOpenTable')), true);
});

test('errors of the network are storage failing, errors of the program are mistakes', () => {
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
  assert.equal(isMistake(reset), false);
  assert.equal(isMistake(wordless(reset, reset)), false);
  assert.equal(isMistake(new TypeError('undefined is not a function')), true);
  const already = new StoreUnavailable('too much');
  assert.equal(isMistake(already), false);
  assert.equal(asStoreError(already), already);
});

test('the same transaction is worth another try after a conflict, a wait that was too long and a statement that is no more', () => {
  const worth = [...mistakes, ...storageFailing].filter((code) => isRetryable(failure(code)));
  assert.deepEqual(worth, ['26000', '40001', '40P01', '42P05', '55P03', '57014']);
  assert.equal(isRetryable(failure('0A000', 'RevalidateCachedQuery')), true);
  assert.equal(isRetryable(new Error('other')), false);
});

test('the server ends the session with failures of the connection, of itself and of a session left idle', () => {
  const ends = [...mistakes, ...storageFailing].filter((code) => endsSession(failure(code)));
  assert.deepEqual(ends, ['08006', '08P01', '25P03', '57P01', '57P03']);
});

test('an error without words is told in those of its parts', () => {
  assert.equal(messageOf(wordless(new Error('one'), new Error('two'))), 'one, two');
  assert.equal(messageOf(new Error('one')), 'one');
  assert.equal(messageOf('text'), 'text');
});
