import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readCookie } from '../../src/http/syntax/cookie.ts';
import { threadMs } from '../harness/processor-time.ts';

const name = '__Host-comity_session';

test('finds the cookie among others, wherever it stands', () => {
  for (const field of [
    `${name}=a.b-c_d`,
    `x=1; ${name}=a.b-c_d`,
    `${name}=a.b-c_d; x=1`,
    `x=1;${name}=a.b-c_d;y=2`,
    `; ;\tx=1;  ${name}=a.b-c_d \t; y`,
    `x=${name}; ${name}=a.b-c_d`,
    `=${name}=1; ${name}=a.b-c_d; ${name}`,
  ]) {
    assert.equal(readCookie(field, name), 'a.b-c_d', field);
  }
});

test('takes no other name for it: not a longer, a shorter, or one in other letters', () => {
  for (const field of [
    '',
    ';',
    '=',
    name,
    `x${name}=1`,
    `${name}x=1`,
    `${name.toLowerCase()}=1`,
    `${name} =1`,
    'comity_session=1',
    `x="; y=${name}`,
  ]) {
    assert.equal(readCookie(field, name), undefined, field);
  }
});

test('leaves the value as it is, also where it is empty, quoted, escaped or holds an equals sign', () => {
  for (const value of ['', '"a"', '%41', 'a=b', 'a b', '😀']) {
    assert.equal(readCookie(`x=1; ${name}=${value}; y=2`, name), value);
  }
});

test('tells that there are two of the name, equal or not', () => {
  for (const field of [`${name}=a; ${name}=b`, `${name}=a; ${name}=a`, `${name}=; x=1; ${name}=`]) {
    assert.equal(readCookie(field, name), null, field);
  }
});

test('takes time in proportion to the length of junk', () => {
  for (const junk of [';', '; ', `${name}`, `${name}=;`, '=', `${name};`]) {
    const field = junk.repeat(Math.floor(1_000_000 / junk.length));
    const startedAt = threadMs();
    readCookie(field, name);
    // Quadratic time would be minutes.
    assert.ok(threadMs() - startedAt < 2000, junk);
  }
});

test('finds in any text what taking it apart at its semicolons finds', () => {
  const part = fc.string({ unit: fc.constantFrom(...'ab= "%,;\t\\é') });
  const pair = fc
    .tuple(fc.constantFrom('a', 'b', 'ab', '', 'A'), part)
    .map(([key, value]) => `${key}=${value}`);
  const pieces = fc.array(fc.oneof(pair, part));
  fc.assert(
    fc.property(pieces, fc.constantFrom('; ', ';', ' ; '), (list, separator) => {
      const field = list.join(separator);
      const values = field
        .split(';')
        .map((piece) => piece.replace(/^[ \t]+|[ \t]+$/g, ''))
        .filter((piece) => piece.startsWith('ab='))
        .map((piece) => piece.slice(3).replace(/^[ \t]+/, ''));
      assert.equal(readCookie(field, 'ab'), values.length > 1 ? null : values[0], field);
    }),
    { numRuns: 2000 },
  );
});
