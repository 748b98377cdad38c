/**
 * A sign-in whose provider posts a form from another site, in a real browser (§5.3.2): the cookie of the sign-in is `SameSite=Lax`, so it is
 * missing from the form and present in the GET that follows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFakeProvider } from '../../harness/forging-openid-provider.ts';
import { clientSecret } from '../../harness/openid-provider.ts';
import { startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';

test('a form of another site finishes a sign-in, by the GET that it leads to', async (context) => {
  const fake = await openFakeProvider(context);
  // `localhost` is another site than 127.0.0.1.
  const authorization_endpoint = `${fake.issuer.replace('127.0.0.1', 'localhost')}/authorize`;
  fake.behave = {
    discovery: { authorization_endpoint },
    claims: { email: 'ada@shop.example', email_verified: 'true' },
  };
  const program = await startServer({
    env: {
      COMITY_OAUTH_FAKE_ISSUER: fake.issuer,
      COMITY_OAUTH_FAKE_CLIENT_ID: 'comity',
      COMITY_OAUTH_FAKE_CLIENT_SECRET: clientSecret,
      COMITY_OAUTH_FAKE_RESPONSE_MODE: 'form_post',
    },
  });
  context.after(() => program.stop());
  const browser = await openBrowser();
  context.after(() => browser.close());
  const page = await browser.newPage();
  const cookies = new Map<string, string | undefined>();
  page.on('request', async (request) => {
    if (!request.url().includes('/callback')) return;
    cookies.set(request.method(), (await request.allHeaders()).cookie);
  });
  await page.goto(`${program.url}/api/v1/auth/oauth/fake?redirect=/health/live`);
  await page.waitForURL(`${program.url}/health/live`);
  const me = await page.goto(`${program.url}/api/v1/auth/me`);
  assert.match((await me?.text()) ?? '', /"ada@shop\.example"/);
  assert.deepEqual([...cookies.keys()], ['POST', 'GET']);
  assert.equal(cookies.get('POST'), undefined);
  assert.match(cookies.get('GET') ?? '', /__Host-comity_sign_in=/);
});
