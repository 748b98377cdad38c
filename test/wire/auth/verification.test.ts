/** E-mail verification and password reset of the running program, with a real mail server. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import test, { after, before } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import {
  asAdministrator,
  base,
  bearer,
  type Client,
  login,
  openClient,
  register,
  type Tokens,
} from '../../harness/account-client.ts';
import { type Ending, listen } from '../../harness/listening.ts';
import {
  codeIn,
  fieldOf,
  type MailServer,
  type Received,
  startMailServer,
  textOf,
} from '../../harness/mail-server.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const password = 'correct horse';
const newPassword = 'battery staple';

type Started = { readonly program: RunningServer; readonly client: Client; readonly server: MailServer };

/** Most tests share one program, and each has an address of its own in it. */
let common: Started;
let tests = 0;

const endings: (() => unknown)[] = [];

before(async () => {
  common = await start({ after: (dispose) => endings.unshift(dispose) });
});

after(async () => {
  for (const end of endings) await end();
});

function newAddress(): string {
  tests += 1;
  return `ada${tests}@shop.example`;
}

async function start(context: Ending, env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const server = await startMailServer(context);
  const program = await startServer({
    env: {
      COMITY_SMTP_URL: server.url,
      COMITY_MAIL_FROM: 'Shop <no-reply@shop.example>',
      COMITY_MAIL_RESET_URL: 'https://shop.example/reset#{code}',
      COMITY_LOGIN_ATTEMPTS: '0',
      ...env,
    },
  });
  context.after(() => program.stop());
  const client = openClient(program.port);
  context.after(() => client.close());
  return { program, client, server };
}

function post(client: Client, path: string, json: unknown, headers: Readonly<Record<string, string>> = {}) {
  return client.ask('POST', `${base}/auth/${path}`, { json, headers });
}

/** The mail with this number of those to the address, counted from 1. */
async function mailTo(server: MailServer, email: string, number: number): Promise<Received> {
  for (;;) {
    const mail = server.received.filter(({ to }) => to.includes(email))[number - 1];
    if (mail !== undefined) return mail;
    await server.until(server.received.length + 1);
  }
}

async function codeOf(server: MailServer, email: string, number: number): Promise<string> {
  return codeIn(await mailTo(server, email, number));
}

test('verifies an address by the code that a registration sends to it', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token } = await register(client, email, password);
  const code = await codeOf(server, email, 1);
  const mail = await mailTo(server, email, 1);
  assert.deepEqual(mail.to, [email]);
  assert.equal(mail.from, 'no-reply@shop.example');
  assert.match(fieldOf(mail.raw, 'Subject') ?? '', /confirm your e-mail address$/);
  const confirmed = await post(client, 'verification/confirm', { code });
  assert.equal(confirmed.status, 204, confirmed.body);
  assert.equal(confirmed.body, '');
  const again = await post(client, 'verification/confirm', { code });
  assert.equal(again.status, 400);
  assert.equal(again.json().code, 'code_invalid');
  // The account changed, so the token was looked at again, and still is good.
  const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(token) });
  const account = await client.ask('GET', `${base}/users/${me.json().id}`, { headers: bearer(token) });
  assert.equal(account.json().emailVerified, true);
});

test('sends another code to who asks, by credential or by address', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token } = await register(client, email, password);
  await mailTo(server, email, 1);
  const wanted = await client.ask('POST', `${base}/auth/verification`, { headers: bearer(token) });
  assert.equal(wanted.status, 204, wanted.body);
  await mailTo(server, email, 2);
  assert.equal((await post(client, 'verification', { email })).status, 204);
  const code = await codeOf(server, email, 3);
  assert.equal((await post(client, 'verification/confirm', { code })).status, 204);
});

test('asks who is not known for an address', async () => {
  const { client } = common;
  const answer = await client.ask('POST', `${base}/auth/verification`);
  assert.equal(answer.status, 400, answer.body);
  assert.equal(answer.json().code, 'field_missing');
  assert.deepEqual(answer.json().errors, [
    { pointer: '/email', message: 'is required in a request without a credential' },
  ]);
});

test('keeps an account without tokens until its address is verified, where that is required', async (context) => {
  const { client, server } = await start(context, { COMITY_VERIFIED_EMAIL_REQUIRED: 'on' });
  const email = newAddress();
  const made = await post(client, 'register', { email, password, cookie: true });
  assert.equal(made.status, 201, made.body);
  assert.deepEqual(Object.keys(made.json()), ['user']);
  assert.equal(made.headers['set-cookie'], undefined);
  const early = await post(client, 'login', { email, password });
  assert.equal(early.status, 403);
  assert.equal(early.json().code, 'email_unverified');
  assert.equal((await post(client, 'login', { email, password: 'wrong horse' })).status, 401);
  const basic = `Basic ${Buffer.from(`${email}:${password}`).toString('base64')}`;
  const byBasic = await client.ask('GET', `${base}/auth/me`, { headers: { Authorization: basic } });
  assert.equal(byBasic.status, 403, byBasic.body);
  const code = await codeOf(server, email, 1);
  assert.equal((await post(client, 'verification/confirm', { code })).status, 204);
  await login(client, email, password);
});

test('sets a new password by the code of a mail, and ends every session', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token } = await register(client, email, password);
  await mailTo(server, email, 1);
  assert.equal((await post(client, 'password-reset', { email: ` ${email.toUpperCase()}` })).status, 204);
  const code = await codeOf(server, email, 2);
  assert.ok(textOf((await mailTo(server, email, 2)).raw).includes(`https://shop.example/reset#${code}`));
  const short = await post(client, 'password-reset/confirm', { code, password: 'short' });
  assert.equal(short.status, 422);
  assert.deepEqual(short.json().errors, [
    { pointer: '/password', message: 'must be at least 8 characters long' },
  ]);
  const reset = await post(client, 'password-reset/confirm', { code, password: newPassword });
  assert.equal(reset.status, 204, reset.body);
  const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(token) });
  assert.equal(me.status, 401);
  assert.equal((await post(client, 'login', { email, password })).status, 401);
  await login(client, email, newPassword);
  const again = await post(client, 'password-reset/confirm', { code, password });
  assert.equal(again.status, 400);
  assert.deepEqual(again.json(), { error: 'invalid or expired code', code: 'code_invalid' });
});

type Account = Tokens & {
  readonly email: string;
  readonly other: string;
  readonly codes: { readonly verification: string; readonly reset: string };
};

const administer = (method: string, json?: object) => (client: Client, account: Account) =>
  client.ask(method, `${base}/users/${account.userId}`, { json, headers: asAdministrator });

/** Each row of the guide's table: what stays of the caller's session, another one, both kinds of codes, and a key. */
const events: readonly (readonly [
  event: string,
  expected: string,
  act: (client: Client, account: Account) => Promise<unknown>,
])[] = [
  [
    'a change of the password',
    'session, verification, key',
    (client, { token }) =>
      post(client, 'password', { currentPassword: password, newPassword }, bearer(token)),
  ],
  [
    'a reset by a code',
    '',
    (client, { codes }) =>
      post(client, 'password-reset/confirm', { code: codes.reset, password: newPassword }),
  ],
  [
    'a password set by an administrator',
    'key',
    (client, { userId }) =>
      client.ask('POST', `${base}/users/${userId}/password`, {
        json: { password: newPassword },
        headers: asAdministrator,
      }),
  ],
  ['another address', 'session, other, key', administer('PATCH', { email: 'moved@shop.example' })],
  [
    'disabling and enabling',
    'key',
    async (client, account) => {
      await administer('PATCH', { disabled: true })(client, account);
      return administer('PATCH', { disabled: false })(client, account);
    },
  ],
  ['deletion', '', administer('DELETE')],
  [
    'verification',
    'session, other, reset, key',
    (client, { codes }) => post(client, 'verification/confirm', { code: codes.verification }),
  ],
  [
    'logout',
    'other, verification, reset, key',
    (client, { token }) => post(client, 'logout', {}, bearer(token)),
  ],
  [
    'logout everywhere',
    'verification, reset, key',
    (client, { token }) => post(client, 'logout', { everywhere: true }, bearer(token)),
  ],
];

for (const [event, expected, act] of events) {
  test(`${event}: ${expected}`, async () => {
    const { client, server } = common;
    const email = newAddress();
    const tokens = await register(client, email, password);
    const { token: other } = await login(client, email, password);
    const made = await client.ask('POST', `${base}/keys`, {
      json: { name: 'mine', kind: 'secret' },
      headers: bearer(other),
    });
    const key = String(made.json().key);
    const verification = await codeOf(server, email, 1);
    await post(client, 'verification', { email });
    const further = await codeOf(server, email, 2);
    await post(client, 'password-reset', { email });
    const reset = await codeOf(server, email, 3);
    await post(client, 'password-reset', { email });
    const second = await codeOf(server, email, 4);
    const done = await act(client, { ...tokens, email, other, codes: { verification, reset } });
    assert.ok((done as { status: number }).status < 300);
    const works = async (sent: Promise<{ readonly status: number }>) => (await sent).status < 300;
    const me = (token: string) => works(client.ask('GET', `${base}/auth/me`, { headers: bearer(token) }));
    const left = {
      session: await me(tokens.token),
      other: await me(other),
      key: await me(key),
      verification: await works(post(client, 'verification/confirm', { code: further })),
      reset: await works(post(client, 'password-reset/confirm', { code: second, password: newPassword })),
    };
    const wanted = expected.split(', ');
    for (const [what, stays] of Object.entries(left)) assert.equal(stays, wanted.includes(what), what);
  });
}

test('answers who asks for a reset in the same way whether or not there is such an account', async () => {
  const { client, server } = common;
  const email = newAddress();
  await register(client, email, password);
  await mailTo(server, email, 1);
  const answers = [];
  for (const asked of [email, 'nobody@shop.example', 'no address', '']) {
    const { status, body, headers } = await post(client, 'password-reset', { email: asked });
    const { date: _date, ratelimit: _rate, 'x-ratelimit-remaining': _left, ...rest } = headers;
    answers.push(JSON.stringify([status, body, Object.keys(rest).sort()]));
  }
  assert.equal(new Set(answers).size, 1, answers.join('\n'));
  await mailTo(server, email, 2);
  const others = server.received.filter(({ to }) => to.some((address) => !address.startsWith('ada')));
  assert.deepEqual(others, []);
});

for (const path of ['verification/confirm', 'password-reset/confirm']) {
  test(`refuses a code at ${path} that never was`, async () => {
    const { client } = common;
    for (const code of ['', 'x', 'A'.repeat(43), 'A'.repeat(10_000), '../../x', '\0']) {
      const answer = await post(client, path, path.startsWith('password') ? { code, password } : { code });
      assert.ok(answer.status === 400 || (code === '\0' && answer.status === 422), `${code}: ${answer.body}`);
    }
  });
}

test('says that it can send no mail, whoever asks for which account', async (context) => {
  const program = await startServer();
  context.after(() => program.stop());
  const client = openClient(program.port);
  const email = newAddress();
  context.after(() => client.close());
  await register(client, email, password);
  const bodies = [];
  for (const path of ['verification', 'password-reset']) {
    for (const asked of [email, 'nobody@shop.example']) {
      const answer = await post(client, path, { email: asked });
      assert.equal(answer.status, 503, answer.body);
      assert.ok(answer.headers['retry-after']);
      bodies.push(answer.body);
    }
  }
  assert.equal(new Set(bodies).size, 1);
  assert.deepEqual(JSON.parse(bodies[0] ?? ''), {
    error: 'no mail server is configured',
    code: 'unavailable',
  });
});

test('registers and resets while the mail server hangs, and stops in time', async (context) => {
  let asked = 0;
  const silent = createServer(() => {
    asked += 1;
  });
  const { port } = await listen(silent, context);
  const { program, client } = await start(context, {
    COMITY_SMTP_URL: `smtp://127.0.0.1:${port}`,
    COMITY_MAIL_TIMEOUT_MS: '300',
  });
  const email = newAddress();
  await register(client, email, password);
  assert.equal((await post(client, 'password-reset', { email })).status, 204);
  await program.stop();
  assert.ok(asked > 0, 'the mail server was asked');
});

test('mails the owner about every change of the second factor', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token, userId } = await register(client, email, password);
  // The first mail is the verification of the address.
  await mailTo(server, email, 1);
  const begun = await post(client, 'second-factor/totp', { password }, bearer(token));
  const { enrolment, secret } = begun.json() as { enrolment: string; secret: string };
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  const added = await post(client, 'second-factor/totp/confirm', { enrolment, code }, bearer(token));
  const { recoveryCodes } = added.json() as { recoveryCodes: string[] };
  const mail = await mailTo(server, email, 2);
  assert.equal(fieldOf(mail.raw, 'Subject'), 'Shop: the second factor of your account');
  assert.match(textOf(mail.raw), /authenticator application was added/);
  assert.ok(!textOf(mail.raw).includes(secret));
  const entered = await post(client, 'login', { email, password, code: recoveryCodes[0] });
  assert.equal(entered.status, 200, entered.body);
  assert.match(textOf((await mailTo(server, email, 3)).raw), /A recovery code of your account was used/);
  const renewed = await post(
    client,
    'second-factor/recovery-codes',
    { code: recoveryCodes[1] },
    bearer(token),
  );
  assert.equal(renewed.status, 200, renewed.body);
  assert.match(textOf((await mailTo(server, email, 4)).raw), /New recovery codes/);
  const reset = await client.ask('POST', `${base}/users/${userId}/reset-second-factor`, {
    headers: asAdministrator,
  });
  assert.equal(reset.status, 204, reset.body);
  assert.match(textOf((await mailTo(server, email, 5)).raw), /An administrator removed the second factor/);
});

test('a password reset does not remove the second factor', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token } = await register(client, email, password);
  await mailTo(server, email, 1);
  const begun = await post(client, 'second-factor/totp', { password }, bearer(token));
  const { enrolment, secret } = begun.json() as { enrolment: string; secret: string };
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  await post(client, 'second-factor/totp/confirm', { enrolment, code }, bearer(token));
  await mailTo(server, email, 2);
  await post(client, 'password-reset', { email });
  const reset = await post(client, 'password-reset/confirm', {
    code: codeIn(await mailTo(server, email, 3)),
    password: newPassword,
  });
  assert.equal(reset.status, 204, reset.body);
  const answer = await post(client, 'login', { email, password: newPassword });
  assert.deepEqual([answer.status, answer.json().code], [401, 'second_factor_required']);
});
