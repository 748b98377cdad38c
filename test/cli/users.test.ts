/** `comity users`: accounts on a running server, from the command line. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { type Outcome, runCommand } from '../harness/command-line.ts';
import { adminKey as key } from '../harness/exchange.ts';
import { listen } from '../harness/listening.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';

let server: RunningServer;

before(async () => {
  server = await startServer({ env: { COMITY_LOGIN_ATTEMPTS: '0' } });
});

after(async () => {
  await server.stop();
});

function users(...args: readonly string[]): Promise<Outcome> {
  return runCommand(['users', ...args], { COMITY_URL: server.url, COMITY_ADMIN_KEY: key });
}

/** Runs the command with something on its stdin. */
function usersFed(input: string, ...args: readonly string[]): Promise<Outcome> {
  return runCommand(['users', ...args], { COMITY_URL: server.url, COMITY_ADMIN_KEY: key }, { input });
}

async function logsIn(email: string, password: string): Promise<boolean> {
  const answer = await fetch(`${server.url}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email, password }),
  });
  await answer.arrayBuffer();
  return answer.status === 200;
}

function jsonOf({ code, stdout, stderr }: Outcome): Record<string, unknown> {
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('says that there are no accounts', async () => {
  assert.deepEqual(await users('list'), { code: 0, stdout: 'No accounts.\n', stderr: '' });
  assert.deepEqual(await users('list', '--json'), { code: 0, stdout: '[]\n', stderr: '' });
});

test('makes an account and a password for it, shown this once, with which one can log in', async () => {
  const { code, stdout, stderr } = await users('create', 'Ada@Shop.Example', '--name', 'Ada');
  assert.equal(code, 0, stderr);
  assert.equal(stderr, 'comity: the password was generated here and is shown only once\n');
  assert.match(stdout, /^id {8}usr_[0-9a-z]{26}\nemail {5}ada@shop\.example \(not verified\)\nname {6}Ada\n/);
  const password = /^password {2}([A-Za-z0-9_-]{20})$/m.exec(stdout)?.[1] ?? '';
  assert.ok(await logsIn('ada@shop.example', password));
  const shown = await users('show', 'ada@shop.example');
  assert.ok(!`${shown.stdout}${server.stderr()}`.includes(password));
});

test('makes an account with roles, scopes and tenant, and a password from stdin', async () => {
  const made = await usersFed(
    'correct horse battery\nsecond line\n',
    ...['create', 'bob@shop.example', '--password-stdin', '--json', '--tenant', 'north'],
    ...['--role', 'editor', 'author', '--scope', 'read'],
  );
  const account = jsonOf(made);
  assert.deepEqual(
    [account.roles, account.scopes, account.tenant, account.password],
    [['editor', 'author'], ['read'], 'north', undefined],
  );
  assert.equal(made.stderr, '');
  assert.ok(await logsIn('bob@shop.example', 'correct horse battery'));
});

test('makes an account without a password when told so', async () => {
  const account = jsonOf(await users('create', 'cara@shop.example', '--no-password', '--json'));
  assert.equal(account.password, undefined);
  assert.equal(account.email, 'cara@shop.example');
});

test('shows accounts as a table, the newest first, or as JSON', async () => {
  const { code, stdout, stderr } = await users('list');
  assert.deepEqual([code, stderr], [0, '']);
  const [head = '', ...rows] = stdout.trimEnd().split('\n');
  assert.match(head, /^ID +EMAIL +NAME +ROLES +STATE +CREATED$/);
  assert.deepEqual(
    rows.map((row) => row.split(/ +/)[1]),
    ['cara@shop.example', 'bob@shop.example', 'ada@shop.example'],
  );
  const listed = JSON.parse((await users('list', '--json')).stdout) as readonly { email: string }[];
  assert.deepEqual(
    listed.map(({ email }) => email),
    ['cara@shop.example', 'bob@shop.example', 'ada@shop.example'],
  );
  const some = await users('list', '--limit', '2', '--json');
  assert.equal(JSON.parse(some.stdout).length, 2);
  assert.equal(some.stderr, 'comity: there are more than these 2; --limit shows more of them\n');
  const found = await users('list', '--search', 'bob@', '--json');
  assert.equal(JSON.parse(found.stdout).length, 1);
});

test('finds an account by its id and by its address in any spelling', async () => {
  const byEmail = jsonOf(await users('show', 'ADA@shop.example', '--json'));
  const byId = jsonOf(await users('show', String(byEmail.id), '--json'));
  assert.deepEqual(byId, byEmail);
});

test('disables and enables an account', async () => {
  assert.equal(jsonOf(await users('disable', 'bob@shop.example', '--json')).disabled, true);
  assert.ok(!(await logsIn('bob@shop.example', 'correct horse battery')));
  assert.match((await users('show', 'bob@shop.example')).stdout, /^disabled {2}yes$/m);
  assert.equal(jsonOf(await users('enable', 'bob@shop.example', '--json')).disabled, false);
  assert.ok(await logsIn('bob@shop.example', 'correct horse battery'));
});

test('sets roles in place of those that were there, and none when told so', async () => {
  const given = await users('set-roles', 'bob@shop.example', 'administrator', 'administrator', '--json');
  assert.deepEqual(jsonOf(given).roles, ['administrator']);
  assert.deepEqual(jsonOf(await users('set-roles', 'bob@shop.example', '--none', '--json')).roles, []);
  for (const args of [['bob@shop.example'], ['bob@shop.example', 'editor', '--none']]) {
    const { code, stderr } = await users('set-roles', ...args);
    assert.deepEqual([code, stderr], [2, 'comity: name the roles of the account, or use --none\n']);
  }
});

test('sets a password from stdin, or makes one and prints it alone', async () => {
  const fed = await usersFed('another horse battery', 'set-password', 'bob@shop.example', '--password-stdin');
  assert.deepEqual([fed.code, fed.stdout], [0, '']);
  assert.equal(fed.stderr, 'comity: bob@shop.example has a new password and no sessions\n');
  assert.ok(await logsIn('bob@shop.example', 'another horse battery'));
  const made = await users('set-password', 'bob@shop.example');
  assert.equal(made.code, 0);
  assert.match(made.stdout, /^[A-Za-z0-9_-]{20}\n$/);
  assert.ok(await logsIn('bob@shop.example', made.stdout.trim()));
  const empty = await usersFed('\n', 'set-password', 'bob@shop.example', '--password-stdin');
  assert.deepEqual([empty.code, empty.stderr], [2, 'comity: stdin has no password\n']);
});

test('deletes an account', async () => {
  const { code, stdout } = await users('delete', 'cara@shop.example');
  assert.equal(code, 0);
  assert.match(stdout, /^cara@shop\.example \(usr_[0-9a-z]{26}\) was deleted\.\n$/);
  const again = await users('delete', 'cara@shop.example', '--json');
  assert.deepEqual(again, { code: 1, stdout: '', stderr: 'comity: there is no account cara@shop.example\n' });
});

test('tells what the server refuses in one line', async () => {
  for (const [args, sentence] of [
    [
      ['create', 'nowhere', '--no-password'],
      'validation failed: email must be an e-mail address, such as ada@example.com',
    ],
    [['create', 'ada@shop.example', '--no-password'], 'email is already in use: email already in use'],
    [['show', 'usr_none'], 'there is no account usr_none'],
    [['show', 'x@'], 'there is no account x@'],
    [['disable', 'none@shop.example'], 'there is no account none@shop.example'],
  ] as const) {
    assert.deepEqual(await users(...args), { code: 1, stdout: '', stderr: `comity: ${sentence}\n` });
  }
  const short = await usersFed('short', 'create', 'dan@shop.example', '--password-stdin');
  assert.deepEqual([short.code, short.stdout], [1, '']);
  assert.equal(
    short.stderr,
    'comity: dan@shop.example was created, but has no password yet: validation failed: password must be at least 8 characters long\n',
  );
});

test('tells a wrong key, a key that is no administrator, and a missing one apart', async () => {
  const made = await fetch(`${server.url}/api/v1/keys`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-API-Key': key },
    body: JSON.stringify({ name: 'no administrator', kind: 'secret' }),
  });
  const { key: lesser } = (await made.json()) as { key: string };
  for (const [given, code, sentence] of [
    ['sk_wrong', 1, `${server.url} does not accept the key in COMITY_ADMIN_KEY`],
    [lesser, 1, `the key in COMITY_ADMIN_KEY is not an administrator's on ${server.url}`],
    ['', 2, 'set COMITY_ADMIN_KEY to the administrator key of the server'],
  ] as const) {
    const outcome = await runCommand(['users', 'list', '--url', server.url], { COMITY_ADMIN_KEY: given });
    assert.deepEqual(outcome, { code, stdout: '', stderr: `comity: ${sentence}\n` });
  }
});

test('says so when no server is there, when it is another program, and when the URL is none', async () => {
  const other = createServer((_request, response) => response.writeHead(404).end('<h1>no</h1>'));
  const { url, close } = await listen(other);
  const foreign = await runCommand(['users', 'list', '--url', url], { COMITY_ADMIN_KEY: key });
  assert.deepEqual(foreign, {
    code: 1,
    stdout: '',
    stderr: `comity: ${url}/api/v1 answered 404; is that a Comity server, and its base path?\n`,
  });
  await close();
  const away = await runCommand(['users', 'list', '--url', url], { COMITY_ADMIN_KEY: key });
  assert.deepEqual([away.code, away.stdout], [1, '']);
  assert.equal(
    away.stderr,
    `comity: ${url} cannot be reached (ECONNREFUSED); is "comity serve" running there? --url or COMITY_URL names another server\n`,
  );
  for (const bad of ['nonsense', 'ftp://127.0.0.1']) {
    const { code, stderr } = await runCommand(['users', 'list', '--url', bad], { COMITY_ADMIN_KEY: key });
    assert.equal(code, 2);
    assert.equal(stderr, `comity: the URL of the server must be like http://127.0.0.1:4000, not "${bad}"\n`);
  }
});

test('sends the key nowhere else, wherever the server points', async (context) => {
  let reached = 0;
  const elsewhere = createServer((_request, response) => {
    reached += 1;
    response.end('{"items":[],"nextCursor":null}');
  });
  const { url: away } = await listen(elsewhere, context);
  const pointing = createServer((_request, response) =>
    response.writeHead(307, { Location: `${away}/api/v1/users` }).end(),
  );
  const { url } = await listen(pointing, context);
  const { code } = await runCommand(['users', 'list', '--url', url], { COMITY_ADMIN_KEY: key });
  assert.deepEqual([code, reached], [1, 0]);
});

test('prints names without what would steer a terminal', async () => {
  const name = 'Eve\u001b[2J\u202e';
  jsonOf(await users('create', 'eve@shop.example', '--no-password', '--json', '--name', name));
  for (const args of [['list'], ['show', 'eve@shop.example']]) {
    const { stdout } = await users(...args);
    assert.ok(stdout.includes('Eve\u{FFFD}[2J\u{FFFD}'), stdout);
  }
});

test('takes a URL with the base path of another configuration', async () => {
  const { code } = await runCommand(['users', 'list', '--url', `${server.url}/api/v1/`], {
    COMITY_ADMIN_KEY: key,
  });
  assert.equal(code, 0);
});

for (const args of [
  [],
  ['lsit'],
  ['create'],
  ['show'],
  ['list', '--limit', '0'],
  ['list', 'x'],
  ['create', 'a@b.c', '--password', 'secret'],
]) {
  test(`answers "comity users ${args.join(' ')}" with the usage exit code`, async () => {
    const { code, stdout } = await users(...args);
    assert.deepEqual([code, stdout], [2, '']);
  });
}

test('removes the second factor of an account whose owner lost the device', async () => {
  const { id } = jsonOf(await users('create', 'lost@shop.example', '--json')) as { id: string };
  assert.deepEqual(jsonOf(await users('reset-second-factor', 'lost@shop.example', '--json')), {
    id,
    email: 'lost@shop.example',
    secondFactor: false,
  });
  const told = await users('reset-second-factor', id, '--yes');
  assert.equal(told.stdout, `lost@shop.example (${id}) has no second factor and no sessions.\n`);
  const uninvited = await users('invite', 'lost@shop.example');
  assert.notEqual(uninvited.code, 0);
  assert.match(uninvited.stderr, /no mail server is configured/);
  const missing = await users('reset-second-factor', 'nobody@shop.example', '--yes');
  assert.notEqual(missing.code, 0);
});
