/** Login and registration by a mailed code, typed or in a link (§5.4.8), on both stores. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Secret, TOTP } from 'otpauth';
import {
  type Answer,
  bearer,
  changeUser,
  cookieOf,
  login,
  makeKey,
  openClient,
  register,
  serveAccounts,
  tokensOf,
} from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { startMailServer, textOf } from '../../harness/mail-server.ts';
import { startServer } from '../../harness/running-server.ts';

const guild = fileURLToPath(new URL('./fixtures/guild.config.ts', import.meta.url));
const password = 'correct horse battery';
const config = fileURLToPath(new URL('./fixtures/passwordless.config.ts', import.meta.url));
const page = 'https://shop.example/enter#';

describeOnEachStore('a login by mail', async (engine) => {
  const mails = await startMailServer({ after });
  const env = {
    ...{ COMITY_LOGIN_ATTEMPTS: '0', COMITY_SMTP_URL: mails.url },
    COMITY_MAIL_LOGIN_URL: `${page}{code}`,
  };
  const { client } = await serveAccounts({ engine, config, env });
  const post = (path: string, json: object, expect?: Expectation, as?: string) =>
    client.ask('POST', `auth/${path}`, { json, expect, as });
  const begin = async (email: string, by: 'code' | 'link' = 'code'): Promise<string> =>
    (await post(by, { email }, 200)).json().challenge;
  const codeTo = async (email: string): Promise<string> => codeIn(textOf((await mails.next(email)).raw));
  const confirm = (challenge: string, code: string, expect?: Expectation, further: object = {}) =>
    post('code/confirm', { challenge, code, ...further }, expect);
  const verified = async (email: string) => {
    const tokens = await register(client, email, password);
    await mails.next(email);
    await changeUser(client, tokens.userId, { emailVerified: true });
    return tokens;
  };

  test('opens a session for the code of the mail in the browser that asked, once', async () => {
    const { userId } = await verified('ada@shop.example');
    const challenge = await begin(' ADA@shop.example');
    const { raw } = await mails.next('ada@shop.example');
    const code = codeIn(textOf(raw));
    assert.ok(!textOf(raw).includes(page));
    const stranger = await begin('ada@shop.example');
    await mails.next('ada@shop.example');
    await confirm(stranger, code, [400, 'code_invalid']);
    await confirm('no challenge', code, [400, 'challenge_invalid']);
    // As people type it.
    const entered = await confirm(challenge, ` ${code.replace('-', '').toUpperCase()} `, 200, {
      cookie: true,
    });
    assert.ok(cookieOf(entered) !== undefined);
    assert.equal(tokensOf(entered).userId, userId);
    await client.ask('GET', 'auth/me', { as: tokensOf(entered).token, expect: 200 });
    await confirm(challenge, code, [400, 'code_invalid']);
    await login(client, 'ada@shop.example', password);
  });

  test('opens a session for the link of the mail in the browser that asked, once', async () => {
    const { userId } = await verified('lin@shop.example');
    const challenge = await begin('lin@shop.example', 'link');
    const text = textOf((await mails.next('lin@shop.example')).raw);
    const code = codeIn(text);
    assert.ok(text.includes(`${page}${code}`));
    const typed = await begin('lin@shop.example');
    await mails.next('lin@shop.example');
    await confirm(typed, code, [400, 'code_invalid']);
    assert.equal(tokensOf(await confirm(challenge, code, 200)).userId, userId);
    await confirm(challenge, code, [400, 'code_invalid']);
  });

  test('registers an address without an account, verified and without a password', async () => {
    const challenge = await begin('new@shop.example');
    const code = await codeTo('new@shop.example');
    const entered = await confirm(challenge, code, 200, { name: 'Nia' });
    const { token, userId } = tokensOf(entered);
    const user = (await client.ask('GET', `users/${userId}`, { as: token, expect: 200 })).json();
    assert.deepEqual([user.email, user.name, user.emailVerified], ['new@shop.example', 'Nia', true]);
    await post('login', { email: 'new@shop.example', password }, 401);
    const again = await begin('new@shop.example');
    const second = await confirm(again, await codeTo('new@shop.example'), 200);
    assert.equal(tokensOf(second).userId, userId);
  });

  test('answers every address in the same way', async () => {
    await verified('bea@shop.example');
    const disabled = await verified('off@shop.example');
    await changeUser(client, disabled.userId, { disabled: true });
    const shapes = [];
    for (const email of ['bea@shop.example', 'nobody@shop.example', 'off@shop.example']) {
      const { status, headers, body } = await post('code', { email });
      const { date: _date, ratelimit: _rate, 'x-ratelimit-remaining': _left, ...fields } = headers;
      shapes.push(JSON.stringify([status, Object.keys(fields).sort(), body.length]));
    }
    assert.equal(new Set(shapes).size, 1, shapes.join('\n'));
    await mails.next('bea@shop.example');
    await mails.next('nobody@shop.example');
    assert.equal(mails.received.filter(({ to }) => to.includes('off@shop.example')).length, 1);
    await post('code', { email: 'none' }, [422, 'validation_failed']);
  });

  test('opens one session for one code, however many send it at once', async () => {
    for (const email of ['cy@shop.example', 'unknown@shop.example']) {
      if (email.startsWith('cy')) await verified(email);
      const challenge = await begin(email);
      const code = await codeTo(email);
      const answers = await Promise.all(Array.from({ length: 8 }, () => confirm(challenge, code)));
      assert.deepEqual(statusesOf(answers), [200, 400, 400, 400, 400, 400, 400, 400], email);
      const { items } = (await client.ask('GET', `users?email=${email}`, { as: adminKey })).json();
      assert.equal(items.length, 1);
    }
  });

  test('asks for the second factor', async () => {
    const { token } = await verified('dan@shop.example');
    const begun = await post('second-factor/totp', { password }, 200, token);
    const { enrolment, secret } = begun.json();
    const totp = new TOTP({ secret: Secret.fromBase32(secret) });
    const added = await post('second-factor/totp/confirm', { enrolment, code: totp.generate() }, 200, token);
    await mails.next('dan@shop.example');
    const mailed = await begin('dan@shop.example');
    const code = await codeTo('dan@shop.example');
    const first = await confirm(mailed, code, [401, 'second_factor_required']);
    await confirm(mailed, code, [400, 'code_invalid']);
    const { challenge } = first.json();
    await post('login/second-factor', { challenge, code: added.json().recoveryCodes[0] }, 200);
  });

  test('takes an account that was never verified from whom registered it', async () => {
    const intruder = await register(client, 'eve@shop.example', password);
    await mails.next('eve@shop.example');
    const { key } = await makeKey(client, bearer(intruder.token), { name: 'mine' });
    const challenge = await begin('eve@shop.example');
    const entered = await confirm(challenge, await codeTo('eve@shop.example'), 200);
    assert.equal(tokensOf(entered).userId, intruder.userId);
    await client.ask('GET', 'auth/me', { as: tokensOf(entered).token, expect: 200 });
    for (const credential of [intruder.token, key])
      await client.ask('GET', 'auth/me', { as: credential, expect: 401 });
    await post('login', { email: 'eve@shop.example', password }, 401);
  });

  test('ends its codes with a reset, with the account, and with its address', async () => {
    for (const [name, change] of [
      ['fay', (id: string) => changeUser(client, id, { email: 'moved-fay@shop.example' })],
      ['gil', (id: string) => client.ask('DELETE', `users/${id}`, { as: adminKey, expect: 204 })],
      ['hal', (id: string) => changeUser(client, id, { disabled: true })],
    ] as const) {
      const { userId } = await verified(`${name}@shop.example`);
      const challenge = await begin(`${name}@shop.example`);
      const code = await codeTo(`${name}@shop.example`);
      await change(userId);
      await confirm(challenge, code, [400, 'code_invalid'], {});
    }
  });

  test('mails an account five codes and links in an hour, and no more', async () => {
    await verified('ivy@shop.example');
    const challenges = [];
    for (let count = 0; count < 7; count += 1)
      challenges.push(await begin('ivy@shop.example', count % 2 === 0 ? 'code' : 'link'));
    // The mails are made one after the other: that of a later request comes last.
    await begin('last@shop.example');
    await mails.next('last@shop.example');
    assert.equal(mails.received.filter(({ to }) => to.includes('ivy@shop.example')).length, 1 + 5);
  });

  test('limits wrong codes by challenge and by address', async (context) => {
    const program = await startServer({ config, env: { ...env, COMITY_LOGIN_ATTEMPTS: '3' } });
    context.after(() => program.stop());
    const other = openClient(program.port);
    context.after(() => other.close());
    const asked = await other.ask('POST', 'auth/code', {
      json: { email: 'jo@shop.example' },
      expect: 200,
    });
    const { challenge } = asked.json();
    const code = await codeTo('jo@shop.example');
    const statuses = [];
    for (let count = 0; count < 5; count += 1) {
      const json = { challenge, code: count === 4 ? code : 'aaaa-aaaa' };
      statuses.push((await other.ask('POST', 'auth/code/confirm', { json })).status);
    }
    assert.deepEqual(statuses, [400, 400, 400, 429, 429]);
  });

  test('gives a new account the fields of the application, and asks for those that it needs', async (context) => {
    const program = await startServer({ config: guild, env });
    context.after(() => program.stop());
    const other = openClient(program.port);
    context.after(() => other.close());
    const email = 'kim@guild.example';
    const asked = await other.ask('POST', 'auth/code', { json: { email }, expect: 200 });
    const { challenge } = asked.json();
    const code = await codeTo(email);
    const finish = (fields: object, expect: Expectation) =>
      other.ask('POST', 'auth/code/confirm', { json: { challenge, code, ...fields }, expect });
    await finish({}, [400, 'field_missing']);
    await finish({ nick: 'refused' }, [409, 'no_such_nick']);
    await finish({ nick: 'kim', level: 9 }, [422, 'validation_failed']);
    const { token } = tokensOf(await finish({ nick: 'kim' }, 200));
    const { fields } = (await other.ask('GET', 'auth/me', { as: token })).json();
    assert.deepEqual(fields, { nick: 'kim', level: 1 });
  });

  test('registers nobody where registration is closed, is absent unless it is on, and needs a page for its link', async (context) => {
    const closed = await startServer({ config, env: { ...env, COMITY_REGISTRATION: 'closed' } });
    context.after(() => closed.stop());
    const other = openClient(closed.port);
    context.after(() => other.close());
    await other.ask('POST', 'auth/code', { json: { email: 'lea@shop.example' }, expect: 200 });
    await other.ask('POST', 'users', { as: adminKey, json: { email: 'mia@shop.example' }, expect: 201 });
    await other.ask('POST', 'auth/code', { json: { email: 'mia@shop.example' }, expect: 200 });
    await mails.next('mia@shop.example');
    assert.ok(!mails.received.some(({ to }) => to.includes('lea@shop.example')));
    const off = await startServer();
    context.after(() => off.stop());
    const third = openClient(off.port);
    context.after(() => third.close());
    for (const path of ['auth/code', 'auth/link', 'auth/code/confirm'])
      await third.ask('POST', path, { json: { email: 'lea@shop.example' }, expect: 404 });
    await assert.rejects(
      startServer({ config }),
      /accounts\.passwordless\.link needs the page .* COMITY_MAIL_LOGIN_URL/,
    );
  });
});

/** The code as a person reads it. */
function codeIn(text: string): string {
  const code = /\b[0-9a-hjkmnp-tv-z]{4}-[0-9a-hjkmnp-tv-z]{4}\b/.exec(text)?.[0];
  if (code === undefined) throw new Error(`no code is in the mail:\n${text}`);
  return code;
}

function statusesOf(answers: readonly Answer[]): readonly number[] {
  return answers.map(({ status }) => status).sort();
}
