/** `comity keys`: API keys on a running server, from the command line. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Outcome, runCommand } from '../harness/command-line.ts';
import { adminKey } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';

const dayMs = 86_400_000;

let server: RunningServer;

before(async () => {
  server = await startServer();
});

after(async () => {
  await server.stop();
});

function keys(...args: readonly string[]): Promise<Outcome> {
  return runCommand(['keys', ...args], { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });
}

async function isGood(key: string): Promise<boolean> {
  const answer = await fetch(`${server.url}/api/v1/notes`, { headers: { 'X-API-Key': key } });
  await answer.arrayBuffer();
  return answer.status === 200;
}

async function made(...args: readonly string[]): Promise<Record<string, string>> {
  const { code, stdout, stderr } = await keys('create', ...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('prints a new key alone on stdout, and what it is on stderr', async () => {
  const { code, stdout, stderr } = await keys('create', 'nightly import');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^sk_[A-Za-z0-9_-]{43}\n$/);
  const [first, second] = stderr.trimEnd().split('\n');
  assert.match(first ?? '', /^comity: key_[0-9a-z]{26} \(nightly import\): read, write, does not expire\.$/);
  assert.equal(second, 'comity: the key is shown only once; keep it now');
  assert.ok(await isGood(stdout.trim()));
  const listed = await keys('list');
  assert.ok(!listed.stdout.includes(stdout.trim()));
});

test('makes publishable keys, and keys with scopes and an end', async () => {
  const publishable = await made('shop window', '--publishable');
  assert.match(publishable.key ?? '', /^pk_/);
  assert.deepEqual(publishable.scopes, ['read']);
  const limited = await made('reports', '--scope', 'read', 'webhooks', '--expires', '30d');
  assert.deepEqual(limited.scopes, ['read', 'webhooks']);
  const days = (Date.parse(limited.expiresAt ?? '') - Date.now()) / dayMs;
  assert.ok(days > 29.9 && days <= 30);
  assert.equal((await made('x', '--expires', '2199-12-31')).expiresAt, '2199-12-31T00:00:00.000Z');
  for (const bad of ['soon', '30', '0d', '12-31', '2199-13-01']) {
    const { code, stderr } = await keys('create', 'x', '--expires', bad);
    assert.deepEqual([code, stderr], [2, `comity: --expires must be like 30d or 2030-12-31, not "${bad}"\n`]);
  }
  assert.deepEqual(await keys('create', 'x', '--expires', '2020-01-01'), {
    code: 1,
    stdout: '',
    stderr: 'comity: validation failed: expiresAt must be in the future\n',
  });
});

test('makes keys with hosts of their own to tunnel to', async () => {
  const scope = ['--scope', 'read', 'tunnel'] as const;
  const lists = [
    '--tunnel-allow',
    'A.example,*.b.example',
    '--tunnel-deny',
    'c.b.example',
    '--tunnel-mode',
    'report',
  ];
  const limited: Record<string, unknown> = await made('sandbox', ...scope, ...lists);
  assert.deepEqual(limited.tunnel, {
    mode: 'report',
    allow: ['a.example', '*.b.example'],
    deny: ['c.b.example'],
  });
  const closed: Record<string, unknown> = await made('closed', ...scope, '--tunnel-allow', '');
  assert.deepEqual(closed.tunnel, { mode: 'enforce', allow: [], deny: [] });
  const { code, stderr } = await keys('create', 'x', '--tunnel-allow', 'https://a.example');
  assert.equal(code, 1);
  assert.match(stderr, /tunnel requires the scope "tunnel"/);
  assert.equal((await keys('create', 'x', ...scope, '--tunnel-mode', 'report')).code, 2);
  assert.equal(
    (await keys('create', 'x', ...scope, '--tunnel-mode', 'off', '--tunnel-deny', 'a.example')).code,
    2,
  );
});

test('lists keys with what people know them by, or as JSON', async () => {
  const { id, prefix } = await made('to be listed');
  const { code, stdout } = await keys('list');
  assert.equal(code, 0);
  const [head = '', first = ''] = stdout.split('\n');
  assert.match(head, /^ID +NAME +KEY +SCOPES +EXPIRES +LAST USED +CREATED$/);
  assert.deepEqual(first.split(/ {2,}/).slice(0, 6), [
    ...[id, 'to be listed', `${prefix}...`, 'read, write', 'never', 'never'],
  ]);
  const listed = JSON.parse((await keys('list', '--json', '--limit', '1')).stdout);
  assert.deepEqual([listed.length, listed[0].id], [1, id]);
});

test('rotates a key, at once or with an overlap', async () => {
  const { id = '', key: first = '' } = await made('rotated');
  const second = await keys('rotate', id, '--overlap', '600');
  assert.equal(second.code, 0, second.stderr);
  assert.ok((await isGood(first)) && (await isGood(second.stdout.trim())));
  const third = await keys('rotate', id, '--json');
  const { key: text } = JSON.parse(third.stdout) as { key: string };
  assert.deepEqual(await Promise.all([first, second.stdout.trim(), text].map(isGood)), [false, false, true]);
  const beyond = await keys('rotate', id, '--overlap', '31000000');
  assert.equal(beyond.code, 1);
  assert.match(beyond.stderr, /^comity: validation failed: overlapSeconds /);
});

test('revokes a key', async () => {
  const { id = '', key = '' } = await made('revoked');
  assert.ok(await isGood(key));
  assert.deepEqual(await keys('revoke', id), {
    code: 0,
    stdout: `${id} (revoked) was revoked.\n`,
    stderr: '',
  });
  assert.ok(!(await isGood(key)));
  for (const args of [
    ['revoke', id],
    ['rotate', id],
    ['revoke', id, '--json'],
  ]) {
    assert.deepEqual(await keys(...args), { code: 1, stdout: '', stderr: `comity: there is no key ${id}\n` });
  }
});

test('names the endpoints that a key and the keys of that key made, and disables them where it is asked to', async () => {
  const ask = async (key: string, method: string, path: string, json?: object) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      method,
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, text);
    return JSON.parse(text) as Record<string, string>;
  };
  const endpoint = { url: 'https://thief.example/hooks', events: ['*'] };
  for (const disables of [false, true]) {
    const stolen = await made('stolen', '--scope', 'read', 'write', 'webhooks');
    const second = await ask(stolen.key ?? '', 'POST', '/keys', {
      ...{ name: 'of the thief', kind: 'secret', scopes: ['webhooks'] },
    });
    const first = await ask(stolen.key ?? '', 'POST', '/endpoints', endpoint);
    const other = await ask(second.key ?? '', 'POST', '/endpoints', endpoint);
    assert.deepEqual([first.madeBy, other.madeBy], [stolen.id, second.id]);
    const { code, stdout } = await keys(
      ...['revoke', stolen.id ?? '', ...(disables ? ['--disable-endpoints'] : [])],
    );
    assert.equal(code, 0);
    for (const { id = '' } of [first, other]) {
      assert.ok(stdout.includes(id), stdout);
      const { status } = await ask(adminKey, 'GET', `/endpoints/${id}`);
      assert.equal(status, disables ? 'disabled' : 'enabled');
    }
  }
});

for (const args of [
  [],
  ['create'],
  ['rotate'],
  ['rotate', 'key_x', '--overlap', '-1'],
  ['revoke'],
  ['list', 'x'],
]) {
  test(`answers "comity keys ${args.join(' ')}" with the usage exit code`, async () => {
    const { code, stdout, stderr } = await keys(...args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.notEqual(stderr, '');
  });
}
