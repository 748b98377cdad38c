import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson } from '../../../src/http/syntax/json.ts';
import { bounds } from './bounds.ts';

const limits = { depthMax: 100, keysMax: 1000 };

/** I-JSON values: any text without lone surrogates, any finite double, up to 40 members. */
const value = fc
  .jsonValue({ stringUnit: 'grapheme' })
  .filter((one) => !JSON.stringify(one).includes('__proto__'));
const wide = fc.dictionary(fc.string({ unit: 'grapheme' }), value, { maxKeys: 40, noNullPrototype: true });
const document = fc
  .tuple(fc.oneof(value, wide), fc.constantFrom(undefined, 1, '\t'))
  .map(([one, indent]) => JSON.stringify(one, undefined, indent))
  .filter((text) => !text.includes('__proto__'));

/** A document with some characters replaced, left out or put in: mostly malformed in one place. */
const mutated = fc
  .tuple(
    document,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat({ max: 2 }),
        fc.constantFrom(
          '',
          '"',
          '\\',
          ',',
          ':',
          '{',
          '}',
          '[',
          ']',
          '0',
          '.',
          'e',
          '-',
          'a',
          '\\u0061',
          '\\ud800',
          '\ud800',
          '\n',
          '\0',
        ),
      ),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([text, edits]) => {
    let result = text;
    for (const [position, removed, added] of edits) {
      const at = position % (result.length + 1);
      result = result.slice(0, at) + added + result.slice(at + removed);
    }
    return result;
  });

test('agrees with JSON.parse on every I-JSON document', () => {
  fc.assert(
    fc.property(document, (text) => {
      assert.deepEqual(parseJson(text, limits), { ok: true, value: JSON.parse(text) });
    }),
    bounds,
  );
});

test('accepts of mutated documents only what JSON.parse accepts, with its value', () => {
  fc.assert(
    fc.property(mutated, (text) => {
      const result = parseJson(text, limits);
      if (result.ok) assert.deepEqual(result.value, JSON.parse(text));
      else assert.ok(result.message !== '' && result.offset >= 0 && result.offset <= text.length);
    }),
    bounds,
  );
});

test('refuses of mutated documents only what JSON.parse refuses or I-JSON forbids', () => {
  const forbidden = /^(duplicate|lone surrogate|number beyond|a member may not)/;
  fc.assert(
    fc.property(mutated, (text) => {
      const result = parseJson(text, limits);
      if (result.ok || forbidden.test(result.message)) return;
      assert.throws(() => JSON.parse(text), SyntaxError);
    }),
    bounds,
  );
});

test('finds a repeated name among any others', () => {
  const names = fc.uniqueArray(
    fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__'),
    {
      minLength: 1,
      maxLength: 40,
    },
  );
  fc.assert(
    fc.property(names, fc.nat(), (unique, position) => {
      const members = unique.map((name) => `${JSON.stringify(name)}:0`);
      assert.equal(parseJson(`{${members.join()}}`, limits).ok, true);
      members.push(members[position % members.length] ?? '');
      const result = parseJson(`{${members.join()}}`, limits);
      assert.equal(result.ok ? '' : result.message, 'duplicate member name');
    }),
    bounds,
  );
});
