/** Passkeys in a real browser, with its virtual authenticator (§5.8), driven by the DevTools protocol. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { base, type Client, openClient, register, type Tokens } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { fetchFrom, jsonOf, statusOf } from './session-pages.ts';

const email = 'ada@shop.example';
const password = 'correct horse battery staple';

let program: RunningServer;
let browser: Browser;
let client: Client;
let tokens: Tokens;
let page: Page;
let devtools: CDPSession;

before(async () => {
  program = await startServer();
  client = openClient(program.port);
  tokens = await register(client, email, password);
  browser = await openBrowser();
  const context = await browser.newContext();
  page = await context.newPage();
  // An IP address cannot be a relying party; without settings it is localhost.
  await page.goto(`http://localhost:${program.port}/health/live`);
  devtools = await context.newCDPSession(page);
  await devtools.send('WebAuthn.enable');
});

after(async () => {
  await browser?.close();
  client?.close();
  await program?.stop();
});

const url = (path: string) => `http://localhost:${program.port}${base}/auth/${path}`;

async function addAuthenticator(isUserVerified: boolean): Promise<string> {
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  });
  return authenticatorId;
}

async function post(path: string, json: unknown, token?: string): Promise<Record<string, unknown>> {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const fetched = await fetchFrom(page, url(path), { method: 'POST', json, headers, credentials: 'omit' });
  assert.equal(statusOf(fetched), 200, JSON.stringify(fetched));
  return jsonOf(fetched);
}

/** What a page does with the options: the browser makes or uses a passkey. */
function create(options: unknown): Promise<unknown> {
  return page.evaluate(
    `navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(options)}) }).then((made) => made.toJSON())`,
  );
}

function get(options: unknown): Promise<unknown> {
  return page.evaluate(
    `navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)}) }).then((used) => used.toJSON())`,
  );
}

test('a browser adds a passkey and logs in by it, alone and after the password', async () => {
  const authenticator = await addAuthenticator(true);
  const begun = await post('passkeys/options', { password }, tokens.token);
  const response = await create(begun.options);
  const added = await post(
    'passkeys',
    { challenge: begun.challenge, name: 'Chromium', response },
    tokens.token,
  );
  assert.equal((added.recoveryCodes as unknown[]).length, 10);
  const alone = await post('login/passkey/options', {});
  const entered = await post('login/passkey', {
    challenge: alone.challenge,
    response: await get(alone.options),
  });
  assert.equal((entered.user as { email: string }).email, email);
  const first = await fetchFrom(page, url('login'), { method: 'POST', json: { email, password } });
  assert.equal(statusOf(first), 401);
  const step = await post('login/passkey/options', { challenge: jsonOf(first).challenge });
  const second = await post('login/passkey', {
    challenge: step.challenge,
    response: await get(step.options),
    cookie: true,
  });
  assert.equal((second.user as { email: string }).email, email);
  await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: authenticator });
});

test('a browser whose authenticator cannot verify its user does not log in by a passkey alone', async () => {
  const authenticator = await addAuthenticator(false);
  const alone = await post('login/passkey/options', {});
  await assert.rejects(get(alone.options));
  await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: authenticator });
});
