/** Idempotency-Key where the answer holds a secret: POST to /keys and /endpoints (docs/decisions/0046). */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Answer, adminKey, type RequestOptions } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const base = '/api/v1';
let folder: string;
let program: RunningServer;

before(async () => {
  folder = temporaryFolder();
  program = await startServer({ folder });
});

after(async () => {
  await program?.stop();
});

type Kind = {
  readonly path: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly secret: string;
};

const kinds: readonly Kind[] = [
  {
    path: `${base}/keys`,
    json: { name: 'sealed', kind: 'secret', scopes: ['read'] },
    secret: 'key',
  },
  {
    path: `${base}/endpoints`,
    json: { url: 'https://hooks.example.com/', events: ['a.b'], description: 'sealed' },
    secret: 'secret',
  },
];

function ask({ path, json }: Kind, name: string, options: RequestOptions = {}): Promise<Answer> {
  const headers = { 'Idempotency-Key': `"${name} ${path}"`, ...options.headers };
  return program.send('POST', path, { json, ...options, headers });
}

async function idsAt(path: string): Promise<readonly string[]> {
  const list = await program.send('GET', `${path}?limit=200`);
  return (list.json().items as readonly { readonly id: string }[]).map(({ id }) => id);
}

/** All octets of the embedded store; of another there is no file. */
function storedOctets(): Buffer {
  const files = readdirSync(folder).filter((name) => name.startsWith('comity.db'));
  return Buffer.concat(files.map((name) => readFileSync(join(folder, name))));
}

for (const kind of kinds) {
  test(`makes one of two at ${kind.path} under one Idempotency-Key, and shows its secret again`, async () => {
    const stood = await idsAt(kind.path);
    const first = await ask(kind, 'once');
    assert.equal(first.status, 201, first.body);
    const again = await ask(kind, 'once');
    assert.deepEqual(
      [again.status, again.body, again.headers.location],
      [201, first.body, first.headers.location],
    );
    assert.equal((await idsAt(kind.path)).length, stood.length + 1);
    assert.equal(typeof first.json()[kind.secret], 'string');
    const other = await ask(kind, 'another');
    assert.notEqual(other.json().id, first.json().id);
  });

  test(`shows the secret of ${kind.path} again after a restart`, async () => {
    const first = await ask(kind, 'restarted');
    assert.equal(first.status, 201, first.body);
    await program.stop();
    program = await startServer({ folder });
    const again = await ask(kind, 'restarted');
    assert.deepEqual([again.status, again.body], [201, first.body]);
  });
}

test('keeps no key of an answer in the database', async () => {
  const [keys] = kinds;
  assert(keys !== undefined);
  const made = await ask(keys, 'unreadable');
  const text = String(made.json().key);
  assert.match(text, /^sk_/);
  const octets = storedOctets();
  assert.ok(process.env.COMITY_TEST_STORE === 'postgres' || octets.includes('idempotency_keys'));
  assert.ok(!octets.includes(text), 'the key stands in the database');
  assert.ok(!octets.includes(adminKey), 'the credential stands in the database');
});

test('gives another credential of the same caller the Location of the result, and not its content', async () => {
  const [keys] = kinds;
  assert(keys !== undefined);
  const json = { email: 'sealed@example.com', password: 'correct horse battery staple' };
  const registered = await program.send('POST', `${base}/auth/register`, { json, anonymous: true });
  const loggedIn = await program.send('POST', `${base}/auth/login`, { json, anonymous: true });
  const as = (authorization: string) =>
    ask(keys, 'two-credentials', { anonymous: true, headers: { Authorization: authorization } });
  const first = await as(`Bearer ${String(registered.json().token)}`);
  assert.equal(first.status, 201, first.body);
  const other = await as(`Bearer ${String(loggedIn.json().token)}`);
  assert.deepEqual(
    [other.status, other.json().code, other.headers.location],
    [409, 'idempotency_result_sealed', first.headers.location],
  );
  assert.ok(!other.body.includes(String(first.json().key)));
  const basic = Buffer.from(`${json.email}:${json.password}`).toString('base64');
  assert.equal((await as(`Basic ${basic}`)).status, 409);
  assert.equal((await as(`Bearer ${String(registered.json().token)}`)).body, first.body);
});

test('keeps no answer at all under a password, which could be guessed from it', async () => {
  const [keys] = kinds;
  assert(keys !== undefined);
  const json = { email: 'guessable@example.com', password: 'correct horse battery staple' };
  await program.send('POST', `${base}/auth/register`, { json, anonymous: true });
  const basic = Buffer.from(`${json.email}:${json.password}`).toString('base64');
  const by = () =>
    ask(keys, 'by-password', { anonymous: true, headers: { Authorization: `Basic ${basic}` } });
  const first = await by();
  assert.equal(first.status, 201, first.body);
  const again = await by();
  assert.deepEqual([again.status, again.headers.location], [409, first.headers.location]);
});
