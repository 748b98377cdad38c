/** Whom an account stands for, and how a credential narrows that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { User } from '../../../src/accounts/account-tables.ts';
import { principalOf } from '../../../src/accounts/users/user-row.ts';
import { isAdministrator, type Scope, scopes } from '../../../src/model/principal.ts';

const user: User = {
  id: 'usr_01jg0000000000000000000000',
  email: 'ada@shop.example',
  emailVerified: true,
  roles: ['clerk'],
  scopes: ['read', 'write'],
  tenant: 'north',
  disabled: false,
  createdAt: '2030-01-01T00:00:00.000Z',
  updatedAt: '2030-01-01T00:00:00.000Z',
};

function scopesOf(given: User, limit?: readonly Scope[]): readonly Scope[] {
  return [...(principalOf(given, limit)?.scopes ?? [])];
}

test('an account has its own scopes, roles and tenant', () => {
  const principal = principalOf(user);
  assert.equal(principal?.id, user.id);
  assert.equal(principal?.tenant, 'north');
  assert.deepEqual([...(principal?.roles ?? [])], ['clerk']);
  assert.deepEqual(scopesOf(user), ['read', 'write']);
  const { tenant: _none, ...without } = user;
  assert.equal(principalOf(without)?.tenant, null);
});

test('a disabled account stands for nobody, be it an administrator', () => {
  assert.equal(principalOf({ ...user, disabled: true }), undefined);
  assert.equal(principalOf({ ...user, disabled: true, roles: ['administrator'] }, ['read']), undefined);
});

test('the role administrator gives every scope, and the scope admin makes an administrator too', () => {
  assert.deepEqual(scopesOf({ ...user, roles: ['administrator'], scopes: [] }), scopes);
  const byScope = principalOf({ ...user, scopes: ['admin'] });
  assert.ok(byScope !== undefined && isAdministrator(byScope));
});

test('a limit takes away and never adds', () => {
  assert.deepEqual(scopesOf(user, ['read']), ['read']);
  assert.deepEqual(scopesOf(user, ['read', 'admin', 'webhooks']), ['read']);
  assert.deepEqual(scopesOf(user, []), []);
});

test('what an administrator limits to less than admin bears no role that would give it back', () => {
  const chief = { ...user, roles: ['administrator', 'clerk'] };
  const limited = principalOf(chief, ['read', 'write']);
  assert.ok(limited !== undefined && !isAdministrator(limited));
  assert.deepEqual([...limited.roles], ['clerk']);
  assert.deepEqual([...limited.scopes], ['read', 'write']);
  const whole = principalOf(chief, ['admin']);
  assert.ok(whole !== undefined && isAdministrator(whole));
  assert.ok(whole.roles.has('administrator'));
});
