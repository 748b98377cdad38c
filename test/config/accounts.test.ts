/** `accounts` of a configuration: what is filled in, and every mistake with the member that it is about. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allow, Type } from 'comity';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { ConfigurationDeclaration } from '../../src/config/define.ts';
import { ConfigurationError } from '../../src/config/inspection.ts';
import { permission } from '../../src/model/access.ts';
import { authenticated } from '../../src/model/principal.ts';
import { storeTables } from '../../src/store-tables.ts';

const fields = Type.Object({
  organisationId: Type.Optional(Type.String()),
  level: Type.Optional(Type.Integer()),
});
const organisations = { schema: Type.Object({ name: Type.String() }) };

function resolve(accounts: unknown, warn?: (sentence: string) => void) {
  const declaration = { collections: { organisations }, accounts } as ConfigurationDeclaration;
  return resolveConfiguration(declaration, warn);
}

function mistakes(accounts: unknown): readonly string[] {
  try {
    resolve(accounts);
  } catch (error) {
    assert.ok(error instanceof ConfigurationError);
    return error.mistakes;
  }
  return assert.fail('nothing was refused');
}

test('refuses fields that hold themselves by their place', () => {
  const member = { type: 'object', properties: {} as Record<string, unknown> };
  member.properties.parent = member;
  assert.match(
    mistakes({ fields: Type.Object({ member: member as never }) }).join(),
    /^accounts\.fields\.properties\.member.* is nested deeper than 64 levels of schemas$/,
  );
});

test('accounts have labels and groups as collections have', () => {
  const { users } = resolve({
    fields,
    labels: { one: 'Person', members: { organisationId: 'Company', email: 'Address' } },
    groups: { Work: ['organisationId', 'level'], Contact: ['email'] },
    help: { level: 'From 1 to 9.' },
    title: '{name} {email}',
    display: { level: 'percent' },
  }).accounts;
  assert.deepEqual(users.presentation?.labels, { organisationId: 'Company', email: 'Address' });
  assert.deepEqual(users.presentation?.groups, { Work: ['organisationId', 'level'], Contact: ['email'] });
  assert.deepEqual([users.presentation?.one, users.presentation?.title], ['Person', '{name} {email}']);
  assert.equal(resolve({ fields }).accounts.users.presentation, undefined);
  assert.deepEqual(mistakes({ fields, labels: { members: { levl: 'Level' } } }), [
    'accounts.labels.members names "levl", which is not a member of the schema; did you mean level?',
  ]);
  assert.match(
    mistakes({ fields, groups: { A: ['level'], B: ['level'] } }).join(),
    /^accounts\.groups\.B names "level"/,
  );
  assert.match(mistakes({ fields, labels: { several: 'People' } }).join(), /^accounts\.labels.*"several"/);
});

test('accounts get the fields of the application after the members of Comity', () => {
  const { accounts, collections } = resolve({
    fields,
    references: { organisationId: { collection: 'organisations' } },
    indexes: [['organisationId', 'email'], 'level'],
    unique: ['level'],
  });
  const { users, fieldNames } = accounts;
  assert.deepEqual(Object.keys(users.schema.properties).slice(-3), ['disabled', 'organisationId', 'level']);
  assert.deepEqual([...fieldNames], ['organisationId', 'level']);
  assert.deepEqual(users.searchFields, ['email', 'name', 'tenant']);
  assert.deepEqual(
    collections.get('organisations')?.dependants.map(({ from, countAs }) => [from, countAs]),
    [['users', 'userCount']],
  );
  const table = storeTables({ collections, accounts }).find(({ name }) => name === 'users');
  assert.deepEqual(
    table?.references.map(({ field, table: to }) => [field.name, to]),
    [['organisationId', 'organisations']],
  );
  assert.deepEqual(
    table?.indexes.map((index) => index.map(({ name }) => name)),
    [['organisationId', 'email'], ['level'], ['owner']],
  );
  assert.deepEqual(
    table?.unique.flat().map(({ name }) => name),
    ['email', 'level'],
  );
});

test('without a rule, administrators alone write a field of accounts and list accounts', () => {
  const { users, isListed, isAdministered } = resolve({ fields }).accounts;
  const itself = authenticated({ id: 'usr_1', scopes: ['read', 'write'] });
  for (const name of ['organisationId', 'level', 'roles'])
    assert.equal(permission(users.readOnly.get(name) ?? 'public', 'update', itself), 'denied');
  assert.equal(users.access.read, 'owner');
  assert.deepEqual([isListed, isAdministered], [false, false]);
});

test('roles give the roles of grants, or else their own, and routes are open or closed by default', () => {
  const admin = [
    { role: 'owner', where: 'tenant' },
    { role: 'dispatcher', where: 'tenant' },
  ];
  const declared = resolve({ admin, grants: { dispatcher: ['technician'] }, passwordless: { link: true } });
  const { admins, passwordless, invitations, emailChange } = declared.accounts;
  assert.deepEqual(
    admins.map(({ grants }) => grants),
    [undefined, new Set(['technician'])],
  );
  assert.deepEqual([passwordless, invitations, emailChange], [{ code: false, link: true }, true, true]);
  const closed = resolve({ invitations: false, emailChange: false }).accounts;
  assert.deepEqual([closed.passwordless.link, closed.invitations, closed.emailChange], [false, false, false]);
});

test('collections and accounts may refer to accounts', () => {
  const { collections, accounts } = resolveConfiguration({
    collections: {
      tasks: {
        schema: Type.Object({ assigneeId: Type.Optional(Type.String()) }),
        references: { assigneeId: { collection: 'users' } },
      },
    },
    accounts: {
      fields: Type.Object({ leadId: Type.Optional(Type.String()) }),
      references: { leadId: { collection: 'users', countAs: 'reportCount' } },
    },
  } as ConfigurationDeclaration);
  assert.equal(collections.get('tasks')?.references[0]?.collection, 'users');
  assert.deepEqual(
    accounts.users.dependants.map(({ from, field, countAs }) => [from, field, countAs]),
    [
      ['tasks', 'assigneeId', 'taskCount'],
      ['users', 'leadId', 'reportCount'],
    ],
  );
});

test('a required field that no registration can set is warned of', () => {
  const warnings: string[] = [];
  resolve({ fields: Type.Object({ level: Type.Integer() }) }, (sentence) => void warnings.push(sentence));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /^accounts\.fields requires "level", which a registration cannot set/);
  const open = { fields: Type.Object({ level: Type.Integer() }), readOnly: { level: 'owner' } };
  resolve(open, () => assert.fail('warned'));
});

const rule = allow(() => true);

for (const [what, accounts, mistake] of [
  ['anything but an object', [], /^accounts must be an object, not a list$/],
  ['no schema', { fields: {} }, /^accounts\.fields must be a Type\.Object\(\{ \.\.\. \}\)$/],
  ['an unknown property', { fields, acces: {} }, /^accounts has no property "acces"; did you mean access\?/],
  [
    'a member of Comity',
    { fields: Type.Object({ roles: Type.String() }) },
    /^accounts\.fields declares "roles"/,
  ],
  [
    'a member of registrations',
    { fields: Type.Object({ password: Type.String() }) },
    /^accounts\.fields declares "password"/,
  ],
  [
    'a member of the server',
    { fields: Type.Object({ createdAt: Type.String() }) },
    /^accounts\.fields declares "createdAt"/,
  ],
  ['unnamed members', { fields: Type.Object({}, { additionalProperties: true }) }, /^accounts\.fields/],
  [
    'a rule for creation',
    { fields, access: { create: 'principal' } },
    /^accounts\.access\.create cannot be declared/,
  ],
  ['an unknown action', { fields, access: { raed: 'owner' } }, /^accounts\.access has no action "raed"/],
  ['an unknown rule', { fields, access: { read: 'everybody' } }, /^accounts\.access\.read must be/],
  [
    'a readOnly of rights',
    { fields, readOnly: { roles: 'owner' } },
    /^accounts\.readOnly names "roles", which administrators alone write/,
  ],
  [
    'a readOnly of no field',
    { fields, readOnly: { levle: 'owner' } },
    /^accounts\.readOnly names "levle", which is not a field; did you mean level\?/,
  ],
  [
    'a reference that leads nowhere',
    { fields, references: { organisationId: { collection: 'organisation' } } },
    /^accounts\.references\.organisationId refers to "organisation", which is not a collection; did you mean organisations\?/,
  ],
  [
    'a reference of a number',
    { fields, references: { level: { collection: 'users' } } },
    /^accounts\.references names "level"/,
  ],
  [
    'an index of no field',
    { fields, indexes: ['organizationId'] },
    /^accounts\.indexes names "organizationId"/,
  ],
  [
    'a search of what is hidden',
    { fields, hidden: { name: 'owner' }, search: ['name'] },
    /^accounts\.search names "name"/,
  ],
  [
    'an unknown hook',
    { fields, hooks: { beforeRead: () => undefined } },
    /^accounts\.hooks\.beforeRead is not a hook/,
  ],
  ['no object as admin', { fields, admin: 'manager' }, /^accounts\.admin must be/],
  [
    'an admin without a rule',
    { fields, admin: { role: 'manager' } },
    /^accounts\.admin\.where must be a rule about the account/,
  ],
  [
    'an admin of everybody',
    { fields, admin: { role: 'manager', where: 'principal' } },
    /^accounts\.admin\.where must be a rule about the account/,
  ],
  [
    'an admin without a role',
    { fields, admin: { where: rule } },
    /^accounts\.admin\.role: role must be the name of a role/,
  ],
  [
    'an unknown member of admin',
    { fields, admin: { role: 'a', where: rule, wehre: rule } },
    /^accounts\.admin has no property "wehre"; did you mean where\?/,
  ],
  [
    'a list as grants',
    { grants: ['b'] },
    /^accounts\.grants must be \{ ROLE: \[ROLE, \.\.\.\] \}, not a list$/,
  ],
  [
    'a grant of administrators',
    { admin: [{ role: 'a', where: rule }], grants: { a: ['b', 'administrator'] } },
    /^accounts\.grants\.a must be a list of roles, such as \['technician'\], without "administrator"/,
  ],
  [
    'a grant by a role that administers no accounts',
    { admin: { role: 'a', where: rule }, grants: { toString: ['b'] } },
    /^accounts\.grants names "toString", which administers no accounts; add \{ role: 'toString', where: RULE \}/,
  ],
  [
    'a choice of no boolean',
    { invitations: 'off' },
    /^accounts\.invitations must be true or false, not a string$/,
  ],
  ['a choice of null', { emailChange: null }, /^accounts\.emailChange must be true or false, not null$/],
  [
    'a login by mail of no object',
    { passwordless: true },
    /^accounts\.passwordless must be \{ code: true \}/,
  ],
  [
    'an unknown login by mail',
    { passwordless: { sms: true } },
    /^accounts\.passwordless must be \{ code: true \}/,
  ],
  [
    'a second factor of no list',
    { secondFactor: { required: 'owner' } },
    /^accounts\.secondFactor must be \{ required: \[ROLE, \.\.\.\] \}/,
  ],
] as const) {
  test(`${what} is refused in accounts`, () => {
    const found = mistakes(accounts);
    assert.match(found[0] ?? '', mistake, found.join('\n'));
  });
}
