import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson } from '../../../src/http/syntax/json.ts';
import { parseQueryString } from '../../../src/http/syntax/query-string.ts';
import type { Field, Scalar } from '../../../src/model/field.ts';
import type { Filter } from '../../../src/model/filter.ts';
import { readValue } from '../../../src/resources/query/conditions.ts';
import { openCursor, sealCursor } from '../../../src/resources/query/cursor.ts';
import { compileForm } from '../../../src/resources/query/form-query.ts';
import { compileJson } from '../../../src/resources/query/json-query.ts';
import { type Asked, type Compiled, shapeOf } from '../../../src/resources/query/list-query.ts';
import { readSelection } from '../../../src/resources/query/selection.ts';
import { compileSql } from '../../../src/resources/query/sql-query.ts';
import { codePoint } from '../../harness/code-point.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { fields, limits, products } from '../../query/shop.ts';

const seconds = Number(process.env.COMITY_FUZZ_SECONDS ?? '');
const casesDefault = roundsOf(300, 1000);

/** Each property runs a fixed number of cases, or COMITY_FUZZ_SECONDS. */
const bounds: fc.Parameters<unknown> =
  seconds > 0
    ? { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: seconds * 1000 }
    : { numRuns: casesDefault };

/** A case that takes exponential time does not end: the test runner tells which it was. */
const timeout = (60 + Math.max(seconds, 0)) * 1000;

/** Messages hold at most the names of some fields and 64 characters of input. */
const messageCharactersMax = 600;
const pointerCharactersMax = 2000;

const names = fc.constantFrom(
  ...fields.keys(),
  'prize',
  '',
  '__proto__',
  'constructor',
  'page',
  'order',
  'q',
);
const texts = fc.oneof(
  fc.constantFrom(
    '',
    '1',
    '-1',
    '1.5',
    '1e400',
    'true',
    'null',
    '2026-01-31',
    '2026-01-31T00:00:00Z',
    'a,b',
    '%',
    '\\',
  ),
  fc.constantFrom(...fields.keys()).map((name) => `-${name}`),
  fc.string({ unit: codePoint }),
  fc.string({ maxLength: 3000, size: 'max' }),
);
const operators = fc.constantFrom(
  '',
  '[eq]',
  '[ne]',
  '[gt]',
  '[lte]',
  '[in]',
  '[like]',
  '[null]',
  '[',
  ']',
  '[x]',
  '[[]]',
);
const pairs = fc.array(
  fc.tuple(
    fc.oneof(
      fc.tuple(names, operators).map((parts) => parts.join('')),
      fc.constantFrom('limit', 'per_page', 'cursor', 'sort', 'fields', 'api_key'),
      fc.string(),
    ),
    texts,
  ),
  { maxLength: 20 },
);

test('compileForm answers every list of pairs within its bounds', { timeout }, () => {
  fc.assert(
    fc.property(pairs, (list) => check(compileForm(list, products, limits))),
    bounds,
  );
});

test('compileForm and readSelection answer every query string within their bounds', { timeout }, () => {
  const piece = fc.oneof(
    names,
    operators,
    texts,
    fc.constantFrom('=', '&', ',', '+', '%', '%00', '%F0', 'limit=', 'sort=', 'fields=', 'expand='),
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const text = pieces.join('');
      const selection = readSelection(text, { fields }, limits);
      if (!selection.ok) assert.ok(selection.message.length <= messageCharactersMax);
      const parsed = parseQueryString(text);
      if (parsed !== undefined) check(compileForm(parsed, products, limits));
    }),
    bounds,
  );
});

const scalars = fc.oneof(texts, fc.double(), fc.integer(), fc.boolean(), fc.constant(null));
const { query } = fc.letrec<{ query: unknown; filter: unknown; part: unknown }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 8 },
    scalars,
    fc.array(scalars, { maxLength: 8 }),
    fc.dictionary(
      fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'like', 'null', 'x'),
      fc.oneof(scalars, fc.array(scalars)),
      { maxKeys: 3 },
    ),
    tie('filter'),
    fc.array(tie('filter'), { maxLength: 4 }),
  ),
  filter: fc.dictionary(fc.oneof(names, fc.constantFrom('and', 'or', 'not')), tie('part'), { maxKeys: 4 }),
  query: fc.oneof(
    fc.record(
      {
        filter: fc.oneof(tie('filter'), tie('part')),
        sort: fc.oneof(fc.array(fc.oneof(names, scalars)), scalars),
        limit: scalars,
        page: scalars,
        cursor: scalars,
        fields: fc.oneof(fc.array(fc.oneof(names, scalars)), scalars),
        q: scalars,
      },
      { requiredKeys: [] },
    ),
    fc.jsonValue(),
  ),
}));

test('compileJson answers every value within its bounds', { timeout }, () => {
  fc.assert(
    fc.property(query, (value) => check(compileJson(value, products, limits))),
    bounds,
  );
});

test('compileJson stops at its bounds in a document of any width or depth', { timeout }, () => {
  const wide = { filter: { or: Array.from({ length: 100_000 }, () => ({ or: [{ price: 'x' }] })) } };
  check(compileJson(wide, products, limits));
  const text = `${'{"filter":{"not":'}${'{"not":'.repeat(60)}{}${'}'.repeat(62)}`;
  const deep = parseJson(text, { depthMax: 64, keysMax: 100_000 });
  assert.ok(deep.ok);
  check(compileJson(deep.value, products, limits));
});

const words = fc.constantFrom(
  ...[
    '(',
    '(',
    ')',
    ')',
    ',',
    '=',
    '<',
    '<>',
    '>=',
    '-',
    '+',
    '*',
    '/',
    '||',
    '::',
    '[',
    ']',
    '.',
    ';',
    '$1',
    '$$',
  ],
  ...["'x'", '"name"', '"', "'", '1', '1.5', '1e5', '--', '/*', '*/', '\n', 'E', 'é', '\0', '\u2028'],
  ...[
    'select',
    'from',
    'products',
    'where',
    'order by',
    'limit',
    'offset',
    'as',
    'asc',
    'desc',
    'nulls first',
  ],
  ...[
    'and',
    'or',
    'not',
    'in (',
    'between',
    'like',
    'is',
    'null',
    'true',
    'any (',
    'some (',
    'case',
    'join',
    'union',
  ],
  ...[...fields.keys()],
);
const sqlBounds = { ...limits, filterDepthMax: 16, filterNodesMax: 256, sqlCharactersMax: 8192 };

test('compileSql answers every text within its bounds', { timeout }, () => {
  const head = fc.constantFrom('', 'select ', 'select * from products ', 'select * from products where ');
  const body = fc.oneof(
    { weight: 6, arbitrary: fc.array(words, { maxLength: 25 }).map((list) => list.join(' ')) },
    { weight: 1, arbitrary: fc.string({ unit: codePoint }) },
    // The same few words again and again: what an ambiguous grammar takes exponential time for.
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.array(words, { minLength: 1, maxLength: 4 }), fc.integer({ min: 2, max: 40 }), words)
        .map(([list, times, last]) => `${`${list.join(' ')} `.repeat(times)}${last}`),
    },
  );
  fc.assert(
    fc.property(head, body, (start, rest) => check(compileSql(start + rest, products, sqlBounds))),
    bounds,
  );
});

test('openCursor answers every text, and only opens what was sealed', () => {
  const mac = (text: string) => `m${text.length.toString(36)}`;
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String(), texts), (text) => {
      const opened = openCursor(mac, 'shape', text);
      if (opened !== undefined) assert.equal(typeof opened.direction, 'string');
    }),
    bounds,
  );
  const key = fc.array(
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null)),
  );
  fc.assert(
    fc.property(key, fc.constantFrom('after' as const, 'before' as const), (values, direction) => {
      const cursor = sealCursor(mac, { shape: 'shape', key: values, direction });
      assert.deepEqual(openCursor(mac, 'shape', cursor), { key: values, direction });
    }),
    bounds,
  );
});

function check(compiled: Compiled): void {
  if (compiled.ok) {
    checkAsked(compiled.asked);
    return;
  }
  assert.ok(compiled.faults.length >= 1 && compiled.faults.length <= limits.validationErrorsMax);
  for (const { message, pointer, parameter } of compiled.faults) {
    assert.ok(message.length <= messageCharactersMax && message.isWellFormed(), message);
    assert.ok((pointer?.length ?? 0) <= pointerCharactersMax);
    assert.ok((parameter?.length ?? 0) <= 64);
  }
}

function checkAsked({ filter, sort, limit, position, select, page, source }: Asked): void {
  checkFilter(filter);
  assert.equal(sort.at(-1)?.field.name, 'id');
  assert.equal(new Set(sort.map(({ field }) => field)).size, sort.length);
  for (const { field } of sort) assert.ok(field.type !== 'array' && field.type !== 'json');
  assert.ok(Number.isInteger(limit) && limit >= 1 && limit <= limits.listLimitMax);
  if (position.from === 'page') assert.ok(Number.isInteger(position.page) && position.page > 1);
  if (position.from === 'offset') assert.ok(Number.isSafeInteger(position.offset) && position.offset > 0);
  if (position.from === 'cursor') assert.notEqual(position.cursor, '');
  if (page !== undefined) assert.ok(page >= 1);
  for (const field of select ?? []) checkField(field);
  for (const [name] of source ?? []) assert.ok(!['page', 'cursor', 'api_key'].includes(name));
  assert.ok(shapeOf({ filter, sort, select }).length <= 256);
}

function checkFilter(filter: Filter): void {
  switch (filter.op) {
    case 'always':
    case 'never':
      return;
    case 'and':
    case 'or':
      assert.ok(filter.filters.length > 1);
      for (const part of filter.filters) checkFilter(part);
      return;
    case 'not':
      checkFilter(filter.filter);
      return;
    case 'search':
      assert.ok(filter.terms.length >= 1 && filter.terms.length <= limits.searchTermsMax);
      return;
    case 'in':
      assert.ok(filter.values.length > 1);
      for (const value of filter.values) checkValue(filter.field, value);
      return;
    case 'like':
      assert.equal(filter.field.type, 'string');
      checkValue(filter.field, filter.pattern);
      return;
    case 'has':
      assert.equal(filter.field.type, 'array');
      checkValue(filter.field, filter.value);
      return;
    case 'related':
      checkFilter(filter.filter);
      return;
    default:
      if (filter.value === null) assert.ok(filter.op === 'eq' || filter.op === 'ne');
      else assert.notEqual(filter.field.type, 'array');
      checkValue(filter.field, filter.value);
  }
}

function checkValue(field: Field, value: Scalar): void {
  checkField(field);
  assert.notEqual(field.type, 'json');
  if (value !== null) assert.equal(readValue(field, value), value);
}

function checkField(field: Field): void {
  assert.equal(fields.get(field.name), field);
}
