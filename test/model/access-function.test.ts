/** Access rules written as functions (§5.1): what they may say, when they are called, and what is refused of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { permission, permits, visibleTo } from '../../src/model/access.ts';
import { ruleValuesMax } from '../../src/model/access-condition.ts';
import {
  allow,
  createConditionRule,
  type FunctionRule,
  type ResourceExpressions,
  type RulePrincipal,
  ruleAudiencesMax,
} from '../../src/model/access-function.ts';
import type { Fields } from '../../src/model/field.ts';
import type { Filter } from '../../src/model/filter.ts';
import { anonymous, authenticated, type Principal } from '../../src/model/principal.ts';

const schema = Type.Object({
  title: Type.String(),
  price: Type.Optional(Type.Number()),
  stock: Type.Optional(Type.Integer()),
  published: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Type.Array(Type.String())),
  address: Type.Optional(Type.Object({ city: Type.String() })),
  since: Type.Optional(Type.String({ format: 'date-time' })),
});
type Schema = typeof schema;
type Judge = (
  principal: RulePrincipal,
  resource: ResourceExpressions<Schema>,
) => ReturnType<FunctionRule['allow']>;

const fields: Fields = resolveCollections({ things: { schema } }).get('things')?.fields ?? new Map();
const ada = authenticated({
  id: 'ada',
  scopes: ['read', 'write'],
  roles: ['editor'],
  tenant: 'north',
});

function filterOf(judge: Judge, principal: Principal = ada): Filter {
  return createConditionRule(allow<Schema>(judge), fields).filterFor(principal);
}

/** The filter with the names of its fields alone. */
function shapeOf(filter: Filter): unknown {
  return JSON.parse(
    JSON.stringify(filter, (name, value: unknown) =>
      name === 'field' ? (value as { name: string }).name : value,
    ),
  );
}

test('true is everything and false is nothing', () => {
  assert.deepEqual(
    filterOf(() => true),
    { op: 'always' },
  );
  assert.deepEqual(
    filterOf(() => false),
    { op: 'never' },
  );
});

test('each question about a field becomes the comparison of that name', () => {
  const said: readonly (readonly [Judge, unknown])[] = [
    [(_, { title }) => title.is('a'), { op: 'eq', field: 'title', value: 'a' }],
    [(_, { title }) => title.isNot('a'), { op: 'ne', field: 'title', value: 'a' }],
    [(_, { title }) => title.in(['a', 'b']), { op: 'in', field: 'title', values: ['a', 'b'] }],
    [(_, { title }) => title.isAbsent(), { op: 'eq', field: 'title', value: null }],
    [(_, { title }) => title.isPresent(), { op: 'ne', field: 'title', value: null }],
    [(_, { price }) => price.gt(1), { op: 'gt', field: 'price', value: 1 }],
    [(_, { price }) => price.gte(1), { op: 'gte', field: 'price', value: 1 }],
    [(_, { price }) => price.lt(1), { op: 'lt', field: 'price', value: 1 }],
    [(_, { price }) => price.lte(1), { op: 'lte', field: 'price', value: 1 }],
    [(_, { tags }) => tags.has('a'), { op: 'has', field: 'tags', value: 'a' }],
    [(_, { address }) => address.city.is('Rome'), { op: 'eq', field: 'address.city', value: 'Rome' }],
    [(_, { owner }) => owner.is('ada'), { op: 'eq', field: 'owner', value: 'ada' }],
    [(_, { id }) => id.is('1'), { op: 'eq', field: 'id', value: '1' }],
    [
      (_, { title, price }) => title.is('a').and(price.gt(1), true),
      {
        op: 'and',
        filters: [
          { op: 'eq', field: 'title', value: 'a' },
          { op: 'gt', field: 'price', value: 1 },
        ],
      },
    ],
    [(_, { title }) => title.is('a').or(true), { op: 'always' }],
    [(_, { title }) => title.is('a').and(false), { op: 'never' }],
    [(_, { title }) => title.is('a').not(), { op: 'not', filter: { op: 'eq', field: 'title', value: 'a' } }],
    [(_, { title }) => title.is('a').not().not(), { op: 'eq', field: 'title', value: 'a' }],
    [(_, { title }) => title.is('a').or(true).not(), { op: 'never' }],
  ];
  for (const [judge, filter] of said) {
    const { column: _column, ...found } = shapeOf(filterOf(judge)) as Record<string, unknown>;
    assert.deepEqual(found, filter, String(judge));
  }
});

test('no value equals null, so that whoever has no id or tenant is shown nothing by a comparison with it', () => {
  const never = { op: 'never' };
  assert.deepEqual(
    filterOf((principal, { owner }) => owner.is(principal.id), anonymous),
    never,
  );
  assert.deepEqual(
    filterOf((principal, { title }) => title.is(principal.tenant), anonymous),
    never,
  );
  assert.deepEqual(
    filterOf((_, { price }) => price.gt(null)),
    never,
  );
  assert.deepEqual(
    filterOf((_, { tags }) => tags.has(null)),
    never,
  );
  assert.deepEqual(
    filterOf((principal, { title }) => title.in(principal.roles), anonymous),
    never,
  );
  assert.deepEqual(
    filterOf((_, { title }) => title.isNot(null)),
    { op: 'always' },
  );
});

test('a function sees id, roles, scopes, tenant and fields of the caller and nothing else', () => {
  let seen: RulePrincipal | undefined;
  const look: Judge = (principal) => {
    seen = principal;
    return false;
  };
  filterOf(look);
  assert.deepEqual(seen, {
    kind: 'authenticated',
    id: 'ada',
    roles: new Set(['editor']),
    scopes: new Set(['read', 'write']),
    tenant: 'north',
    fields: {},
  });
  filterOf(look, anonymous);
  assert.deepEqual(seen, {
    kind: 'anonymous',
    id: null,
    roles: new Set(),
    scopes: new Set(),
    tenant: null,
    fields: {},
  });
});

test('what a function does to the sets that it is given stays with it', () => {
  filterOf((principal) => {
    (principal.roles as Set<string>).add('administrator');
    (principal.scopes as Set<string>).add('admin');
    return false;
  });
  assert.deepEqual([...ada.roles], ['editor']);
  assert.equal(ada.scopes.has('admin'), false);
});

test('a function is called once for an audience, and never for an administrator', () => {
  let calls = 0;
  const rule = createConditionRule(
    allow<Schema>((principal, { owner }) => {
      calls += 1;
      return owner.is(principal.id);
    }),
    fields,
  );
  const subject = { owner: 'ada', member: () => assert.fail('no member is needed') };
  for (let time = 0; time < 3; time += 1) {
    assert.equal(permission(rule, 'read', ada), 'depends');
    assert.equal(permits(rule, 'read', ada, subject), true);
  }
  assert.equal(calls, 1);
  assert.equal(permission(rule, 'read', authenticated({ id: 'ada', scopes: ['read'] })), 'depends');
  assert.equal(calls, 2, 'other scopes are another audience');
  assert.equal(permission(rule, 'read', authenticated({ id: 'root', scopes: ['admin'] })), 'granted');
  assert.equal(permission(rule, 'create', authenticated({ id: 'eve', scopes: ['read'] })), 'denied');
  assert.equal(calls, 2);
});

test('conditions are kept for a bounded number of audiences, and made again for the one forgotten', () => {
  let calls = 0;
  const rule = createConditionRule(
    allow<Schema>(() => {
      calls += 1;
      return true;
    }),
    fields,
  );
  const person = (number: number) => authenticated({ id: `p${number}`, scopes: ['read'] });
  for (let number = 0; number <= ruleAudiencesMax; number += 1) rule.filterFor(person(number));
  assert.equal(calls, ruleAudiencesMax + 1);
  rule.filterFor(person(ruleAudiencesMax));
  assert.equal(calls, ruleAudiencesMax + 1, 'the newest is kept');
  rule.filterFor(person(0));
  assert.equal(calls, ruleAudiencesMax + 2, 'the oldest is not');
});

const refused: readonly (readonly [name: string, judge: unknown, message: RegExp])[] = [
  [
    'undefined',
    () => undefined,
    /must return true, false or a condition on its resource, not a value of type undefined/,
  ],
  ['a promise', async () => true, /not a promise/],
  ['a text', () => 'yes', /not a value of type string/],
  ['a number', () => 1, /not a value of type number/],
  ['a filter of its own making', () => ({ op: 'always' }), /not a value of type object/],
  ['a field', (_: unknown, { title }: ResourceExpressions<Schema>) => title, /not a value of type object/],
  [
    'conditions joined by &&',
    (_: unknown, { title, price }: ResourceExpressions<Schema>) => title.is('a') && price.gt(1),
    /not part of the result/,
  ],
  [
    'a condition turned into true',
    (_: unknown, { title }: ResourceExpressions<Schema>) => title.is('a') && true,
    /not part of the result/,
  ],
  [
    'a condition negated by !',
    (_: unknown, { title }: ResourceExpressions<Schema>) => !title.is('a'),
    /not part of the result/,
  ],
  [
    'a condition that decides another',
    (_: unknown, { title, price }: ResourceExpressions<Schema>) => (title.is('a') ? price.gt(1) : false),
    /not part of the result/,
  ],
  [
    'a text for a number',
    (_: unknown, { price }: ResourceExpressions<Schema>) => price.gt('1' as never),
    /price can be compared only with a number/,
  ],
  ['NaN', (_: unknown, { price }: ResourceExpressions<Schema>) => price.gt(Number.NaN), /only with a number/],
  [
    'a fraction for an integer',
    (_: unknown, { stock }: ResourceExpressions<Schema>) => stock.is(1.5),
    /stock can be compared only with an integer/,
  ],
  [
    'a number for true',
    (_: unknown, { published }: ResourceExpressions<Schema>) => published.is(1 as never),
    /only with true or false/,
  ],
  [
    'a time without an offset',
    (_: unknown, { since }: ResourceExpressions<Schema>) => since.gt('2026-01-31T12:00:00'),
    /only with an RFC 3339 date and time/,
  ],
  [
    'U+0000',
    (_: unknown, { title }: ResourceExpressions<Schema>) => title.is('a\0'),
    /only with a string without/,
  ],
  [
    'too many values',
    (_: unknown, { title }: ResourceExpressions<Schema>) =>
      title.in(Array.from({ length: ruleValuesMax + 1 }, String)),
    /more than 1000 values/,
  ],
  [
    'nothing, where it names an unknown field',
    (_: unknown, resource: { readonly nope?: unknown }) => resource.nope,
    /not a value of type undefined/,
  ],
];
for (const [name, judge, message] of refused) {
  test(`a function that answers with ${name} grants nothing`, () => {
    const rule = createConditionRule({ allow: judge as FunctionRule['allow'] }, fields);
    const subject = { owner: 'ada', member: () => 'a' };
    assert.throws(() => permission(rule, 'read', ada), message);
    assert.throws(() => permits(rule, 'read', ada, subject), message);
    assert.throws(
      () => visibleTo(rule, ada, { name: 'owner', path: [], type: 'string', column: 'owner' }, named),
      message,
    );
  });
}

test('a condition of an earlier call is no answer to a later one', () => {
  let kept: unknown;
  const judge = (principal: RulePrincipal, { owner }: ResourceExpressions<Schema>) => {
    kept ??= owner.is(principal.id);
    return kept as never;
  };
  const rule = createConditionRule(allow<Schema>(judge), fields);
  rule.filterFor(ada);
  assert.throws(
    () => rule.filterFor(authenticated({ id: 'eve', scopes: ['read'] })),
    /a condition of another call/,
  );
});

test('exactly as many values as may be compared are taken', () => {
  const values = Array.from({ length: ruleValuesMax }, String);
  assert.equal(filterOf((_, { title }) => title.in(values)).op, 'in');
});

function named(name: string) {
  const field = fields.get(name);
  assert.ok(field);
  return field;
}
