/** Who opens a WebSocket: origins, cookies and tickets, before any socket is made (§5.4). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCrossSiteCheck } from '../../src/accounts/sessions/cookie.ts';
import type { Request } from '../../src/http/message.ts';
import { readRequestFields } from '../../src/http/request-fields.ts';
import { corsPolicy, credentialedOrigins } from '../../src/kernel/answer/cors.ts';
import type { Authenticate, Identified } from '../../src/kernel/resource.ts';
import { anonymous, authenticated } from '../../src/model/principal.ts';
import { createIdentify, credentialOf, type SealedCredential } from '../../src/realtime/identify.ts';
import { knownAs } from '../resources/known.ts';

const ada = authenticated({ id: 'ada', scopes: ['read'] });

function requestOf(fields: readonly string[]): Request {
  const rawFields = ['Host', 'api.example', ...fields];
  return {
    ...{ method: 'GET', target: '/api/v1/realtime', version: '1.1', rawFields, peer: '192.0.2.1', id: 'r' },
    fields: readRequestFields(rawFields),
    readContent: () => Promise.reject(new Error('a handshake has no content')),
  };
}

/** Knows a cookie `ada`, and any Authorization, X-API-Key or api_key. */
const authenticate: Authenticate = ({ fields }, query) => {
  const explicit =
    fields.authorization ?? fields.xApiKey ?? (query?.includes('api_key=') ? query : undefined);
  if (explicit !== undefined) return explicit.includes('bad') ? { problem: 'invalid_token' } : knownAs(ada);
  if (fields.cookie?.includes('ada') === true) return { ...knownAs(ada), scheme: 'session-cookie' };
  return { principal: anonymous };
};

type Asking = {
  readonly fields?: readonly string[];
  readonly query?: string;
  readonly corsOrigins?: string;
  readonly credentials?: 'auto' | 'off';
  readonly ticket?: SealedCredential;
  readonly tooSoon?: boolean;
};

async function ask(asking: Asking): Promise<{ readonly said: string; readonly used: readonly string[] }> {
  const cors = corsPolicy({
    corsOrigins: asking.corsOrigins ?? '',
    corsCredentials: asking.credentials ?? 'auto',
  });
  const used: string[] = [];
  const identify = createIdentify(
    {
      addressOf: ({ peer }) => peer,
      cors,
      crossSite: createCrossSiteCheck(undefined, credentialedOrigins(cors)),
      clock: Date.now,
    },
    {
      use: async (ticket) => {
        used.push(ticket);
        return ticket === 'good' ? asking.ticket : undefined;
      },
    },
    { isTooSoon: () => asking.tooSoon ?? false },
  );
  const found = await identify(requestOf(asking.fields ?? []), asking.query, authenticate);
  return { said: wordOf(found), used };
}

function wordOf(found: Identified): string {
  if ('problem' in found) return found.problem;
  return found.principal.kind === 'anonymous' ? 'nobody' : found.principal.id;
}

const own = ['Origin', 'https://api.example'];
const app = ['Origin', 'https://app.example'];
const cookie = ['Cookie', 'session=ada'];
const key = ['Authorization', 'Bearer good'];

const origins: readonly (readonly [title: string, asking: Asking, said: string])[] = [
  ['a client without Origin', { fields: cookie }, 'ada'],
  ['a page of its own origin', { fields: [...own, ...cookie] }, 'ada'],
  ['a page of another origin', { fields: [...app, ...cookie] }, 'cross_site_request'],
  ['a page of another origin without a credential', { fields: app }, 'cross_site_request'],
  ['a page of another origin with a key', { fields: [...app, ...key] }, 'cross_site_request'],
  ['an opaque origin', { fields: ['Origin', 'null'] }, 'cross_site_request'],
  ['a page of an allowed origin', { fields: [...app, ...cookie], corsOrigins: 'https://app.example' }, 'ada'],
  [
    'a page of an origin allowed without credentials, by cookie',
    { fields: [...app, ...cookie], corsOrigins: 'https://app.example', credentials: 'off' },
    'cross_site_request',
  ],
  [
    'a page of an origin allowed without credentials, by none',
    { fields: app, corsOrigins: 'https://app.example', credentials: 'off' },
    'nobody',
  ],
  ['any page where all are allowed, by key', { fields: [...app, ...key], corsOrigins: '*' }, 'ada'],
  ['any page where all are allowed, by none', { fields: app, corsOrigins: '*' }, 'nobody'],
  [
    'any page where all are allowed, by cookie',
    { fields: [...app, ...cookie], corsOrigins: '*' },
    'cross_site_request',
  ],
  [
    'a request that a browser calls cross-site, by cookie and without Origin',
    { fields: ['Sec-Fetch-Site', 'cross-site', ...cookie] },
    'cross_site_request',
  ],
];

for (const [title, asking, said] of origins) {
  test(`says ${said} of ${title}`, async () => {
    assert.equal((await ask(asking)).said, said);
  });
}

const ticket = { authorization: 'Bearer good' };

test('knows the bearer of a ticket by the credential that it stands for, whatever carried that', async () => {
  for (const sealed of [
    ticket,
    { xApiKey: 'good' },
    { query: 'x=1&api_key=good' },
    { cookie: 'session=ada' },
  ]) {
    assert.deepEqual(await ask({ query: 'ticket=good', ticket: sealed }), { said: 'ada', used: ['good'] });
  }
  const withCookie = { query: 'ticket=good', ticket, fields: ['Cookie', 'session=eve'] };
  assert.equal((await ask(withCookie)).said, 'ada', 'the cookie of the browser does not count beside it');
});

test('refuses a ticket that is none, that is over, or whose credential is no longer good', async () => {
  assert.equal((await ask({ query: 'ticket=used' })).said, 'invalid_token');
  assert.equal((await ask({ query: 'ticket=' })).said, 'invalid_token');
  const ended = { authorization: 'Bearer bad' };
  assert.equal((await ask({ query: 'ticket=good', ticket: ended })).said, 'invalid_token');
});

test('refuses a ticket beside another credential, and two tickets, without using any', async () => {
  for (const asking of [
    { query: 'ticket=good', fields: key },
    { query: 'ticket=good', fields: ['X-API-Key', 'good'] },
    { query: 'ticket=good&api_key=good' },
    { query: 'ticket=good&ticket=good' },
    { query: 't%69cket=good&ticket=good' },
  ]) {
    assert.deepEqual(await ask({ ...asking, ticket }), { said: 'credentials_repeated', used: [] });
  }
});

test('leaves the ticket good of who comes too soon or from a foreign page', async () => {
  const soon = await ask({ query: 'ticket=good', ticket, tooSoon: true });
  assert.deepEqual(soon, { said: 'rate_limited', used: [] });
  const foreign = await ask({ query: 'ticket=good', ticket, fields: app });
  assert.deepEqual(foreign, { said: 'cross_site_request', used: [] });
});

test('seals the one credential of a request that counts', () => {
  const all = requestOf([...key, 'X-API-Key', 'k', ...cookie]);
  assert.deepEqual(credentialOf(all, 'api_key=q'), { authorization: 'Bearer good' });
  assert.deepEqual(credentialOf(requestOf(['X-API-Key', 'k', ...cookie]), undefined), { xApiKey: 'k' });
  assert.deepEqual(credentialOf(requestOf(cookie), 'a%70i_key=q'), { query: 'a%70i_key=q' });
  assert.deepEqual(credentialOf(requestOf(cookie), 'other=q'), { cookie: 'session=ada' });
});
