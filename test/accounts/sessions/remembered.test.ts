/** Sessions behind the verified credentials: what is remembered of a token or a cookie never outlives its session. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Authenticate, createAuthenticate } from '../../../src/accounts/authenticate.ts';
import { createVerifiedCredentials } from '../../../src/accounts/verified-credentials.ts';
import type { Request } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { cookieOf, type Process, putUser, start, startProcess } from './fixture.ts';

const ada = { id: 'usr_01jg0000000000000000000000' };

function requestWith(name: string, value: string): Request {
  const rawFields = ['Host', 'localhost', name, value];
  return {
    method: 'GET',
    target: '/',
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: () => Promise.reject(new Error('nobody reads')),
    peer: '',
    id: 'test',
  };
}

/** The process as requests meet it, and how often it verified a token anew. */
function remembering(process: Process) {
  let verified = 0;
  const cache = createVerifiedCredentials(process.store, () => process.clock.now, 1_000_000);
  const authenticate = createAuthenticate({
    verifiers: {
      key: () => ({ problem: 'invalid_api_key' }),
      token: (token) => {
        verified += 1;
        return process.sessions.verifyToken(token);
      },
      password: async () => ({ problem: 'invalid_credentials' }),
      session: process.sessions.verifyCookie,
    },
    cache,
    isCrossSite: () => false,
    addressOf: () => '',
  });
  return { authenticate, verified: () => verified, close: () => cache.close() };
}

/** As a walk asks: what another process changed meanwhile begins it again. */
async function admits(authenticate: Authenticate, request: Request): Promise<boolean> {
  for (;;) {
    const identified = await authenticate(request, undefined);
    if (!('confirmed' in identified)) return false;
    if (identified.confirmed === undefined || (await identified.confirmed)) return true;
  }
}

for (const [engine, open] of engines) {
  test(`${engine}: a logout at one process is known at every other with the next request, hundreds of times`, async (context) => {
    const [one, other] = await open(context);
    const user = await putUser(one, ada);
    const [here, there] = [await startProcess(one), await startProcess(other)];
    const [near, far] = [remembering(here), remembering(there)];
    for (let round = 0; round < 100; round += 1) {
      const { session, content, fields } = await here.login(user, true);
      const requests = [
        requestWith('Authorization', `Bearer ${content.token}`),
        requestWith('Cookie', `__Host-comity_session=${cookieOf(fields)}`),
      ];
      for (const { authenticate } of [near, far]) {
        for (const request of requests) {
          assert.ok(await admits(authenticate, request));
          assert.ok(await admits(authenticate, request), 'remembered by now');
        }
      }
      await (round % 2 === 0 ? here : there).logout(session);
      for (const { authenticate } of [far, near]) {
        for (const request of requests) assert.ok(!(await admits(authenticate, request)));
      }
    }
    assert.equal(near.verified(), 2 * 100, 'once when it was new, once after it was revoked');
    for (const { close } of [near, far]) close();
    for (const { keys } of [here, there]) await keys.close();
  });
}

test('a token is verified once however many requests bring it, and noting a sight makes none of its account verify anew', async (context) => {
  const store = await openEmbedded(context);
  const user = await putUser(store, ada);
  const clock = { now: start };
  const process = await startProcess(store, clock, { sessionIdleSeconds: 1000 });
  const { authenticate, verified, close } = remembering(process);
  const [first, second] = [await process.login(user, true), await process.login(user)];
  const byToken = requestWith('Authorization', `Bearer ${second.content.token}`);
  const byCookie = requestWith('Cookie', `__Host-comity_session=${cookieOf(first.fields)}`);
  assert.ok(await admits(authenticate, byToken));
  assert.ok(await admits(authenticate, byCookie));
  for (let at = 0; at < 20; at += 1) {
    clock.now += 40_000;
    assert.ok(await admits(authenticate, byCookie));
    assert.ok(await admits(authenticate, byToken));
    await process.sessions.close();
  }
  assert.equal(verified(), 1);
  close();
  await process.keys.close();
});
