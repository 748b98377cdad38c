/**
 * The credentials of the matrix: accounts that differ in role and tenant, each by every carrier, and the same credentials expired,
 * revoked, rotated away, never known, malformed and empty. What ends was used before it ended, so that nothing which the program
 * remembers of it can count any more.
 */
import assert from 'node:assert/strict';
import { generateKeyPair, SignJWT } from 'jose';
import {
  asAdministrator,
  base,
  basic,
  bearer,
  type Client,
  changeUser,
  login,
  makeKey,
  register,
  sessionCookieName,
  type Tokens,
} from '../../../harness/account-client.ts';
import { audience, type Issuer } from '../../../harness/token-issuer.ts';
import type { Served } from './engines.ts';
import type { Caller, CarrierName, Fault } from './expectations.ts';

/** What a request says about its sender. */
export type Carried = {
  readonly headers: Readonly<Record<string, string>>;
  /** To be added to the query component. */
  readonly query?: string;
};

export type Person = {
  readonly email: string;
  readonly password: string;
  readonly tokens: Tokens;
  readonly key: string;
  readonly publishable: string;
};

export type Credentials = {
  readonly right: Person;
  of(carrier: CarrierName, caller: 'right' | 'wrong role' | 'other tenant'): Carried;
  publishable(carrier: CarrierName): Carried;
  bad(carrier: CarrierName, fault: Fault): Carried;
};

const password = 'correct horse battery staple';
/** Later than all that ends by time in this test, and sooner than what was made afterwards. */
export const untilExpiredSeconds = 1200;
const unknownKey = `sk_${'A'.repeat(43)}`;

/** Settings under which all of this is quick, and idle sessions end within `untilExpiredSeconds`. */
export const matrixSettings: Readonly<Record<string, string>> = {
  COMITY_RATE_LIMIT_READS: '0',
  COMITY_RATE_LIMIT_WRITES: '0',
  COMITY_LOGIN_ATTEMPTS: '0',
  COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
  COMITY_PASSWORD_PASSES: '1',
  COMITY_SESSION_IDLE_SECONDS: '600',
};

export async function makeCredentials(client: Client, served: Served, issuer: Issuer): Promise<Credentials> {
  const expired = await expiredCredentials(client, served, issuer);
  const [right, wrongRole, otherTenant] = await Promise.all([
    makePerson(client, 'right', { roles: ['editor'], tenant: 'north' }),
    makePerson(client, 'wrong-role', { roles: ['reader'], tenant: 'north' }),
    makePerson(client, 'other-tenant', { roles: ['editor'], tenant: 'south' }),
  ]);
  const claims = issuerClaims(issuer, Math.floor(served.now() / 1000));
  const issued = {
    right: await issuer.sign({ ...claims, roles: ['editor'], tenant: 'north' }),
    'wrong role': await issuer.sign({ ...claims, sub: 'reader', roles: ['reader'], tenant: 'north' }),
    'other tenant': await issuer.sign({ ...claims, sub: 'south', roles: ['editor'], tenant: 'south' }),
  };
  const people = { right, 'wrong role': wrongRole, 'other tenant': otherTenant };
  const bad = new Map<Fault, Ended>([
    ['expired', expired],
    ['revoked', await revokedCredentials(client)],
    ['rotated', await rotatedCredentials(client)],
    ['unknown', await unknownCredentials(right, claims)],
  ]);
  return {
    right,
    of: (carrier, caller) => carry(carrier, credentialOf(carrier, people[caller], issued[caller])),
    publishable: (carrier) => carry(carrier, right.publishable),
    bad(carrier, fault) {
      if (fault === 'empty') return emptied[carrier];
      if (fault === 'malformed') return malformed[carrier];
      const ended = bad.get(fault);
      if (ended === undefined) throw new Error(`no credential is ${fault}`);
      return carry(carrier, ended[kindOf(carrier)]);
    },
  };
}

/** Callers of the permission table that stand for an account or a subject of the issuer. */
export function callerOf(carrier: CarrierName, caller: 'right' | 'wrong role' | 'other tenant'): Caller {
  return carrier === 'Bearer, trusted issuer' ? `trusted issuer, ${caller}` : caller;
}

export function carry(carrier: CarrierName, credential: string): Carried {
  switch (carrier) {
    case 'Basic, password': {
      const colon = credential.indexOf(':');
      return { headers: basic(credential.slice(0, colon), credential.slice(colon + 1)) };
    }
    case 'Basic, key':
      return { headers: basic(credential, '') };
    case 'Bearer, access token':
    case 'Bearer, key':
    case 'Bearer, trusted issuer':
      return { headers: bearer(credential) };
    case 'Authorization: ApiKey':
      return { headers: { Authorization: `ApiKey ${credential}` } };
    case 'Authorization: Api-Key':
      return { headers: { Authorization: `Api-Key ${credential}` } };
    case 'X-API-Key':
      return { headers: { 'X-API-Key': credential } };
    case '?api_key=':
      return { headers: {}, query: `api_key=${credential}` };
    case 'session cookie':
      return { headers: { Cookie: credential } };
  }
}

/** What each carrier looks like with nothing in it. */
const emptied: Readonly<Record<CarrierName, Carried>> = {
  'Basic, password': { headers: basic('', '') },
  'Basic, key': { headers: { Authorization: 'Basic' } },
  'Bearer, access token': { headers: { Authorization: 'Bearer' } },
  'Bearer, key': { headers: { Authorization: 'Bearer ' } },
  'Bearer, trusted issuer': { headers: { Authorization: 'bearer' } },
  'Authorization: ApiKey': { headers: { Authorization: 'ApiKey' } },
  'Authorization: Api-Key': { headers: { Authorization: 'Api-Key' } },
  'X-API-Key': { headers: { 'X-API-Key': '' } },
  '?api_key=': { headers: {}, query: 'api_key=' },
  'session cookie': { headers: { Cookie: `${sessionCookieName}=` } },
};

const malformed: Readonly<Record<CarrierName, Carried>> = {
  'Basic, password': { headers: { Authorization: 'Basic !!!not-base64!!!' } },
  'Basic, key': { headers: { Authorization: `Basic ${Buffer.from(unknownKey).toString('base64')}` } },
  'Bearer, access token': { headers: bearer('a.b') },
  'Bearer, key': { headers: bearer('sk_') },
  'Bearer, trusted issuer': { headers: bearer('two tokens') },
  'Authorization: ApiKey': { headers: { Authorization: 'ApiKey two keys' } },
  'Authorization: Api-Key': { headers: { Authorization: 'Api-Key "quoted"' } },
  'X-API-Key': { headers: { 'X-API-Key': 'two keys' } },
  '?api_key=': { headers: {}, query: 'api_key=%00' },
  'session cookie': { headers: { Cookie: `${sessionCookieName}=..` } },
};

type Kind = 'password' | 'key' | 'token' | 'issued' | 'cookie';
/** One credential of each kind; empty where the kind has none. */
type Ended = Readonly<Record<Kind, string>>;

function kindOf(carrier: CarrierName): Kind {
  if (carrier === 'Basic, password') return 'password';
  if (carrier === 'Bearer, access token') return 'token';
  if (carrier === 'Bearer, trusted issuer') return 'issued';
  return carrier === 'session cookie' ? 'cookie' : 'key';
}

function credentialOf(carrier: CarrierName, person: Person, issued: string): string {
  switch (kindOf(carrier)) {
    case 'password':
      return `${person.email}:${person.password}`;
    case 'key':
      return person.key;
    case 'token':
      return person.tokens.token;
    case 'issued':
      return issued;
    case 'cookie':
      return person.tokens.cookie;
  }
}

async function makePerson(
  client: Client,
  name: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Person> {
  const email = `${name}@shop.example`;
  const { userId } = await register(client, email, password);
  await changeUser(client, userId, more);
  const tokens = await login(client, email, password, true);
  const { key } = await makeKey(client, bearer(tokens.token));
  const publishable = await makeKey(client, bearer(tokens.token), { kind: 'publishable' });
  return { email, password, tokens, key, publishable: publishable.key };
}

/** Uses each, so that the program has seen that it is good. */
async function use(client: Client, carried: readonly Carried[]): Promise<void> {
  for (const { headers } of carried) {
    const answer = await client.ask('GET', `${base}/pages`, { headers });
    assert.equal(answer.status, 200, answer.body);
  }
}

const none: Ended = { password: '', key: '', token: '', issued: '', cookie: '' };

async function expiredCredentials(client: Client, served: Served, issuer: Issuer): Promise<Ended> {
  const email = 'expired@shop.example';
  await register(client, email, password);
  const { token, cookie } = await login(client, email, password, true);
  const expiresAt = new Date(served.now() + 60_000).toISOString();
  const { key } = await makeKey(client, bearer(token), { expiresAt });
  const now = Math.floor(served.now() / 1000);
  const issued = await issuer.sign({ ...issuerClaims(issuer, now), exp: now + 60 });
  await use(client, [
    carry('Bearer, access token', token),
    carry('session cookie', cookie),
    carry('X-API-Key', key),
    carry('Bearer, trusted issuer', issued),
  ]);
  served.moveClock(untilExpiredSeconds);
  return { ...none, key, token, issued, cookie };
}

async function revokedCredentials(client: Client): Promise<Ended> {
  const { email, tokens, key } = await makePerson(client, 'revoked');
  await use(client, [
    carry('Basic, password', `${email}:${password}`),
    carry('X-API-Key', key),
    carry('Bearer, access token', tokens.token),
    carry('session cookie', tokens.cookie),
  ]);
  const changer = await login(client, email, password);
  const listed = await client.ask('GET', `${base}/keys`, { headers: bearer(changer.token) });
  for (const { id } of listed.json().items as { id: string }[]) {
    const removed = await client.ask('DELETE', `${base}/keys/${id}`, { headers: bearer(changer.token) });
    assert.equal(removed.status, 204, removed.body);
  }
  const ended = await client.ask('POST', `${base}/auth/logout`, { headers: bearer(tokens.token) });
  assert.equal(ended.status, 204, ended.body);
  const json = { currentPassword: password, newPassword: `${password} 2` };
  const changed = await client.ask('POST', `${base}/auth/password`, { json, headers: bearer(changer.token) });
  assert.equal(changed.status, 204, changed.body);
  return { ...none, password: `${email}:${password}`, key, token: tokens.token, cookie: tokens.cookie };
}

async function rotatedCredentials(client: Client): Promise<Ended> {
  const { tokens } = await makePerson(client, 'rotated');
  const { id, key } = await makeKey(client, bearer(tokens.token));
  await use(client, [carry('X-API-Key', key)]);
  const rotated = await client.ask('POST', `${base}/keys/${id}/rotate`, {
    json: {},
    headers: bearer(tokens.token),
  });
  assert.equal(rotated.status, 200, rotated.body);
  await use(client, [carry('X-API-Key', String(rotated.json().key))]);
  return { ...none, key };
}

/** Well-formed, and nobody's. */
async function unknownCredentials(right: Person, claims: ReturnType<typeof issuerClaims>): Promise<Ended> {
  const [head = '', body = ''] = right.tokens.token.split('.');
  const session = right.tokens.cookie.split('=')[1]?.split('.', 1)[0] ?? '';
  return {
    password: `${right.email}:wrong ${password}`,
    key: unknownKey,
    token: `${head}.${body}.${'A'.repeat(86)}`,
    issued: await pretended(claims),
    cookie: `${sessionCookieName}=${session}.${'A'.repeat(43)}`,
  };
}

/** A token like those of the trusted issuer, signed by a key that only pretends to be its. */
async function pretended(claims: ReturnType<typeof issuerClaims>): Promise<string> {
  const { privateKey } = await generateKeyPair('ES256');
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'key-1' }).sign(privateKey);
}

function issuerClaims(issuer: Issuer, nowSeconds: number) {
  return {
    iss: issuer.url,
    aud: audience,
    sub: 'editor',
    scope: 'read write',
    roles: ['editor'],
    tenant: 'north',
    iat: nowSeconds,
    exp: nowSeconds + 600,
  };
}

/** For the one thing that a stranger to all rules must do: make what the others look at. */
export const administrator: Carried = { headers: asAdministrator };
