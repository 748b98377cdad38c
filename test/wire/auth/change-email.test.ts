/** The address of an account, changed by its owner and taken back by the owner of the address before (§5.4.7), on both stores. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { login, register, serveAccounts } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { codeIn, fieldOf, startMailServer, textOf } from '../../harness/mail-server.ts';

const password = 'correct horse battery';
const newPassword = 'fourth time lucky';

describeOnEachStore('the address of an account', async (engine) => {
  const mails = await startMailServer({ after });
  const { client } = await serveAccounts({
    engine,
    env: { COMITY_SMTP_URL: mails.url, COMITY_LOGIN_ATTEMPTS: '0' },
  });
  const post = (path: string, json: object, expect: Expectation, as?: string) =>
    client.ask('POST', `auth/${path}`, { json, expect, as });
  const codeTo = async (email: string): Promise<string> => codeIn(await mails.next(email));
  const emailOf = async (id: string) => (await client.ask('GET', `users/${id}`, { as: adminKey })).json();
  const join = async (email: string) => {
    const tokens = await register(client, email, password);
    return { ...tokens, verification: await codeTo(email) };
  };
  /** Changes the address, and gives the code that takes it back. */
  const move = async (token: string, from: string, to: string): Promise<string> => {
    await post('me/email', { email: to, password }, 204, token);
    await post('verification/confirm', { code: await codeTo(to) }, 204);
    return codeTo(from);
  };

  test('changes once the new address is proven, and tells the one before', async () => {
    const { token, userId, verification } = await join('ada@shop.example');
    await post('password-reset', { email: 'ada@shop.example' }, 204);
    const reset = await codeTo('ada@shop.example');
    await post('me/email', { email: ' NEW@Shop.example', password }, 204, token);
    const mail = await mails.next('new@shop.example');
    assert.equal((await emailOf(userId)).email, 'ada@shop.example');
    await post('verification/confirm', { code: codeIn(mail) }, 204);
    await post('verification/confirm', { code: codeIn(mail) }, [400, 'code_invalid']);
    const { email, emailVerified } = await emailOf(userId);
    assert.deepEqual([email, emailVerified], ['new@shop.example', true]);
    const notice = await mails.next('ada@shop.example');
    assert.match(fieldOf(notice.raw, 'Subject') ?? '', /your e-mail address was changed$/);
    assert.ok(!textOf(notice.raw).includes('new@shop.example'));
    // What was mailed to the address before leads nowhere.
    await post('password-reset/confirm', { code: reset, password: newPassword }, [400, 'code_invalid']);
    await post('verification/confirm', { code: verification }, [400, 'code_invalid']);
    await client.ask('GET', 'auth/me', { as: token, expect: 200 });
    await login(client, 'new@shop.example', password);
    await post('login', { email: 'ada@shop.example', password }, 401);
  });

  test('asks for a proof, an address, and a person', async () => {
    const { token } = await join('bea@shop.example');
    const email = 'bea2@shop.example';
    await post('me/email', { email }, [401, 'invalid_credentials'], token);
    await post('me/email', { email, password: 'wrong horse' }, [401, 'invalid_credentials'], token);
    await post('me/email', { email: 'none', password }, [422, 'validation_failed'], token);
    await post('me/email', { email, password }, 401);
    await post('me/email', { email, password }, 403, adminKey);
  });

  test('tells nobody whether the new address has an account, and takes it from none', async () => {
    const { token, userId } = await join('cy@shop.example');
    await join('taken@shop.example');
    await post('me/email', { email: 'taken@shop.example', password }, 204, token);
    await post('me/email', { email: 'free@shop.example', password }, 204, token);
    const code = await codeTo('free@shop.example');
    assert.equal(mails.received.filter(({ to }) => to.includes('taken@shop.example')).length, 1);
    await register(client, 'free@shop.example', password);
    await post('verification/confirm', { code }, [409, 'unique_taken']);
    assert.equal((await emailOf(userId)).email, 'cy@shop.example');
  });

  test('is taken back by the address before, which ends what was opened since', async () => {
    const { token, userId } = await join('dan@shop.example');
    const undo = await move(token, 'dan@shop.example', 'thief@shop.example');
    // Who holds the account changes the address again, and resets the password: the way back stays.
    const further = await move(token, 'thief@shop.example', 'thief2@shop.example');
    await post('password-reset', { email: 'thief2@shop.example' }, 204);
    const reset = await codeTo('thief2@shop.example');
    await post('password-reset/confirm', { code: reset, password: newPassword }, 204);
    const thief = await login(client, 'thief2@shop.example', newPassword);
    await post('me/email/undo', { code: undo, password: 'short' }, [422, 'validation_failed']);
    await post('me/email/undo', { code: undo, password: 'mine again, at last' }, 204);
    await post('me/email/undo', { code: undo }, [400, 'code_invalid']);
    await post('me/email/undo', { code: further }, [400, 'code_invalid']);
    assert.equal((await emailOf(userId)).email, 'dan@shop.example');
    await client.ask('GET', 'auth/me', { as: thief.token, expect: 401 });
    await post('login', { email: 'dan@shop.example', password: newPassword }, 401);
    await login(client, 'dan@shop.example', 'mine again, at last');
  });

  test('has no password after an undo without one', async () => {
    const { token } = await join('eve@shop.example');
    const undo = await move(token, 'eve@shop.example', 'eve2@shop.example');
    await post('me/email/undo', { code: undo }, 204);
    await post('login', { email: 'eve@shop.example', password }, 401);
  });

  test('changes once for one code, however many send it at once', async () => {
    const { token, userId } = await join('fay@shop.example');
    await post('me/email', { email: 'fay2@shop.example', password }, 204, token);
    const code = await codeTo('fay2@shop.example');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => client.ask('POST', 'auth/verification/confirm', { json: { code } })),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [204, 400, 400, 400, 400, 400, 400, 400]);
    assert.equal((await emailOf(userId)).email, 'fay2@shop.example');
    await mails.next('fay@shop.example');
    assert.equal(mails.received.filter(({ to }) => to.includes('fay@shop.example')).length, 2);
  });

  test('ends its codes with the account, its address by an administrator, and a new password', async () => {
    for (const [name, change] of [
      ['gil', (id: string) => client.ask('DELETE', `users/${id}`, { as: adminKey, expect: 204 })],
      [
        'hal',
        (id: string) => client.ask('PATCH', `users/${id}`, { as: adminKey, json: { email: 'x@y.example' } }),
      ],
      [
        'ida',
        (_id: string, token: string) =>
          post('password', { currentPassword: password, newPassword }, 204, token),
      ],
    ] as const) {
      const { token, userId } = await join(`${name}@shop.example`);
      await post('me/email', { email: `${name}2@shop.example`, password }, 204, token);
      const code = await codeTo(`${name}2@shop.example`);
      await change(userId, token);
      await post('verification/confirm', { code }, [400, 'code_invalid']);
    }
  });
});
