/** `tunnel` of a configuration (§4.10). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { ConfigurationError } from '../../src/config/inspection.ts';
import { canonicalHostGlob, createHostLists, type TunnelDeclaration } from '../../src/config/tunnel.ts';
import { type HostRules, judgeHosts } from '../../src/model/host-rules.ts';
import { authenticated, type Known } from '../../src/model/principal.ts';
import { knownAs } from '../resources/known.ts';

type Caller = { readonly id?: string; readonly roles?: readonly string[] } & Partial<Known>;

function listsOf(tunnel: TunnelDeclaration | undefined, { id = 'usr_a', roles = [], ...rest }: Caller = {}) {
  const declared = tunnel === undefined ? {} : { tunnel };
  const hostsOf = createHostLists(resolveConfiguration({ collections: {}, ...declared }).tunnel);
  const known = { ...knownAs(authenticated({ id, scopes: ['tunnel'], roles })), ...rest };
  return hostsOf(known.principal, known);
}

function reaches(tunnel: TunnelDeclaration | undefined, host: string, caller: Caller = {}): boolean {
  return judgeHosts(listsOf(tunnel, caller), host).allowed;
}

function mistakesOf(tunnel: unknown): readonly string[] {
  try {
    resolveConfiguration({ collections: {}, tunnel: tunnel as TunnelDeclaration });
  } catch (error) {
    assert.ok(error instanceof ConfigurationError);
    return error.mistakes;
  }
  return [];
}

test('without a declaration every host is open to everybody', () => {
  assert.deepEqual(listsOf(undefined), []);
  assert.deepEqual(listsOf({}), []);
});

const sandboxes: TunnelDeclaration = {
  everybody: { deny: ['*.internal.example'] },
  rules: [
    { keys: ['key_ci'], allow: ['packages.example'] },
    { users: ['usr_boss'], roles: ['operator'] },
    { roles: ['agent'], allow: ['*.pypi.org', 'db.internal.example'] },
  ],
  others: { allow: [] },
};

test('an empty list for all others closes the tunnel for whom no rule names', () => {
  assert.equal(reaches(sandboxes, 'packages.example'), false);
  assert.equal(reaches(sandboxes, 'files.pypi.org', { roles: ['agent'] }), true);
  assert.equal(reaches(sandboxes, 'packages.example', { roles: ['agent'] }), false);
});

test('a rule names by id, by role or by key', () => {
  assert.equal(reaches(sandboxes, 'example.com', { id: 'usr_boss' }), true);
  assert.equal(reaches(sandboxes, 'example.com', { roles: ['x', 'operator'] }), true);
  assert.equal(reaches(sandboxes, 'packages.example', { key: 'key_ci' }), true);
  assert.equal(reaches(sandboxes, 'packages.example', { key: 'key_other' }), false);
});

test('a key that was made with a named one is named with it', () => {
  const made = { id: 'usr_boss', key: 'key_made', makers: ['key_between', 'key_ci'] };
  assert.equal(reaches(sandboxes, 'packages.example', made), true);
  assert.equal(reaches(sandboxes, 'example.com', made), false);
});

test('the first rule that names the caller holds, and no other', () => {
  const both = { roles: ['agent', 'operator'] };
  assert.equal(reaches(sandboxes, 'example.com', both), true);
  assert.equal(reaches(sandboxes, 'files.pypi.org', { id: 'usr_boss', key: 'key_ci' }), false);
});

test('what holds for everybody is lifted by no rule', () => {
  assert.equal(reaches(sandboxes, 'db.internal.example', { id: 'usr_boss' }), false);
  assert.equal(reaches(sandboxes, 'db.internal.example', { roles: ['agent'] }), false);
});

test("the lists of the caller's keys come last and narrow further", () => {
  const own: HostRules = { mode: 'enforce', allow: ['files.pypi.org'], deny: [], name: 'the list of key_x' };
  const caller = { roles: ['agent'], key: 'key_x', hosts: [own] };
  assert.equal(reaches(sandboxes, 'files.pypi.org', caller), true);
  assert.deepEqual(judgeHosts(listsOf(sandboxes, caller), 'www.pypi.org'), {
    allowed: false,
    why: 'the list of key_x does not allow it',
  });
  assert.equal(listsOf(sandboxes, caller).at(-1), own);
});

test('a list says in the log where it stands', () => {
  const lists = listsOf(sandboxes, { roles: ['agent'] });
  assert.deepEqual(
    lists.map(({ name }) => name),
    ['tunnel.everybody', 'tunnel.rules[2]'],
  );
});

test('brings hosts into the spelling that they are compared in', () => {
  for (const [written, canonical] of [
    ['API.Example.COM.', 'api.example.com'],
    ['*.Bücher.de', '*.xn--bcher-kva.de'],
    ['0x7f.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['[2001:DB8:0:0::1]', '2001:db8::1'],
    ['2001:db8::0001', '2001:db8::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['*', '*'],
    ['localhost', 'localhost'],
  ] as const) {
    assert.equal(canonicalHostGlob(written), canonical, written);
  }
});

test('takes nothing for a host that is more than one, or less', () => {
  const more = [
    'https://a.example',
    'a.example/x',
    'a.example:443',
    'u@a.example',
    'a.example?',
    'a.example#',
    '10.0.0.0/8',
  ];
  const less = [
    '',
    ' ',
    '*.',
    '*.*.example',
    'a.*',
    '*.1.2.3.4',
    '*.[::1]',
    'fe80::1%eth0',
    '[::1',
    '1.2.3.4.5',
    'a..b',
    'a%2eb',
  ];
  for (const text of [...more, ...less, 'a b', 'a\n', 'a\\b', `${'a'.repeat(64)}.com`, 'a'.repeat(2000)]) {
    assert.equal(canonicalHostGlob(text), undefined, text);
  }
});

test('reports every mistake with its place', () => {
  assert.deepEqual(mistakesOf('open'), ['tunnel must be an object, not a string']);
  assert.deepEqual(mistakesOf({ ruls: [], everybody: [], others: { allows: [] } }), [
    'tunnel has no member "ruls"; did you mean rules?',
    'tunnel.everybody must be an object, not a list',
    'tunnel.others has no member "allows"; did you mean allow?',
  ]);
  assert.deepEqual(mistakesOf({ rules: {} }), ['tunnel.rules must be a list, not an object']);
  const rules = [
    { allow: ['example.com'] },
    { roles: ['a'], mode: 'log', allow: 'example.com', deny: ['https://example.com', 7] },
    { role: ['a'], users: ['ada@shop.example'], keys: ['sk_x'] },
    { roles: [''] },
    7,
  ];
  assert.deepEqual(mistakesOf({ rules }), [
    'tunnel.rules[0] must name at least one role, user or key; rules for all other callers belong in tunnel.others',
    'tunnel.rules[1].mode must be enforce or report',
    'tunnel.rules[1].allow must be a list of hosts, not a string',
    'tunnel.rules[1].deny[0] must be a host such as api.example.com, *.example.com or 192.0.2.1, without scheme, port and path, or *',
    'tunnel.rules[1].deny[1] must be a host such as api.example.com, *.example.com or 192.0.2.1, without scheme, port and path, or *',
    'tunnel.rules[2] has no member "role"; did you mean roles?',
    'tunnel.rules[2].keys holds "sk_x", which is not the id of a key (key_...)',
    'tunnel.rules[2].users holds "ada@shop.example", which is not the id of a principal (usr_...)',
    'tunnel.rules[3].roles must be a list of 1000 texts at most',
    'tunnel.rules[3] must name at least one role, user or key; rules for all other callers belong in tunnel.others',
    'tunnel.rules[4] must be an object, not a number',
  ]);
  const globs = Array.from({ length: 1001 }, () => 'a.example');
  assert.deepEqual(mistakesOf({ others: { allow: globs } }), [
    'tunnel.others.allow may hold 1000 hosts at most',
  ]);
  assert.deepEqual(
    mistakesOf({
      others: { allow: globs.slice(1), deny: [] },
      rules: [{ users: ['https://i.example|a@b'] }],
    }),
    [],
  );
});
