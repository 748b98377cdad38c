/**
 * The three answers of a rule agree, whatever the rule, the principal and the resource (§5.1): what is decided early is so for every
 * resource, and a list shows exactly what a read by id would give. Rules, principals and resources are drawn at random.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { permission, permits, type Rule, visibleTo } from '../../src/model/access.ts';
import type { Condition } from '../../src/model/access-condition.ts';
import { allow, type ResourceExpressions, type RulePrincipal } from '../../src/model/access-function.ts';
import { type Field, ownerField } from '../../src/model/field.ts';
import { matches, memberAt } from '../../src/model/matches.ts';
import { anonymous, authenticated, type Principal, type Scope } from '../../src/model/principal.ts';
import { type Clause, clauseOf } from '../../src/model/rule-text.ts';

const schema = Type.Object({
  text: Type.Optional(Type.String()),
  price: Type.Optional(Type.Number()),
  live: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Type.Array(Type.String())),
  tenantId: Type.Optional(Type.String()),
  address: Type.Optional(Type.Object({ city: Type.Optional(Type.String()) })),
});
type Resource = ResourceExpressions<typeof schema>;

const names = ['ada', 'bob', 'north', 'south', 'editor'];
const aName = fc.constantFrom(...names);
const maybeName = fc.option(aName);

const principals: fc.Arbitrary<Principal> = fc.oneof(
  fc.constant(anonymous),
  fc
    .record({
      id: aName,
      scopes: fc.subarray<Scope>(['read', 'write', 'webhooks', 'admin']),
      roles: fc.subarray(names),
      tenant: maybeName,
    })
    .map((parts) => authenticated(parts)),
);

const resources = fc.record({
  owner: maybeName,
  doc: fc.record(
    {
      text: maybeName,
      price: fc.integer({ min: -2, max: 2 }),
      live: fc.boolean(),
      tags: fc.array(aName, { maxLength: 3 }),
      tenantId: maybeName,
      address: fc.record({ city: aName }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  ),
});

type Judge = (principal: RulePrincipal, resource: Resource) => Condition | boolean;

/** Which value a condition compares with: one of its own, or one of the caller. */
const value = fc.oneof(
  aName.map((own) => () => own as string | null),
  fc.constant((principal: RulePrincipal) => principal.id),
  fc.constant((principal: RulePrincipal) => principal.tenant),
);

const leaves: fc.Arbitrary<Judge> = fc.oneof(
  fc.boolean().map(
    (answer): Judge =>
      () =>
        answer,
  ),
  aName.map(
    (role): Judge =>
      (p) =>
        p.roles.has(role),
  ),
  value.map(
    (of): Judge =>
      (p, r) =>
        r.owner.is(of(p)),
  ),
  value.map(
    (of): Judge =>
      (p, r) =>
        r.text.is(of(p)),
  ),
  value.map(
    (of): Judge =>
      (p, r) =>
        r.text.isNot(of(p)),
  ),
  value.map(
    (of): Judge =>
      (p, r) =>
        r.tags.has(of(p)),
  ),
  value.map(
    (of): Judge =>
      (p, r) =>
        r.address.city.is(of(p)),
  ),
  fc.constant<Judge>((p, r) => r.tenantId.in(p.roles)),
  fc.constant<Judge>((_, r) => r.tenantId.isAbsent()),
  fc.integer({ min: -2, max: 2 }).map(
    (least): Judge =>
      (_, r) =>
        r.price.gte(least),
  ),
  fc.integer({ min: -2, max: 2 }).map(
    (most): Judge =>
      (_, r) =>
        r.price.lt(most),
  ),
  fc.boolean().map(
    (live): Judge =>
      (_, r) =>
        r.live.is(live),
  ),
);

const judges: fc.Arbitrary<Judge> = fc.letrec<{ judge: Judge }>((tie) => {
  const pair = fc.tuple(tie('judge'), tie('judge'));
  return {
    judge: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      leaves,
      pair.map(
        ([one, other]): Judge =>
          (p, r) =>
            joined(one(p, r), other(p, r), 'and'),
      ),
      pair.map(
        ([one, other]): Judge =>
          (p, r) =>
            joined(one(p, r), other(p, r), 'or'),
      ),
      tie('judge').map(
        (one): Judge =>
          (p, r) =>
            negated(one(p, r)),
      ),
    ),
  };
}).judge;

function joined(
  one: Condition | boolean,
  other: Condition | boolean,
  how: 'and' | 'or',
): Condition | boolean {
  if (typeof one !== 'boolean') return one[how](other);
  if (typeof other !== 'boolean') return other[how](one);
  return how === 'and' ? one && other : one || other;
}

function negated(one: Condition | boolean): Condition | boolean {
  return typeof one === 'boolean' ? !one : one.not();
}

const rules: fc.Arbitrary<Rule> = fc.letrec<{ rule: Rule; leaf: Rule }>((tie) => ({
  rule: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('rule'), { minLength: 1, maxLength: 3 }).map((anyOf): Rule => ({ anyOf })),
    fc.array(tie('rule'), { minLength: 1, maxLength: 3 }).map((allOf): Rule => ({ allOf })),
  ),
  leaf: fc.oneof(
    fc.constantFrom<Rule>('public', 'principal', 'owner', 'tenant', 'administrator'),
    aName.map((role): Rule => ({ role })),
    fc.constantFrom<Scope>('read', 'write', 'webhooks').map((scope): Rule => ({ scope })),
    fc
      .record({ text: fc.option(aName), live: fc.boolean() }, { requiredKeys: ['text'] })
      .map((where): Rule => ({ where })),
    judges.map((judge): Rule => allow<typeof schema>(judge)),
  ),
})).rule;

test('what is decided early holds for every resource, and a list shows exactly what a read gives', () => {
  const seen = { granted: 0, denied: 0, listed: 0, left: 0 };
  fc.assert(
    fc.property(
      rules,
      principals,
      fc.array(resources, { minLength: 1, maxLength: 5 }),
      (rule, principal, things) => {
        const collection = resolveCollections({
          things: { schema, tenantField: 'tenantId', access: { read: rule } },
        }).get('things');
        assert.ok(collection);
        const { read } = collection.access;
        const early = permission(read, 'read', principal);
        if (early !== 'depends') seen[early] += 1;
        const filter = visibleTo(
          read,
          principal,
          ownerField,
          (of) => collection.fields.get(of) ?? assert.fail(of),
        );
        for (const { owner, doc } of things) {
          const subject = { owner, member: (of: string) => (doc as Record<string, unknown>)[of] };
          const may = permits(read, 'read', principal, subject);
          if (early !== 'depends') assert.equal(may, early === 'granted');
          const standing = (field: Field) => (field.column === 'owner' ? owner : memberAt(doc, field.path));
          assert.equal(matches(filter, { value: standing, search: null }), may);
          seen[may ? 'listed' : 'left'] += 1;
        }
      },
    ),
    { numRuns: 3000 },
  );
  for (const [how, count] of Object.entries(seen)) assert.ok(count > 100, `too few were ${how}`);
});

test('the parts of a rule, joined as its text joins them, decide as the whole does', () => {
  const joins = { AND: 0, OR: 0, NOT: 0 };
  const joinedFrom = (clause: Clause, decide: (rule: Rule) => boolean): boolean => {
    const { join, parts } = clause;
    if (join === undefined) return decide(clause.rule);
    joins[join] += 1;
    const answers = parts.map((part) => joinedFrom(part, decide));
    const answer =
      join === 'AND' ? answers.every(Boolean) : join === 'OR' ? answers.some(Boolean) : !answers[0];
    assert.equal(decide(clause.rule), answer);
    return answer;
  };
  // Administrators, and credentials without the scope, are decided before the rule.
  const judged = principals.filter(
    (principal) =>
      principal.kind === 'anonymous' || (principal.scopes.has('read') && !principal.scopes.has('admin')),
  );
  fc.assert(
    fc.property(rules, judged, resources, (rule, principal, { owner, doc }) => {
      const { access } =
        resolveCollections({ things: { schema, tenantField: 'tenantId', access: { read: rule } } }).get(
          'things',
        ) ?? assert.fail();
      const subject = { owner, member: (of: string) => (doc as Record<string, unknown>)[of] };
      const decide = (part: Rule) => permits(part, 'read', principal, subject);
      assert.equal(joinedFrom(clauseOf(access.read, principal), decide), decide(access.read));
    }),
    { numRuns: 2000 },
  );
  for (const [join, count] of Object.entries(joins)) assert.ok(count > 100, `too few joined by ${join}`);
});
