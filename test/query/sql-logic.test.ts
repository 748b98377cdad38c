import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileSql } from '../../src/resources/query/sql-query.ts';
import { isLike, matches } from './matches.ts';
import { askedOf, limits, products, type Resource } from './shop.ts';

/** SQL's three values; null is unknown. */
type Truth = boolean | null;

/** A condition as SQL text, and what SQL's own logic makes of it on a row. */
type Condition = { readonly text: string; readonly on: (row: Resource) => Truth };

const numbers = [-1, 0, 1, 2, 2.5];
const strings = ['', 'a', 'ab', 'b_', '%'];
const rowArbitrary: fc.Arbitrary<Resource> = fc.record(
  {
    price: fc.constantFrom<number | null>(...numbers, null),
    stock: fc.constantFrom<number | null>(0, 1, 2, null),
    name: fc.constantFrom<string | null>(...strings, null),
    published: fc.constantFrom<boolean | null>(true, false, null),
    tags: fc.option(fc.array(fc.constantFrom<string | null>('a', 'b', 'c', null), { maxLength: 3 })),
  },
  { requiredKeys: [] },
);

const operators: Readonly<Record<string, (one: number | string, other: number | string) => boolean>> = {
  '=': (one, other) => one === other,
  '<>': (one, other) => one !== other,
  '!=': (one, other) => one !== other,
  '<': (one, other) => one < other,
  '<=': (one, other) => one <= other,
  '>': (one, other) => one > other,
  '>=': (one, other) => one >= other,
};

function compareThree(op: string, one: number | string | null, other: number | string | null): Truth {
  const compare = operators[op];
  if (compare === undefined) throw new Error(op);
  return one === null || other === null ? null : compare(one, other);
}

const not = (value: Truth): Truth => (value === null ? null : !value);
const and = (one: Truth, other: Truth): Truth =>
  one === false || other === false ? false : one === null || other === null ? null : true;
const or = (one: Truth, other: Truth): Truth => not(and(not(one), not(other)));

/** `x IN (...)` is a chain of OR over equalities. */
function among(value: number | string | null, list: readonly (number | string | null)[]): Truth {
  return list.reduce<Truth>((found, item) => or(found, compareThree('=', value, item)), false);
}

function literal(value: number | string | null): string {
  if (value === null) return 'NULL';
  return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;
}

/** The fields that comparisons are made on, with values of their type, null among them. */
const operand = fc.constantFrom(
  { name: 'price', values: [...numbers, null] },
  { name: 'stock', values: [0, 1, 2, null] },
  { name: 'name', values: [...strings, null] },
);

function scalarOf(row: Resource, name: string): number | string | null {
  const value = row[name];
  return typeof value === 'number' || typeof value === 'string' ? value : null;
}

const comparison: fc.Arbitrary<Condition> = operand.chain(({ name, values }) =>
  fc
    .tuple(fc.constantFrom(...Object.keys(operators)), fc.constantFrom(...values), fc.boolean())
    .map(([op, value, isFlipped]) => ({
      text: isFlipped ? `${literal(value)} ${op} ${name}` : `${name} ${op} ${literal(value)}`,
      on: (row) => {
        const own = scalarOf(row, name);
        return isFlipped ? compareThree(op, value, own) : compareThree(op, own, value);
      },
    })),
);

const membership: fc.Arbitrary<Condition> = operand.chain(({ name, values }) =>
  fc
    .tuple(fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 4 }), fc.boolean())
    .map(([list, isNegated]) => ({
      text: `${name} ${isNegated ? 'NOT IN' : 'IN'} (${list.map(literal).join(', ')})`,
      on: (row) => {
        const found = among(scalarOf(row, name), list);
        return isNegated ? not(found) : found;
      },
    })),
);

const between: fc.Arbitrary<Condition> = operand.chain(({ name, values }) =>
  fc
    .tuple(fc.constantFrom(...values), fc.constantFrom(...values), fc.boolean())
    .map(([low, high, isNegated]) => ({
      text: `${name} ${isNegated ? 'NOT BETWEEN' : 'BETWEEN'} ${literal(low)} AND ${literal(high)}`,
      on: (row) => {
        const own = scalarOf(row, name);
        const within = and(compareThree('>=', own, low), compareThree('<=', own, high));
        return isNegated ? not(within) : within;
      },
    })),
);

const pattern: fc.Arbitrary<Condition> = fc
  .tuple(fc.constantFrom('', '%', 'a%', '_', 'b\\_', '%b%', null), fc.boolean())
  .map(([like, isNegated]) => ({
    text: `name ${isNegated ? 'NOT LIKE' : 'LIKE'} ${literal(like)}`,
    on: (row) => {
      const own = scalarOf(row, 'name');
      const found = own === null || like === null ? null : isLike(String(own), like);
      return isNegated ? not(found) : found;
    },
  }));

const nullness: fc.Arbitrary<Condition> = fc
  .tuple(fc.constantFrom('price', 'name', 'published', 'tags'), fc.boolean())
  .map(([name, isNegated]) => ({
    text: `${name} IS ${isNegated ? 'NOT ' : ''}NULL`,
    on: (row) => ((row[name] ?? null) === null) !== isNegated,
  }));

const element: fc.Arbitrary<Condition> = fc.constantFrom('a', 'b').map((value) => ({
  text: `${literal(value)} = ANY (tags)`,
  on: (row) => {
    const tags = row.tags ?? null;
    if (!Array.isArray(tags)) return null;
    return among(value, tags);
  },
}));

const flag: fc.Arbitrary<Condition> = fc.constant({
  text: 'published',
  on: (row) => (typeof row.published === 'boolean' ? row.published : null),
});

const constant: fc.Arbitrary<Condition> = fc.constantFrom<Condition>(
  { text: 'TRUE', on: () => true },
  { text: 'FALSE', on: () => false },
  { text: 'NULL', on: () => null },
  { text: '1 = 1', on: () => true },
);

const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(comparison, membership, between, pattern, nullness, element, flag, constant),
    fc.tuple(tie('condition'), tie('condition'), fc.constantFrom('AND', 'OR')).map(([one, other, op]) => ({
      text: `(${one.text}) ${op} (${other.text})`,
      on: (row: Resource) => (op === 'AND' ? and : or)(one.on(row), other.on(row)),
    })),
    tie('condition').map((inner) => ({
      text: `NOT (${inner.text})`,
      on: (row: Resource) => not(inner.on(row)),
    })),
    fc
      .tuple(tie('condition'), fc.constantFrom('TRUE', 'FALSE'), fc.boolean())
      .map(([inner, word, isNegated]) => ({
        text: `(${inner.text}) IS ${isNegated ? 'NOT ' : ''}${word}`,
        on: (row: Resource) => (inner.on(row) === (word === 'TRUE')) !== isNegated,
      })),
  ),
}));

const wide = { ...limits, filterDepthMax: 16, filterNodesMax: 256, sqlCharactersMax: 8192 };
const seconds = Number(process.env.COMITY_FUZZ_SECONDS ?? '');

test('keeps exactly the rows on which the condition is true in three-valued logic', () => {
  fc.assert(
    fc.property(condition, fc.array(rowArbitrary, { minLength: 1, maxLength: 12 }), ({ text, on }, rows) => {
      const compiled = compileSql(`SELECT * FROM products WHERE ${text}`, products, wide);
      // The generator may exceed a bound, which is tested elsewhere.
      if (!compiled.ok) fc.pre(compiled.faults.every(({ message }) => !/at most/.test(message)));
      const { filter } = askedOf(compiled);
      for (const row of rows) assert.equal(matches(filter, row), on(row) === true, text);
    }),
    seconds > 0
      ? { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: seconds * 1000 }
      : { numRuns: 400 },
  );
});
