/** How a declaration presents a collection to people: what is kept of it, and the sentence for every mistake. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import type { Presentation, PresentationDeclaration } from '../../src/model/presentation.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

const schema = Type.Object({
  number: Type.String(),
  state: Type.Enum(['open', 'done']),
  price: Type.Number(),
  currency: Type.Optional(Type.String()),
  minutes: Type.Optional(Type.Integer()),
  urgent: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Type.Array(Type.String())),
  address: Type.Optional(Type.Object({ city: Type.String() })),
});

type Loose = { readonly [N in keyof PresentationDeclaration]?: unknown };

function mistakesOf(declaration: Loose): readonly string[] {
  return mistakesFrom(() => resolveCollections({ orders: { schema, ...declaration } as never }));
}

function presented(declaration: PresentationDeclaration): Presentation | undefined {
  return resolveCollections({ orders: { schema, ...declaration } }).get('orders')?.presentation;
}

test('keeps what a declaration says, and nothing where it says nothing', () => {
  assert.equal(presented({}), undefined);
  const found = presented({
    labels: { one: 'Order', many: 'Orders', members: { number: 'No.' } },
    help: { price: 'Without tax.' },
    title: '{number}, {address.city}',
    groups: { Work: ['state', 'minutes'], Money: ['price'] },
    display: {
      price: { as: 'money', currencyField: 'currency', unit: 'minor' },
      minutes: { as: 'duration', unit: 'min' },
      state: { as: 'state', tones: { open: 'warn', done: 'good' } },
      tags: { inLists: false },
      urgent: 'state',
    },
  });
  assert.deepEqual(found, {
    one: 'Order',
    many: 'Orders',
    title: '{number}, {address.city}',
    labels: { number: 'No.' },
    help: { price: 'Without tax.' },
    groups: { Work: ['state', 'minutes'], Money: ['price'] },
    display: {
      price: { as: 'money', currencyField: 'currency', unit: 'minor' },
      minutes: { as: 'duration', unit: 'min' },
      state: { as: 'state', tones: { open: 'warn', done: 'good' } },
      tags: { inLists: false },
      urgent: { as: 'state' },
    },
  });
});

type Fields = {
  readonly number: string;
  readonly urgent: boolean;
  readonly address: { readonly city: string };
};

test('a title that is written as a function is a template', () => {
  const of = (title: (order: Fields) => string) => presented({ title: title as never })?.title;
  assert.equal(
    of((order) => `${order.number} in ${order.address.city}`),
    '{number} in {address.city}',
  );
  assert.equal(
    of((order) => `${order.number ?? ''}`),
    '{number}',
  );
});

const decides =
  "collection orders: title decides or computes, which a title cannot; declare a computed field, and name that: '{name}'";

const mistakes: readonly (readonly [Loose, string | RegExp])[] = [
  [{ labels: { ones: 'x' } }, /labels\.? ?.*ones.*did you mean one\?/],
  [{ labels: { one: '' } }, 'collection orders: labels.one must be a text of 1 to 100 characters'],
  [
    { labels: { members: { nunber: 'No.' } } },
    'collection orders: labels.members names "nunber", which is not a member of the schema; did you mean number?',
  ],
  [
    { labels: { members: { number: 'x'.repeat(101) } } },
    /labels\.members\.number must be a text of 1 to 100/,
  ],
  [{ help: { number: 'x'.repeat(501) } }, /help\.number must be a text of 1 to 500 characters/],
  [{ help: 'me' }, 'collection orders: help must be an object, not a string'],
  [{ groups: { A: ['number'], B: ['number'] } }, /groups\.B names "number", which is in the group A too/],
  [{ groups: { A: 'number' } }, 'collection orders: groups.A must be a list, not a string'],
  [{ display: { price: 'mony' } }, /display\.price\.as must be one of .*; did you mean money\?/],
  [
    { display: { number: 'percent' } },
    /display\.number is percent, which shows a number or a integer; the member/,
  ],
  [
    { display: { price: { as: 'money', currency: 'euro' } } },
    /must be a currency by its code of ISO 4217, such as EUR.*"euro"/,
  ],
  [
    { display: { price: { as: 'money', currency: 'ABC' } } },
    /must be a currency by its code of ISO 4217, such as EUR.*"ABC"/,
  ],
  [
    { display: { price: { as: 'money', currency: 'eur' } } },
    /must be a currency by its code of ISO 4217, such as EUR.*"eur"/,
  ],
  [{ display: { price: { as: 'percent', currency: 'EUR' } } }, /has a currency, which only money has/],
  [
    { display: { price: { as: 'money', currency: 'EUR', currencyField: 'currency' } } },
    /one of them says which currency/,
  ],
  [
    { display: { price: { as: 'money', currencyField: 'curency' } } },
    /currencyField names "curency".*did you mean/,
  ],
  [{ display: { minutes: { as: 'duration', unit: 'minor' } } }, /unit is minor, which duration has not/],
  [
    { display: { state: { as: 'state', tones: { open: 'god' } } } },
    /tones\.open must be one of .*mean good\?/,
  ],
  [{ title: '' }, /title must be a text of 1 to 200 characters/],
  [{ title: 'Order' }, "collection orders: title names no member; write it in braces: '{name}'"],
  [{ title: '{nunber}' }, /title names "nunber", which is not a field; did you mean number\?/],
  [{ title: '{tags}' }, /title names "tags"; it takes single values, not lists/],
  [{ title: (order: Fields) => (order.urgent ? `! ${order.number}` : `${order.number}`) }, decides],
  [{ title: (order: Fields) => `${order.number ?? 'none'}` }, decides],
  [
    { title: (order: Fields) => order.number.toUpperCase() },
    /title cannot be made of the members as they are \(.*not a function\); declare a computed field/,
  ],
];

for (const [declaration, expected] of mistakes) {
  test(`refuses ${JSON.stringify(declaration, (_, each) => (typeof each === 'function' ? String(each) : each)).slice(0, 90)}`, () => {
    const found = mistakesOf(declaration);
    assert.equal(found.length, 1, found.join('\n'));
    if (typeof expected === 'string') assert.equal(found[0], expected);
    else assert.match(found[0] ?? '', expected);
  });
}
