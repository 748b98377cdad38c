/**
 * A run that uses every kind of secret and errs in every way, on either store, with the log at its most talkative. Then everything that it
 * left behind is searched for each of them, as it is and as programs write bytes: the log, every file of the store while it runs and
 * after, a backup, the rows of every table, and every answer but the one that gives the secret out (§5.1, §5.4).
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Answer,
  type Asked,
  base,
  basic,
  bearer,
  type Client,
  createJar,
  openClient,
  sessionCookieName,
  setCookies,
} from '../../harness/account-client.ts';
import { runCommand } from '../../harness/command-line.ts';
import { type FakeProvider, openFakeProvider } from '../../harness/forging-openid-provider.ts';
import { codeIn, type MailServer, mailUser, startUsersMailServer } from '../../harness/mail-server.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, shopConfig, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { filesIn, rowsOf } from '../../wire/auth/fixtures/left-behind.ts';
import { createSecrets, type Secrets } from '../../wire/auth/fixtures/secrets.ts';

const administratorKey = 'sk_leak_1f0c5e7d9b3a2846_administrator';
const databasePassword = 'database-Passw0rd-1f0c';

/** Remembers every answer, so that all are searched once all secrets are known. */
type Recorder = {
  readonly client: Client;
  ask(method: string, path: string, asked?: Asked): Promise<Answer>;
  /** For an answer that may hold a secret: it gives it out. */
  receive(method: string, path: string, asked: Asked): Promise<Answer>;
  readonly answers: readonly (readonly [what: string, content: string])[];
};

function record(client: Client): Recorder {
  const answers: [string, string][] = [];
  return {
    client,
    answers,
    receive: (method, path, asked) => client.ask(method, path, asked),
    async ask(method, path, asked) {
      const answer = await client.ask(method, path, asked);
      answers.push([`the ${answer.status} of ${method} ${path.split('?', 1)[0]}`, contentOf(answer)]);
      return answer;
    },
  };
}

const contentOf = (answer: Answer): string => `${answer.rawHeaders.join('\n')}\n${answer.body}`;

type Run = {
  readonly program: RunningServer;
  readonly secrets: Secrets;
  readonly recorder: Recorder;
  readonly mail: MailServer;
  readonly provider: FakeProvider;
};

/** No secret: a text that everybody may keep, and that a search must therefore find where it looks for secrets. */
const planted = 'planted-in-a-note-where-anybody-may-see-it';

const account = { email: 'ada@shop.example', password: 'first-Passw0rd of ada' };

describe('a search', () => {
  it('finds a secret in every way of writing it, and nothing else', () => {
    const secrets = createSecrets();
    const secret = 'sk_a key/with+more=than & letters';
    secrets.add('the key', secret);
    const bytes = Buffer.from(secret);
    for (const written of [
      secret,
      encodeURIComponent(secret),
      new URLSearchParams({ key: secret }).toString(),
      JSON.stringify({ secret }),
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
      bytes.toString('base64'),
      bytes.toString('base64url'),
      Buffer.from(`x:${secret}:y`).toString('base64'),
      Buffer.from(`xy${secret}`).toString('base64url'),
    ]) {
      assert.equal(secrets.foundIn('it', `before ${written} after`).length > 0, true, written);
      assert.equal(secrets.foundIn('it', Buffer.from(`\u0000${written}\u0000`)).length > 0, true, written);
    }
    assert.deepEqual(secrets.foundIn('it', secret.slice(1)), []);
  });
});

describe('no secret is left behind', () => {
  it('on SQLite', async (context) => {
    const folder = temporaryFolder();
    const found = await searchedRun(folder, {}, async (program, secrets) => {
      const inUse = filesIn(folder).flatMap(([name, bytes]) => secrets.foundIn(`${name} in use`, bytes));
      assertHoldsPlanted(filesIn(folder), 'comity.db-wal');
      const copy = join(folder, 'copy.db');
      const backup = await runCommand(['backup', copy, '--data', folder]);
      assert.equal(backup.code, 0);
      const told = secrets.foundIn('the words of a backup', backup.stdout + backup.stderr);
      await program.stop();
      const left = filesIn(folder).flatMap(([name, bytes]) => secrets.foundIn(name, bytes));
      for (const name of ['comity.db', 'copy.db']) assertHoldsPlanted(filesIn(folder), name);
      return [...inUse, ...told, ...left];
    });
    assert.deepEqual(found.found, []);
    context.diagnostic(`${found.secrets} secrets, ${found.answers} answers`);
  });

  it('on PostgreSQL', async (context) => {
    const database = await databaseOfProgram(shopConfig);
    const folder = temporaryFolder();
    try {
      const url = new URL(database.url);
      if (url.password === '') url.password = databasePassword;
      const env = { COMITY_DATABASE_URL: url.href };
      const found = await searchedRun(folder, env, async (program, secrets) => {
        secrets.add('the password of the database', decodeURIComponent(url.password));
        const dump = await rowsOf(database.url);
        const rows = secrets.foundIn('the database', dump);
        assert.ok(dump.includes(planted));
        const copy = join(folder, 'copy.db');
        const backup = await runCommand(['backup', copy], env);
        assert.equal(backup.code, 0);
        const told = secrets.foundIn('the words of a backup', backup.stdout + backup.stderr);
        await program.stop();
        const left = filesIn(folder).flatMap(([name, bytes]) => secrets.foundIn(name, bytes));
        assertHoldsPlanted(filesIn(folder), 'copy.db');
        return [...rows, ...told, ...left];
      });
      assert.deepEqual(found.found, []);
      context.diagnostic(`${found.secrets} secrets, ${found.answers} answers`);
    } finally {
      await database.dispose();
    }
  });

  it('by a start that is refused', async () => {
    const secrets = createSecrets();
    const env = {
      COMITY_CONFIG: fileURLToPath(new URL('../../../examples/shop/comity.config.ts', import.meta.url)),
      COMITY_LOG_LEVEL: 'debug',
      COMITY_ADMIN_KEY: 'no key at all, but-secret',
      COMITY_SMTP_URL: 'http://mailer:smtp-Passw0rd-refused@mail.example',
      COMITY_DATABASE_URL: 'mysql://comity:database-Passw0rd-refused@db.example/comity',
      COMITY_OAUTH_BROKEN_ISSUER: 'not a URL',
      COMITY_OAUTH_BROKEN_CLIENT_ID: 'client',
      COMITY_OAUTH_BROKEN_CLIENT_SECRET: 'client-secret-refused-0123',
    };
    for (const secret of ['but-secret', 'smtp-Passw0rd-refused', 'database-Passw0rd-refused']) {
      secrets.add(secret, secret);
    }
    secrets.add('the client secret', env.COMITY_OAUTH_BROKEN_CLIENT_SECRET);
    const away = { ...env, COMITY_ADMIN_KEY: '', COMITY_SMTP_URL: '', COMITY_OAUTH_BROKEN_ISSUER: '' };
    const unreachable = {
      ...away,
      COMITY_OAUTH_BROKEN_CLIENT_ID: '',
      COMITY_OAUTH_BROKEN_CLIENT_SECRET: '',
      COMITY_DATABASE_URL: 'postgres://comity:database-Passw0rd-refused@127.0.0.1:1/comity',
    };
    for (const environment of [env, unreachable]) {
      const ended = await runCommand(['serve'], environment);
      assert.notEqual(ended.code, 0);
      assert.ok(ended.stderr.length > 0);
      assert.deepEqual(secrets.foundIn('the refusal', ended.stdout + ended.stderr), []);
    }
  });
});

type Searched = { readonly found: readonly string[]; readonly secrets: number; readonly answers: number };

/** @param search looks through what is particular to the store, and stops the program */
async function searchedRun(
  folder: string,
  env: Readonly<Record<string, string>>,
  search: (program: RunningServer, secrets: Secrets) => Promise<readonly string[]>,
): Promise<Searched> {
  const [mail, provider] = [await startUsersMailServer(), await openFakeProvider()];
  const program = await startServer({
    folder,
    env: {
      COMITY_LOG_LEVEL: 'debug',
      COMITY_DEVELOPMENT: 'on',
      COMITY_ADMIN_KEY: administratorKey,
      COMITY_SMTP_URL: mail.url,
      COMITY_MAIL_ATTEMPTS_MAX: '1',
      COMITY_OAUTH_LEAKY_ISSUER: provider.issuer,
      COMITY_OAUTH_LEAKY_CLIENT_ID: provider.openId.clientId,
      COMITY_OAUTH_LEAKY_CLIENT_SECRET: provider.openId.clientSecret,
      ...env,
    },
  });
  const client = openClient(program.port);
  try {
    const secrets = createSecrets();
    secrets.add('the administrator key', administratorKey);
    secrets.add('the password of the mail server', mailUser.password);
    secrets.add('the client secret', provider.openId.clientSecret);
    const recorder = record(client);
    const all = { program, secrets, recorder, mail, provider };
    await useAccounts(all);
    await useKeys(all);
    await useProvider(all);
    await err(all);
    await lookAround(recorder);
    for (const [what, secret] of provider.secrets) secrets.add(what, secret);
    const found = [...(await search(program, secrets))];
    found.push(
      ...secrets.foundIn('stdout', program.stdout()),
      ...secrets.foundIn('stderr', program.stderr()),
    );
    for (const [what, content] of recorder.answers) found.push(...secrets.foundIn(what, content));
    const log = program.stdout() + program.stderr();
    assert.ok(log.length > 1000, 'the log was at its most talkative');
    // Nor whom it is about: people are named by the ids of their accounts.
    for (const address of [account.email, '@provider.example']) assert.ok(!log.includes(address), address);
    return { found, secrets: secrets.count, answers: recorder.answers.length };
  } finally {
    client.close();
    await program.stop();
  }
}

/** Takes note of everything that an answer of a login gives out. */
function keepTokens({ secrets }: Run, answer: Answer, what: string): { token: string; refreshToken: string } {
  const { token, refreshToken } = answer.json() as { token: string; refreshToken: string };
  secrets.add(`an access token of ${what}`, token);
  secrets.add(`the signature of an access token of ${what}`, token.split('.')[2] ?? '');
  for (const part of refreshToken.split('.').slice(1)) secrets.add(`a refresh token of ${what}`, part);
  for (const line of setCookies(answer)) {
    const value = line.slice(line.indexOf('=') + 1).split(';', 1)[0] ?? '';
    const secret = value.split('.').at(-1) ?? '';
    if (secret !== '') secrets.add(`a cookie of ${what}`, secret);
  }
  return { token, refreshToken };
}

async function expect(status: number, answer: Promise<Answer>): Promise<Answer> {
  const came = await answer;
  assert.equal(came.status, status, came.body);
  return came;
}

async function useAccounts(all: Run): Promise<void> {
  const { recorder, secrets, mail } = all;
  const { email, password } = account;
  const auth = `${base}/auth`;
  secrets.add('the first password', password);
  const registered = await expect(201, recorder.receive('POST', `${auth}/register`, { json: account }));
  const first = keepTokens(all, registered, 'a registration');
  const verification = codeIn(await mail.next(email));
  secrets.add('a code that verifies an address', verification);
  const confirm = { json: { code: verification } };
  await expect(204, recorder.ask('POST', `${auth}/verification/confirm`, confirm));
  await expect(400, recorder.ask('POST', `${auth}/verification/confirm`, confirm));

  const loggedIn = { json: { email, password, cookie: true } };
  const second = keepTokens(
    all,
    await expect(200, recorder.receive('POST', `${auth}/login`, loggedIn)),
    'a login',
  );
  const refresh = { json: { refreshToken: second.refreshToken } };
  keepTokens(all, await expect(200, recorder.receive('POST', `${auth}/refresh`, refresh)), 'a refresh');
  // A repetition gets the pair that is kept for it.
  keepTokens(
    all,
    await expect(200, recorder.receive('POST', `${auth}/refresh`, refresh)),
    'a repeated refresh',
  );

  const changed = 'second-Passw0rd of ada';
  secrets.add('the second password', changed);
  const change = { json: { currentPassword: password, newPassword: changed }, headers: bearer(first.token) };
  await expect(204, recorder.ask('POST', `${auth}/password`, change));
  await expect(200, recorder.ask('GET', `${auth}/me`, { headers: basic(email, changed) }));
  await expect(401, recorder.ask('GET', `${auth}/me`, { headers: basic(email, password) }));

  await recorder.ask('POST', `${auth}/password-reset`, { json: { email } });
  const reset = codeIn(await mail.next(email));
  secrets.add('a code that resets a password', reset);
  const newest = 'third-Passw0rd of ada';
  secrets.add('the third password', newest);
  await expect(
    204,
    recorder.ask('POST', `${auth}/password-reset/confirm`, { json: { code: reset, password: newest } }),
  );
  // A code that is never used stays in the store as it is kept.
  await recorder.ask('POST', `${auth}/password-reset`, { json: { email } });
  secrets.add('a code that was never used', codeIn(await mail.next(email)));
}

async function useKeys(all: Run): Promise<void> {
  const { recorder, secrets } = all;
  const owner = basic(account.email, 'third-Passw0rd of ada');
  const made: string[] = [];
  for (const kind of ['secret', 'publishable'] as const) {
    for (const headers of [owner, bearer(administratorKey)]) {
      const json = { name: `a ${kind} key`, kind };
      const headersWithReplay = { ...headers, 'Idempotency-Key': `"${kind}-${made.length}"` };
      const answer = await recorder.receive('POST', `${base}/keys`, { json, headers: headersWithReplay });
      assert.equal(answer.status, 201, answer.body);
      const { id, key } = answer.json() as { id: string; key: string };
      const rotated = await recorder.receive('POST', `${base}/keys/${id}/rotate`, {
        json: { overlapSeconds: 60 },
        headers,
      });
      assert.equal(rotated.status, 200, rotated.body);
      made.push(key, String(rotated.json().key));
    }
  }
  for (const key of made) {
    secrets.add('an API key', key);
    secrets.add('an API key without its prefix', key.slice(3));
    for (const headers of [
      { 'X-API-Key': key },
      bearer(key),
      basic(key, ''),
      { Authorization: `ApiKey ${key}` },
    ]) {
      await expect(200, recorder.ask('GET', `${base}/products`, { headers }));
    }
    await expect(200, recorder.ask('GET', `${base}/products?limit=1&api_key=${key}`));
  }
  const [key = ''] = made;
  // Answers with links, and a query that is stored: the key must not be in either.
  for (let index = 0; index < 3; index += 1) {
    await expect(
      201,
      recorder.ask('POST', `${base}/notes?api_key=${key}`, { json: { text: `note ${index}` } }),
    );
  }
  const paged = await expect(200, recorder.ask('GET', `${base}/notes?limit=1&api_key=${key}`));
  assert.ok(paged.headers.link !== undefined);
  await expect(200, recorder.ask('QUERY', `${base}/notes?api_key=${key}`, { json: { limit: 1 } }));
  // Requests that are stored to be carried out later, and answers that are kept for replay.
  const later = { json: { text: planted }, headers: { Prefer: 'respond-async' } };
  await expect(202, recorder.ask('POST', `${base}/notes?api_key=${key}`, later));
  const json = { text: planted };
  for (const headers of [{ 'X-API-Key': key }, owner, bearer(key)]) {
    const replayed = { json, headers: { ...headers, 'Idempotency-Key': '"replayed"' } };
    await expect(201, recorder.ask('POST', `${base}/notes`, replayed));
    const stored = { json, headers: { ...headers, Prefer: 'respond-async' } };
    await expect(202, recorder.ask('POST', `${base}/notes`, stored));
  }
}

async function useProvider(all: Run): Promise<void> {
  const { recorder, secrets, provider } = all;
  const start = `${base}/auth/oauth/leaky`;
  for (const broken of [false, true]) {
    const email = `${broken ? 'broken' : 'whole'}@provider.example`;
    const claims = { email, email_verified: true, sub: `subject of ${email}` };
    provider.behave = { claims, repeats: broken };
    const jar = createJar();
    const begun = await expect(303, recorder.receive('GET', start, {}));
    jar.take(begun);
    secrets.add('the cookie of a sign-in', Object.values(jar.fields()).join('').split('=')[1] ?? '');
    const led = await fetch(String(begun.headers.location), { redirect: 'manual' });
    const callback = new URL(String(led.headers.get('location')));
    const asked = { headers: jar.fields() };
    const back = callback.pathname + callback.search;
    if (broken) await expect(502, recorder.ask('GET', back, asked));
    else {
      keepTokens(all, await expect(200, recorder.receive('GET', back, asked)), 'a sign-in');
      await expect(400, recorder.ask('GET', back, asked));
    }
    const denied = `${start}/callback?error=access_denied&error_description=${administratorKey}&state=unknown`;
    await expect(400, recorder.ask('GET', denied, asked));
  }
}

/** Every way in which a request can fail while it carries a secret. */
async function err(all: Run): Promise<void> {
  const { recorder, secrets } = all;
  const typed = 'mistyped-Passw0rd of ada';
  secrets.add('a password typed wrong', typed);
  const wrongKey = `sk_${'wrongKey'.repeat(5)}abc`;
  secrets.add('a key typed wrong', wrongKey);
  const { email } = account;
  const json = 'application/json';
  const carried = [
    { 'X-API-Key': administratorKey },
    basic(email, typed),
    bearer(wrongKey),
    { 'X-API-Key': wrongKey },
  ];
  const asked: readonly (readonly [method: string, path: string, asked: Asked])[] = [
    ['POST', '/auth/login', { json: { email, password: typed } }],
    ['POST', '/auth/login', { json: { email: 'nobody@shop.example', password: typed } }],
    ['POST', '/auth/login', { json: { email, password: [typed] } }],
    ['POST', '/auth/login', { json: { email, password: typed, unknown: typed } }],
    [
      'POST',
      '/auth/login',
      { body: `{"email":"${email}","password":"${typed}"`, headers: { 'Content-Type': json } },
    ],
    ['POST', '/auth/login', { body: typed, headers: { 'Content-Type': 'text/plain' } }],
    ['POST', '/auth/register', { json: { email, password: typed } }],
    ['POST', '/auth/register', { json: { email: typed, password: typed } }],
    ['POST', '/auth/refresh', { json: { refreshToken: wrongKey } }],
    ['POST', '/auth/password-reset/confirm', { json: { code: wrongKey, password: typed } }],
    ['GET', `/auth/oauth/leaky?redirect=https://evil.example/${wrongKey}`, {}],
    ['GET', `/auth/oauth/leaky/callback?code=${wrongKey}&state=${wrongKey}`, {}],
    ['GET', `/products?api_key=${wrongKey}`, {}],
    ['GET', `/products?unknown=${wrongKey}&api_key=${administratorKey}`, {}],
    ['GET', `/nowhere?api_key=${administratorKey}`, {}],
    ['GET', `/products?api_key=${administratorKey}`, { headers: bearer(wrongKey) }],
    ['GET', '/auth/me', { headers: { Cookie: `${sessionCookieName}=${wrongKey}` } }],
  ];
  for (const [method, path, more] of asked) await recorder.ask(method, base + path, more);
  for (const headers of carried) {
    for (const [method, path, more] of failing)
      await recorder.ask(method, base + path, withFields(more, headers));
  }
  const long = 'x'.repeat(100_000);
  await recorder.ask('GET', `${base}/products?q=${long}&api_key=${administratorKey}`).catch(() => undefined);
  await recorder.ask('GET', `${base}/products`, { headers: bearer(wrongKey + long) }).catch(() => undefined);
  for (const lines of [
    `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${wrongKey}\r\nBad Header ${administratorKey}\r\n\r\n`,
    `GET /?api_key=${administratorKey} HTTP/9.9\r\nHost: a\r\n\r\n`,
    `${administratorKey} / HTTP/1.1\r\nHost: a\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${wrongKey} ${administratorKey}\r\n\r\n`,
    `CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Bearer ${administratorKey}\r\n\r\n`,
    `POST /api/v1/notes HTTP/1.1\r\nHost: a\r\nX-API-Key: ${administratorKey}\r\nTransfer-Encoding: ${wrongKey}\r\n\r\n`,
  ]) {
    const answer = await raw(recorder.client.port, lines);
    const found = secrets.foundIn('an answer to what was no request', answer);
    assert.deepEqual(found, []);
  }
}

const failing: readonly (readonly [method: string, path: string, asked: Asked])[] = [
  ['GET', '/notes/none', {}],
  ['DELETE', '/products', {}],
  ['GET', '/products', { headers: { Accept: 'image/png' } }],
  ['POST', '/products', { json: { name: 'no price' } }],
  ['POST', '/products', { json: { name: 1, price: 'x', categoryId: 'none' } }],
  ['POST', '/products', { body: 'x', headers: { 'Content-Type': 'image/png' } }],
  ['QUERY', '/products', { body: 'SELECT', headers: { 'Content-Type': 'application/sql' } }],
  ['PUT', '/articles/conditional', { json: { title: 'x' }, headers: { 'If-Match': '"none"' } }],
  ['PATCH', '/articles/conditional', { json: { title: 'x' } }],
  ['POST', '/products', { body: 'x'.repeat(2_000_000), headers: { 'Content-Type': 'application/json' } }],
  ['GET', '/users', {}],
  ['GET', '/audit', {}],
  ['BREW', '/products', {}],
];

function withFields(asked: Asked, headers: Readonly<Record<string, string>>): Asked {
  return { ...asked, headers: { ...asked.headers, ...headers } };
}

/** Sends octets as they are, and takes what comes until the server closes. */
async function raw(port: number, lines: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(lines);
  return text(socket);
}

/** What administrators, monitors and strangers get to see afterwards. */
async function lookAround(recorder: Recorder): Promise<void> {
  const headers = bearer(administratorKey);
  for (const path of ['/audit', '/users', '/keys', '/events', '/notes']) {
    const answer = await expect(200, recorder.ask('GET', `${base}${path}?limit=1000`, { headers }));
    assert.ok((answer.json().items as unknown[]).length > 0, path);
  }
  for (const path of ['/metrics', '/openapi.json', '/.well-known/jwks.json', '/health/ready']) {
    await expect(200, recorder.ask('GET', path, { headers }));
  }
}

function assertHoldsPlanted(files: ReturnType<typeof filesIn>, name: string): void {
  const [, bytes] = files.find(([each]) => each === name) ?? [];
  assert.ok(bytes?.includes(planted), `${name} holds what was planted, so it is what a search must look at`);
}
