/** E-mail verification and password reset of the running program, with a real mail server. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import test, { after, before } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import {
  basic,
  bearer,
  type Client,
  login,
  makeKey,
  openClient,
  register,
  serveAccounts,
  type Tokens,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
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

const post = (client: Client, path: string, json: unknown, expect: Expectation, token?: string) =>
  client.ask('POST', `auth/${path}`, { json, as: token, expect });

/** The mail with this number of those to the address, counted from 1. */
async function mailTo(server: MailServer, email: string, number: number): Promise<Received> {
  for (;;) {
    const mail = server.received.filter(({ to }) => to.includes(email))[number - 1];
    if (mail !== undefined) return mail;
    await server.until(server.received.length + 1);
  }
}

const codeOf = async (server: MailServer, email: string, number: number): Promise<string> =>
  codeIn(await mailTo(server, email, number));

test('verifies an address by the code that a registration sends to it', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token, userId } = await register(client, email, password);
  const mail = await mailTo(server, email, 1);
  const code = codeIn(mail);
  assert.deepEqual(mail.to, [email]);
  assert.equal(mail.from, 'no-reply@shop.example');
  assert.match(fieldOf(mail.raw, 'Subject') ?? '', /confirm your e-mail address$/);
  await post(client, 'verification/confirm', { code }, { status: 204, body: '' });
  await post(client, 'verification/confirm', { code }, [400, 'code_invalid']);
  // The account changed, so the token was looked at again, and still is good.
  const expect = { status: 200, members: { emailVerified: true } };
  await client.ask('GET', `users/${userId}`, { as: token, expect });
});

test('sends another code to who asks, by credential or by address', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token } = await register(client, email, password);
  await mailTo(server, email, 1);
  await client.ask('POST', 'auth/verification', { as: token, expect: 204 });
  await mailTo(server, email, 2);
  await post(client, 'verification', { email }, 204);
  await post(client, 'verification/confirm', { code: await codeOf(server, email, 3) }, 204);
});

test('asks who is not known for an address', async () => {
  const errors = [{ pointer: '/email', message: 'is required in a request without a credential' }];
  const expect = { status: 400, code: 'field_missing', members: { errors } };
  await common.client.ask('POST', 'auth/verification', { expect });
});

test('keeps an account without tokens until its address is verified, where that is required', async (context) => {
  const { client, server } = await start(context, { COMITY_VERIFIED_EMAIL_REQUIRED: 'on' });
  const email = newAddress();
  const fields = { 'set-cookie': undefined };
  const made = await post(client, 'register', { email, password, cookie: true }, { status: 201, fields });
  assert.deepEqual(Object.keys(made.json()), ['user']);
  await post(client, 'login', { email, password }, [403, 'email_unverified']);
  await post(client, 'login', { email, password: 'wrong horse' }, 401);
  await client.ask('GET', 'auth/me', { headers: basic(email, password), expect: 403 });
  await post(client, 'verification/confirm', { code: await codeOf(server, email, 1) }, 204);
  await login(client, email, password);
});

test('sets a new password by the code of a mail, and ends every session', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token } = await register(client, email, password);
  await mailTo(server, email, 1);
  await post(client, 'password-reset', { email: ` ${email.toUpperCase()}` }, 204);
  const code = await codeOf(server, email, 2);
  assert.ok(textOf((await mailTo(server, email, 2)).raw).includes(`https://shop.example/reset#${code}`));
  const confirm = (chosen: string, expect: Expectation) =>
    post(client, 'password-reset/confirm', { code, password: chosen }, expect);
  const errors = [{ pointer: '/password', message: 'must be at least 8 characters long' }];
  await confirm('short', { status: 422, members: { errors } });
  await confirm(newPassword, 204);
  await client.ask('GET', 'auth/me', { as: token, expect: 401 });
  await post(client, 'login', { email, password }, 401);
  await login(client, email, newPassword);
  await confirm(password, { status: 400, json: { error: 'invalid or expired code', code: 'code_invalid' } });
});

type Account = Tokens & {
  readonly client: Client;
  readonly other: string;
  readonly codes: { readonly verification: string; readonly reset: string };
};

const administer =
  (method: string, json?: object, path = '') =>
  ({ client, userId }: Account) =>
    client.ask(method, `users/${userId}${path}`, { json, as: adminKey });
const act =
  (path: string, json: object) =>
  ({ client, token }: Account) =>
    client.ask('POST', `auth/${path}`, { json, as: token });

/** Each row of the guide's table: what stays of the caller's session, another one, both kinds of codes, and a key. */
const events: readonly (readonly [
  event: string,
  expected: string,
  act: (account: Account) => Promise<{ readonly status: number }>,
])[] = [
  [
    'a change of the password',
    'session, verification, key',
    act('password', { currentPassword: password, newPassword }),
  ],
  [
    'a reset by a code',
    '',
    ({ client, codes }) => {
      const json = { code: codes.reset, password: newPassword };
      return client.ask('POST', 'auth/password-reset/confirm', { json });
    },
  ],
  ['a password set by an administrator', 'key', administer('POST', { password: newPassword }, '/password')],
  ['another address', 'session, other, key', administer('PATCH', { email: 'moved@shop.example' })],
  [
    'disabling and enabling',
    'key',
    async (account) => {
      await administer('PATCH', { disabled: true })(account);
      return administer('PATCH', { disabled: false })(account);
    },
  ],
  ['deletion', '', administer('DELETE')],
  [
    'verification',
    'session, other, reset, key',
    ({ client, codes }) =>
      client.ask('POST', 'auth/verification/confirm', { json: { code: codes.verification } }),
  ],
  ['logout', 'other, verification, reset, key', act('logout', {})],
  ['logout everywhere', 'verification, reset, key', act('logout', { everywhere: true })],
];

for (const [event, expected, cause] of events) {
  test(`${event}: ${expected}`, async () => {
    const { client, server } = common;
    const email = newAddress();
    const tokens = await register(client, email, password);
    const { token: other } = await login(client, email, password);
    const { key } = await makeKey(client, bearer(other), { name: 'mine' });
    const verification = await codeOf(server, email, 1);
    await post(client, 'verification', { email }, 204);
    const further = await codeOf(server, email, 2);
    await post(client, 'password-reset', { email }, 204);
    const reset = await codeOf(server, email, 3);
    await post(client, 'password-reset', { email }, 204);
    const second = await codeOf(server, email, 4);
    const done = await cause({ ...tokens, client, other, codes: { verification, reset } });
    assert.ok(done.status < 300);
    const works = async (sent: Promise<{ readonly status: number }>) => (await sent).status < 300;
    const me = (token: string) => works(client.ask('GET', 'auth/me', { as: token }));
    const confirm = (path: string, json: object) =>
      works(client.ask('POST', `auth/${path}/confirm`, { json }));
    const left = {
      session: await me(tokens.token),
      other: await me(other),
      key: await me(key),
      verification: await confirm('verification', { code: further }),
      reset: await confirm('password-reset', { code: second, password: newPassword }),
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
    const { status, body, headers } = await client.ask('POST', 'auth/password-reset', {
      json: { email: asked },
    });
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
    for (const code of ['', 'x', 'A'.repeat(43), 'A'.repeat(10_000), '../../x', '\0']) {
      const json = path.startsWith('password') ? { code, password } : { code };
      const answer = await common.client.ask('POST', `auth/${path}`, { json });
      assert.ok(answer.status === 400 || (code === '\0' && answer.status === 422), `${code}: ${answer.body}`);
    }
  });
}

test('says that it can send no mail, whoever asks for which account', async () => {
  const { client } = await serveAccounts();
  const email = newAddress();
  await register(client, email, password);
  const json = { error: 'no mail server is configured', code: 'unavailable' };
  for (const path of ['verification', 'password-reset']) {
    for (const asked of [email, 'nobody@shop.example']) {
      await post(client, path, { email: asked }, { status: 503, fields: { 'retry-after': /./ }, json });
    }
  }
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
  await post(client, 'password-reset', { email }, 204);
  await program.stop();
  assert.ok(asked > 0, 'the mail server was asked');
});

/** Adds an authenticator application to the account. The first mail to it is the verification of the address. */
async function enrol({ client, server }: Started, email: string) {
  const tokens = await register(client, email, password);
  await mailTo(server, email, 1);
  const begun = await post(client, 'second-factor/totp', { password }, 200, tokens.token);
  const { enrolment, secret } = begun.json();
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  const added = await post(client, 'second-factor/totp/confirm', { enrolment, code }, 200, tokens.token);
  const recoveryCodes: string[] = added.json().recoveryCodes;
  return { ...tokens, secret, recoveryCodes };
}

test('mails the owner about every change of the second factor', async () => {
  const { client, server } = common;
  const email = newAddress();
  const { token, userId, secret, recoveryCodes } = await enrol(common, email);
  const textTo = async (number: number) => textOf((await mailTo(server, email, number)).raw);
  const { raw } = await mailTo(server, email, 2);
  assert.equal(fieldOf(raw, 'Subject'), 'Shop: the second factor of your account');
  assert.match(textOf(raw), /authenticator application was added/);
  assert.ok(!textOf(raw).includes(secret));
  await post(client, 'login', { email, password, code: recoveryCodes[0] }, 200);
  assert.match(await textTo(3), /A recovery code of your account was used/);
  await post(client, 'second-factor/recovery-codes', { code: recoveryCodes[1] }, 200, token);
  assert.match(await textTo(4), /New recovery codes/);
  await client.ask('POST', `users/${userId}/reset-second-factor`, { as: adminKey, expect: 204 });
  assert.match(await textTo(5), /An administrator removed the second factor/);
});

test('a password reset does not remove the second factor', async () => {
  const { client, server } = common;
  const email = newAddress();
  await enrol(common, email);
  await mailTo(server, email, 2);
  await post(client, 'password-reset', { email }, 204);
  const code = await codeOf(server, email, 3);
  await post(client, 'password-reset/confirm', { code, password: newPassword }, 204);
  await post(client, 'login', { email, password: newPassword }, [401, 'second_factor_required']);
});
