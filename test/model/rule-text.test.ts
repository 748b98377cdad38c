/** Access rules as text (§5.1): brackets, values, paths, and what functions return for a caller. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { permission, type Rule } from '../../src/model/access.ts';
import { allow } from '../../src/model/access-function.ts';
import { anonymous, authenticated } from '../../src/model/principal.ts';
import { clauseOf, clauseText, judgedAlternatives, ruleText } from '../../src/model/rule-text.ts';

const ticket = Type.Object({ title: Type.String(), customerId: Type.Optional(Type.String()) });
const schema = Type.Object({
  status: Type.Optional(Type.String()),
  price: Type.Optional(Type.Number()),
  tags: Type.Optional(Type.Array(Type.String())),
  dueAt: Type.Optional(Type.String({ format: 'date-time' })),
  tenantId: Type.Optional(Type.String()),
  ticketId: Type.Optional(Type.String()),
});

/** The rule as a configuration resolves it, for reading. */
function resolved(rule: Rule): Rule {
  const things = { schema, tenantField: 'tenantId', access: { read: rule } } as const;
  const references = { ticketId: { collection: 'tickets' } };
  const collections = resolveCollections({ things: { ...things, references }, tickets: { schema: ticket } });
  return collections.get('things')?.access.read ?? assert.fail();
}

const open: Rule = { where: { status: 'open' } };

describe('writes a rule in one line', () => {
  const texts: readonly (readonly [rule: Rule, text: string])[] = [
    ['public', 'anyone'],
    ['principal', 'anyone with a credential'],
    ['administrator', 'caller is an administrator'],
    ['tenant', "tenantId is the caller's tenant"],
    [{ scope: 'webhooks' }, 'scope is webhooks'],
    [{ role: 'night shift' }, 'role is "night shift"'],
    [{ where: { status: null, price: 5 } }, 'status is absent AND price is 5'],
    [{ where: { status: 'true' } }, 'status is "true"'],
    [{ where: { status: '5' } }, 'status is "5"'],
    [{ where: { dueAt: '2026-11-21T12:00:00+01:00' } }, 'dueAt is "2026-11-21T11:00:00.000Z"'],
    [{ where: { 'ticketId.title': 'Broken' } }, 'ticketId.title is Broken'],
    [
      { anyOf: [{ allOf: [open, 'owner'] }, { role: 'admin' }] },
      '(status is open AND owner is the caller) OR role is admin',
    ],
    [
      { allOf: [{ anyOf: [open, 'owner'] }, { role: 'admin' }] },
      '(status is open OR owner is the caller) AND role is admin',
    ],
    [{ anyOf: [{ allOf: ['owner'] }] }, 'owner is the caller'],
    [{ anyOf: [allow(() => true), 'owner'] }, 'a function permits it OR owner is the caller'],
  ];
  for (const [rule, text] of texts) test(text, () => assert.equal(ruleText(resolved(rule)), text));
});

test('writes the scope of a rule of the program itself', () => {
  const rule: Rule = { bearing: 'webhooks', rule: { anyOf: ['owner', open] } };
  assert.equal(ruleText(rule), 'scope is webhooks AND (owner is the caller OR status is open)');
});

const ada = authenticated({ id: 'usr_ada', scopes: ['read'], roles: ['agent'], tenant: 'north' });

describe('writes what a function returns for a caller', () => {
  type References = { ticketId: typeof ticket };
  type Judge = Parameters<typeof allow<typeof schema, References>>[0];
  const many = Array.from({ length: 13 }, (_, index) => `v${index}`);
  const texts: readonly (readonly [judge: Judge, text: string])[] = [
    [() => true, 'always'],
    [(principal) => principal.roles.has('editor'), 'never'],
    [
      (principal, thing) =>
        thing.status.in(['open', 'assigned']).and(thing.owner.is(principal.id)).or(thing.price.gte(5)),
      '(status is open or assigned AND owner is the caller) OR price is at least 5',
    ],
    [
      (_principal, thing) => thing.status.in(many),
      'status is v0, v1, v2, v3, v4, v5, v6, v7, v8, v9 or 3 other values',
    ],
    [(_principal, thing) => thing.tags.has('red').not(), 'NOT tags has red'],
    [
      (_principal, thing) => thing.status.is('a').or(thing.price.lt(2)).not(),
      'NOT (status is a OR price is less than 2)',
    ],
    [(_principal, thing) => thing.status.isPresent(), 'status is present'],
    [(principal, thing) => thing.ticketId.customerId.is(principal.id), 'ticketId.customerId is the caller'],
    [(_principal, thing) => thing.ticketId.title.isNot('Done'), 'NOT ticketId.title is Done'],
  ];
  for (const [judge, text] of texts) {
    test(text, () => {
      const rule = resolved(allow<typeof schema, References>(judge));
      assert.equal(clauseText(clauseOf(rule, ada)), text);
    });
  }
});

test('calls members as their labels say', () => {
  const clause = clauseOf(resolved({ allOf: [open, 'tenant', { where: { 'ticketId.title': 'x' } }] }));
  const labels = { status: 'State', tenantId: 'Company', ticketId: 'Ticket' };
  assert.equal(
    clauseText(clause, labels),
    "State is open AND Company is the caller's tenant AND Ticket.title is x",
  );
});

test('numbers the alternatives of a rule and their parts, each decided alone', () => {
  const rule = resolved({ anyOf: [{ allOf: [open, { role: 'agent' }] }, { role: 'editor' }, 'principal'] });
  const answers = (principal: typeof ada | typeof anonymous) =>
    judgedAlternatives(clauseOf(rule, principal), (part) => permission(part, 'read', principal))
      .flatMap((each) => [each, ...each.parts])
      .map(({ number, answer }) => `${number} ${answer}`);
  assert.deepEqual(answers(ada), ['1 depends', '1.1 depends', '1.2 granted', '2 denied', '3 granted']);
  assert.deepEqual(answers(anonymous), ['1 denied', '1.1 depends', '1.2 denied', '2 denied', '3 denied']);
});

test('a function is one alternative, whatever it returns', () => {
  const rule = resolved(
    allow<typeof schema>((principal, thing) => thing.owner.is(principal.id).or(thing.status.is('open'))),
  );
  const alternatives = judgedAlternatives(clauseOf(rule, ada), (part) => permission(part, 'read', ada));
  assert.deepEqual(
    alternatives.map(({ number, parts }) => [number, parts.map((part) => part.number)]),
    [['1', ['1.1', '1.2']]],
  );
});
