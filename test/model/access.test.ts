/**
 * Access rules (§4.7.1, §5.1): what a rule says before a resource is looked at, of one resource, and of all of them as a filter,
 * for each rule, action and kind of principal. The three must agree, or something leaks.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Action,
  permission,
  permits,
  type Rule,
  type Subject,
  visibleTo,
} from '../../src/model/access.ts';
import type { Field } from '../../src/model/field.ts';
import { matches } from '../../src/model/matches.ts';
import {
  type Authenticated,
  anonymous,
  authenticated,
  type Principal,
  type Scope,
} from '../../src/model/principal.ts';

const actions: readonly Action[] = ['read', 'create', 'update', 'delete'];
const ownerField: Field = { name: 'owner', path: [], type: 'string', column: 'owner' };

function named(id: string, ...scopes: readonly Scope[]): Authenticated {
  return authenticated({ id, scopes });
}

const alice = named('alice', 'read', 'write');
const bob = named('bob', 'read', 'write');
const reader = named('reader', 'read');
const writer = named('writer', 'write');
const administrator = named('root', 'admin');

type Thing = { readonly owner: string | null; readonly [name: string]: unknown };

const subjectOf = (thing: Thing): Subject => ({ owner: thing.owner, member: (name) => thing[name] });

function memberField(name: string): Field {
  return { name, path: [name], type: name === 'published' ? 'boolean' : 'string' };
}

const things: readonly Thing[] = [
  { owner: 'alice', published: true, kind: 'a' },
  { owner: 'alice', published: false, kind: 'a' },
  { owner: 'alice', kind: 'b' },
  { owner: 'bob', published: true },
  { owner: 'bob', published: null, kind: 'b' },
  { owner: null, published: true, kind: 'b' },
  { owner: null, published: false },
];

const rules: readonly Rule[] = [
  'public',
  'principal',
  'owner',
  'administrator',
  { where: { published: true } },
  { where: { published: null } },
  { where: { published: true, kind: 'b' } },
  { anyOf: [{ where: { published: true } }, 'owner'] },
  { allOf: [{ where: { published: true } }, 'owner'] },
  { anyOf: ['administrator', 'public'] },
  { allOf: ['administrator', 'public'] },
  { allOf: ['principal', { anyOf: ['owner', { where: { kind: 'b' } }] }] },
  { anyOf: ['principal', 'owner'] },
  { allOf: ['public', 'principal'] },
];

const principals: readonly Principal[] = [anonymous, alice, bob, reader, writer, administrator];

test('public is granted to anyone who may do the action at all', () => {
  for (const action of actions) assert.equal(permission('public', action, anonymous), 'granted');
  assert.equal(permission('public', 'read', alice), 'granted');
  assert.equal(permission('public', 'delete', reader), 'denied', 'the scope bounds what a rule grants');
  assert.equal(permission('public', 'read', writer), 'denied');
});

test('principal is denied to the anonymous caller and granted to others', () => {
  assert.equal(permission('principal', 'read', anonymous), 'denied');
  assert.equal(permission('principal', 'create', alice), 'granted');
  assert.equal(permission('principal', 'create', reader), 'denied');
});

test('owner is denied to the anonymous caller and depends on the resource for others', () => {
  assert.equal(permission('owner', 'update', anonymous), 'denied');
  assert.equal(permission('owner', 'update', alice), 'depends');
  const thing = subjectOf({ owner: 'alice' });
  assert.equal(permits('owner', 'update', alice, thing), true);
  assert.equal(permits('owner', 'update', bob, thing), false);
  assert.equal(
    permits('owner', 'update', anonymous, subjectOf({ owner: null })),
    false,
    'nobody owns what has no owner',
  );
  assert.equal(permits('owner', 'update', alice, subjectOf({ owner: null })), false);
});

test('administrator is denied to everyone else, and an administrator passes every rule', () => {
  for (const principal of [anonymous, alice, reader]) {
    assert.equal(permission('administrator', 'read', principal), 'denied');
  }
  for (const rule of rules) {
    for (const action of actions) {
      assert.equal(permission(rule, action, administrator), 'granted');
      for (const thing of things) assert.equal(permits(rule, action, administrator, subjectOf(thing)), true);
    }
  }
});

test('where compares each named member exactly, and an absent one as null', () => {
  const rule: Rule = { where: { published: true, kind: 'b' } };
  assert.equal(permission(rule, 'read', anonymous), 'depends');
  assert.equal(
    permits(rule, 'read', anonymous, subjectOf({ owner: null, published: true, kind: 'b' })),
    true,
  );
  assert.equal(permits(rule, 'read', anonymous, subjectOf({ owner: null, published: true })), false);
  assert.equal(
    permits(rule, 'read', anonymous, subjectOf({ owner: null, published: 'true', kind: 'b' })),
    false,
  );
  const nothing: Rule = { where: { published: null } };
  assert.equal(permits(nothing, 'read', anonymous, subjectOf({ owner: null })), true);
  assert.equal(permits(nothing, 'read', anonymous, subjectOf({ owner: null, published: false })), false);
});

test('anyOf is granted by one part, allOf is denied by one, and what is left depends', () => {
  assert.equal(permission({ anyOf: ['owner', 'public'] }, 'read', anonymous), 'granted');
  assert.equal(permission({ anyOf: ['owner', 'administrator'] }, 'read', anonymous), 'denied');
  assert.equal(permission({ anyOf: ['owner', 'administrator'] }, 'read', alice), 'depends');
  assert.equal(permission({ allOf: ['owner', 'public'] }, 'read', alice), 'depends');
  assert.equal(permission({ allOf: ['owner', 'administrator'] }, 'read', alice), 'denied');
  assert.equal(permission({ allOf: ['public', 'principal'] }, 'read', alice), 'granted');
});

test('a published article is read by anyone and a draft by its author alone', () => {
  const rule: Rule = { anyOf: [{ where: { published: true } }, 'owner'] };
  const published = subjectOf({ owner: 'alice', published: true });
  const draft = subjectOf({ owner: 'alice', published: false });
  for (const principal of [anonymous, alice, bob])
    assert.equal(permits(rule, 'read', principal, published), true);
  assert.equal(permits(rule, 'read', alice, draft), true);
  assert.equal(permits(rule, 'read', bob, draft), false);
  assert.equal(permits(rule, 'read', anonymous, draft), false);
});

test('the resource is not looked at where the rule is decided without it', () => {
  const subject: Subject = {
    owner: 'alice',
    member: () => {
      throw new Error('a member was read');
    },
  };
  assert.equal(permits('public', 'read', anonymous, subject), true);
  assert.equal(permits('owner', 'read', alice, subject), true);
  assert.equal(
    permits({ allOf: [{ where: { published: true } }, 'administrator'] }, 'read', alice, subject),
    false,
  );
});

test('a list shows exactly the resources that a read by id would give, whatever the rule and the principal', () => {
  let shown = 0;
  for (const rule of rules) {
    for (const principal of principals) {
      const filter = visibleTo(rule, principal, ownerField, memberField);
      for (const thing of things) {
        const value = (field: Field) => (field.column === 'owner' ? thing.owner : thing[field.name]);
        const listed = matches(filter, { value, search: null });
        const readable = permits(rule, 'read', principal, subjectOf(thing));
        assert.equal(
          listed,
          readable,
          `${JSON.stringify(rule)} ${JSON.stringify(principal)} ${JSON.stringify(thing)}`,
        );
        if (listed) shown += 1;
      }
    }
  }
  assert.ok(shown > 0);
});

test('what is decided without the resource agrees with every resource', () => {
  for (const rule of rules) {
    for (const action of actions) {
      for (const principal of principals) {
        const early = permission(rule, action, principal);
        if (early === 'depends') continue;
        for (const thing of things) {
          assert.equal(permits(rule, action, principal, subjectOf(thing)), early === 'granted');
        }
      }
    }
  }
});

test('a rule that is closed to a principal is the filter never, so that no store is asked', () => {
  assert.deepEqual(visibleTo('owner', anonymous, ownerField, memberField), { op: 'never' });
  assert.deepEqual(visibleTo('public', writer, ownerField, memberField), { op: 'never' });
  assert.deepEqual(visibleTo('public', anonymous, ownerField, memberField), { op: 'always' });
});
