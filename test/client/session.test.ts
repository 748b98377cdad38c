/** Sessions of a client: one exchange for many requests and for several tabs, and their end. */
import assert from 'node:assert/strict';
import { after, beforeEach, it } from 'node:test';
import { serverOfFile } from '../harness/running-server.ts';
import { until } from '../harness/until.ts';
import { clientOf, memoryStorage, type ShopClient } from './client-of.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const program = await serverOfFile({ env: { COMITY_REFRESH_REUSE_SECONDS: '1' } });
const proxy = await startFaultyProxy(() => program.port, { after });

beforeEach(() => {
  proxy.fault = () => undefined;
});

let accounts = 0;
const password = 'correct horse battery staple';

async function register(client: ShopClient): Promise<string> {
  accounts += 1;
  const email = `ada${accounts}@shop.example`;
  const { user } = await client.auth.register({ email, password });
  assert.equal(user.email, email);
  return email;
}

const exchanges = () => proxy.passed.filter(({ url }) => url.endsWith('/auth/refresh')).length;

/** The access token counts as refused until the next one is there. */
function expire(): void {
  const old = new Set<string | undefined>();
  proxy.fault = ({ url, headers }) => {
    if (url.includes('/auth/')) return undefined;
    const { authorization } = headers;
    if (old.size === 0) old.add(authorization);
    const body = JSON.stringify({ error: 'invalid token', code: 'invalid_token' });
    return old.has(authorization)
      ? { status: 401, headers: { 'Content-Type': 'application/json' }, body }
      : undefined;
  };
}

it('registers, logs in and out, and says who the caller is', async () => {
  let ended = 0;
  const client = clientOf(proxy.baseUrl, { onSessionEnd: () => (ended += 1) });
  await assert.rejects(client.auth.me(), { status: 401 });
  const email = await register(client);
  assert.equal((await client.auth.me()).email, email);
  await client.notes.create({ text: 'mine' });
  await client.auth.logout();
  await assert.rejects(client.notes.list(), { status: 401 });
  assert.equal((await client.auth.login({ email, password })).user.email, email);
  assert.equal((await client.notes.list()).items.length, 1);
  assert.equal(ended, 0);
});

it('exchanges the refresh token once for many requests', async () => {
  const client = clientOf(proxy.baseUrl, {});
  await register(client);
  const before = exchanges();
  expire();
  await Promise.all(Array.from({ length: 20 }, () => client.notes.list()));
  assert.equal(exchanges(), before + 1);
});

it('keeps two tabs signed in that exchange one token at once', async () => {
  const storage = memoryStorage();
  const ended: string[] = [];
  const [one, other] = ['one', 'other'].map((name) =>
    clientOf(proxy.baseUrl, { storage, onSessionEnd: () => ended.push(name) }),
  ) as [ShopClient, ShopClient];
  const email = await register(one);
  await other.notes.list();
  // Without a lock, as where there is none and while a frozen tab holds it.
  const { navigator } = globalThis;
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  try {
    await Promise.all([one.auth.refresh(), other.auth.refresh()]);
  } finally {
    Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
  }
  for (const tab of [one, other]) assert.equal((await tab.auth.me()).email, email);
  for (const tab of [one, other]) await tab.auth.refresh();
  for (const tab of [one, other]) assert.equal((await tab.auth.me()).email, email);
  assert.deepEqual(ended, []);
});

it('takes over what another tab has exchanged', async () => {
  const storage = memoryStorage();
  const [one, other] = [clientOf(proxy.baseUrl, { storage }), clientOf(proxy.baseUrl, { storage })];
  await register(one);
  await other.notes.list();
  await one.auth.refresh();
  const before = exchanges();
  await other.auth.refresh();
  assert.equal(exchanges(), before);
  await other.notes.list();
});

it('survives a lost answer to an exchange, also after the time of its reuse', async () => {
  const storage = memoryStorage();
  const client = clientOf(proxy.baseUrl, { storage });
  const email = await register(client);
  const isExchange = ({ url }: { readonly url: string }) => url.endsWith('/auth/refresh');
  proxy.fault = (request) => (isExchange(request) ? 'lost' : undefined);
  await assert.rejects(client.auth.refresh(), { code: 'network' });
  proxy.fault = () => undefined;
  // The page is loaded again, much later.
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const reloaded = clientOf(proxy.baseUrl, { storage });
  await reloaded.notes.list();
  await reloaded.auth.refresh();
  assert.equal((await reloaded.auth.me()).email, email);
});

it('says once that the session is over, and goes on without it', async () => {
  let ended = 0;
  const storage = memoryStorage();
  const client = clientOf(proxy.baseUrl, { storage, onSessionEnd: () => (ended += 1) });
  const email = await register(client);
  const elsewhere = clientOf(proxy.baseUrl, {});
  await elsewhere.auth.login({ email, password });
  await elsewhere.auth.logout({ everywhere: true });
  const calls = await Promise.allSettled(Array.from({ length: 5 }, () => client.notes.list()));
  for (const call of calls) assert.equal(call.status, 'rejected');
  assert.equal(ended, 1);
  assert.equal(storage.values.size, 0);
  assert.ok(Array.isArray((await client.products.list()).items));
});

it('notices that another tab has logged out', async () => {
  const storage = memoryStorage();
  let ended = 0;
  const one = clientOf(proxy.baseUrl, { storage });
  const other = clientOf(proxy.baseUrl, { storage, onSessionEnd: () => (ended += 1) });
  await register(one);
  await other.notes.list();
  await one.auth.logout();
  await assert.rejects(other.notes.list(), { status: 401 });
  assert.equal(ended, 1);
});

it('exchanges before the access token expires', async () => {
  const storage = memoryStorage();
  const client = clientOf(proxy.baseUrl, { storage });
  await register(client);
  const [name = '', text = ''] = [...storage.values][0] ?? [];
  storage.setItem(name, JSON.stringify({ ...JSON.parse(text), expiresAt: Date.now() + 5_000 }));
  const before = exchanges();
  await clientOf(proxy.baseUrl, { storage }).notes.list();
  assert.equal(exchanges(), before + 1);
});

it('asks a function for the token, again where it was refused', async () => {
  const session = clientOf(proxy.baseUrl, {});
  const email = await register(session);
  const { token } = await session.auth.login({ email, password });
  const tokens = ['eyJ.not.one', token];
  const client = clientOf(proxy.baseUrl, { token: () => tokens.shift() ?? token });
  assert.equal((await client.auth.me()).email, email);
  await until(() => tokens.length === 0);
});
