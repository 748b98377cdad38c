/** Words, stems and terms of search: the text that is indexed, and the query that is asked of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  createSearchIndex,
  indexedOctetsMax,
  indexedText,
  parseSearch,
  phraseWordsMax,
} from '../../../src/model/search/search-index.ts';
import { wordCharactersMax, wordsOf } from '../../../src/model/search/words.ts';
import { codePoint } from '../../harness/code-point.ts';

const plain = createSearchIndex(['title', 'body'], undefined);
const english = createSearchIndex(['title', 'body'], 'english');
const limits = { termsMax: 8, termCharactersMax: 200 };

const words = (text: string): readonly string[] => [...wordsOf(text)].map((word) => word.plain);
const terms = (q: string, index = plain): readonly string[] => parseSearch(index, q, limits).terms;
const textOf = (document: Record<string, unknown>, index = plain): string =>
  indexedText(index, document).slice(index.mark.length);

test('words are folded, lose their accents, and end at anything but letters, digits and marks', () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['Red-LAMP, x1!', ['red', 'lamp', 'x1']],
    ['Émaillé Señor', ['emaille', 'senor']],
    ['e\u0301', ['e']],
    ['ﬁne ① ２', ['fine', '1', '2']],
    ['ΟΔΟΣ οδός', ['οδοσ', 'οδοσ']],
    ['東京 タワー', ['東', '京', 'タ', 'ワ', 'ー'].filter((word) => word !== 'ー').concat('ー')],
    ['한국어 검색', ['한국어', '검색']],
    ['👩‍🚀go', ['👩', '🚀', 'go']],
    ['\u0000\u0001 \ud800 "\'*=#', []],
  ];
  for (const [text, expected] of cases) assert.deepEqual(words(text), expected, text);
});

test('a word of 100 KB is found by its beginning, and no pair of surrogates is cut', () => {
  const [long] = words('x'.repeat(100_000));
  assert.equal(long, 'x'.repeat(wordCharactersMax));
  const [odd = ''] = words(`x${'𐐨'.repeat(100)}`);
  assert.ok(odd.isWellFormed());
  assert.equal(odd.length, wordCharactersMax - 1);
});

test('the indexed text holds words between spaces, keeps fields apart, and ends each with its stems', () => {
  const document = { title: 'Red lamps', body: 'Running', other: 'not me' };
  assert.equal(textOf(document), 'red lamps == running ');
  assert.equal(textOf(document, english), 'red lamps =red =lamp == running =run ');
  assert.equal(textOf({ title: ['a', 1, 'b'], body: null }), 'a = b == ');
  assert.equal(textOf({ title: 'a', body: ['b', 'c'] }), 'a == b = c ');
  assert.equal(textOf({ body: 'b' }), '== b ');
  assert.equal(textOf({}), '== ');
  const alone = createSearchIndex(['title'], 'english');
  assert.equal(textOf({ title: ['lamps', 'red'] }, alone), 'lamps = red =lamp =red ');
});

test('the mark is another for other fields, another order and another language, and the same for equal ones', () => {
  const marks = [
    plain,
    english,
    createSearchIndex(['title'], undefined),
    createSearchIndex(['body', 'title'], undefined),
  ];
  assert.equal(new Set(marks.map(({ mark }) => mark)).size, marks.length);
  assert.equal(createSearchIndex(['title', 'body'], 'english').mark, english.mark);
  for (const { mark } of marks) assert.match(mark, /^#[0-9a-z]{14} $/);
});

test('a long document is indexed up to its bounds, and new words are kept longer than phrases', () => {
  const many = Array.from({ length: 20_000 }, (_, index) => `w${index % 17_000}`).join(' ');
  const kept = textOf({ title: many });
  assert.ok(kept.includes(` w${phraseWordsMax - 2} w${phraseWordsMax - 1} `));
  assert.ok(kept.includes(` = w${phraseWordsMax} = w${phraseWordsMax + 1} `));
  assert.equal(kept.split(' ').filter((word) => word === 'w16999').length, 1);
  const huge = indexedText(english, {
    title: Array.from({ length: 200_000 }, (_, index) => `é${index}`).join(' '),
  });
  assert.ok(Buffer.byteLength(huge) < 1_048_576);
  assert.ok(huge.length > indexedOctetsMax / 6);
});

test('q is words, prefixes and phrases, and no other character means anything', () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['Red lamp red', [' red ', ' lamp ']],
    ['lam* "Red  Lamp" x', [' lam', ' red lamp ', ' x ']],
    ['"open end', [' open end ']],
    ["o'neil re-read", [' o neil ', ' re read ']],
    ['a-b*', [' a b']],
    ['東京', [' 東 京 ']],
    ['* "" ** - "\'', []],
    ['a AND b OR NOT NEAR(c)', [' a ', ' and ', ' b ', ' or ', ' not ', ' near c ']],
    ['{words}:x^2 +y', [' words x 2 ', ' y ']],
  ];
  for (const [q, expected] of cases) assert.deepEqual(terms(q), expected, q);
  assert.deepEqual(terms('lamps "lamps" lamps*', english), [' =lamp ', ' lamps ', ' lamps']);
});

test('parsing ends one term beyond the limit, and at a word or phrase that is too long', () => {
  const parsed = parseSearch(
    plain,
    Array.from({ length: 10_000 }, (_, index) => `w${index}`).join(' '),
    limits,
  );
  assert.equal(parsed.terms.length, limits.termsMax + 1);
  assert.equal(parseSearch(plain, 'x'.repeat(200), limits).tooLong, undefined);
  assert.equal(parseSearch(plain, 'x'.repeat(201), limits).tooLong?.length, 201);
  assert.ok(parseSearch(plain, `"${'x '.repeat(200)}"`, limits).tooLong);
});

test('accents without a letter are no word', () => {
  assert.deepEqual(
    [...wordsOf('\u0300 a \u0301\u0302 b')].map(({ plain: word }) => word),
    ['a', 'b'],
  );
  assert.deepEqual(parseSearch(plain, '\u0300', limits).terms, []);
});

test('any text and query give words of which none holds a space, a quotation mark or a backslash', () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), (text) => {
      for (const { plain: word } of wordsOf(text)) {
        assert.match(word, /^[^\s"'\\:*=#&|!()]+$/u);
        assert.ok(word.isWellFormed());
      }
      const found = textOf({ title: text });
      for (const word of words(text)) assert.ok(` ${found}`.includes(` ${word} `));
    }),
  );
});
