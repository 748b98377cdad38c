/** The ring of signing keys: when keys come and go, and that all processes agree. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose';
import { signingKeysTable } from '../../../src/accounts/account-tables.ts';
import { withoutSpent } from '../../../src/accounts/tokens/rotating-keys.ts';
import {
  importSigningKey,
  keptMs,
  makeSigningKey,
  type StoredKey,
  signingAt,
} from '../../../src/accounts/tokens/signing-keys.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { until } from '../../harness/until.ts';
import { dayMs, good, minuteMs, origin, putUser, refused, start, startProcess } from '../sessions/fixture.ts';

const ada = { id: 'usr_01jg0000000000000000000000' };

function stored(kid: string, signsFrom: number): StoredKey {
  return { kid, algorithm: 'EdDSA', signsFrom, publicJwk: {}, privateJwk: {} };
}

test('exactly one key signs, and the one before goes when its last token is over', () => {
  const due = start + 30 * dayMs;
  const keys = [stored('first', start), stored('second', due)];
  assert.equal(signingAt(keys, due - 1)?.kid, 'first');
  assert.equal(signingAt(keys, due)?.kid, 'second');
  assert.equal(signingAt(keys, start - 1)?.kid, 'first', 'of a process whose clock is behind');
  const over = due + 16 * minuteMs;
  assert.equal(withoutSpent(keys, keptMs(900), over - 1), keys);
  assert.deepEqual(withoutSpent(keys, keptMs(900), over), keys.slice(1));
});

for (const algorithm of ['EdDSA', 'ES256', 'RS256'] as const) {
  test(`publishes the public half of ${algorithm} keys alone`, async () => {
    const key = await importSigningKey(await makeSigningKey(algorithm, 'name', start));
    const { published } = key;
    assert.equal(published.kid, 'name');
    assert.equal(published.alg, algorithm);
    assert.equal(published.use, 'sig');
    for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']) assert.ok(!(name in published));
  });
}

for (const [engine, open] of engines) {
  test(`${engine}: processes that start together make one key, and each accepts what the others sign`, async (context) => {
    const stores = await open(context);
    const user = await putUser(stores[0], ada);
    const processes = await Promise.all([...stores, ...stores].map((store) => startProcess(store)));
    const kids = new Set(processes.flatMap(({ keys }) => keys.published().map(({ kid }) => kid)));
    assert.equal(kids.size, 1);
    for (const { login } of processes) {
      const { content } = await login(user);
      for (const { sessions } of processes) await good(sessions.verifyToken(content.token));
    }
    for (const { keys } of processes) await keys.close();
  });

  test(`${engine}: processes that rotate together make one key, which all publish before it signs`, async (context) => {
    const [one, other] = await open(context);
    const clock = { now: start };
    const user = await putUser(one, ada);
    const processes = [await startProcess(one, clock), await startProcess(other, clock)] as const;
    const [here, there] = processes;
    const first = here.keys.current().kid;
    clock.now = start + 27 * dayMs;
    await Promise.all(processes.map(({ keys }) => keys.look()));
    for (const { keys } of processes) {
      assert.equal(keys.published().length, 2);
      assert.equal(keys.current().kid, first);
    }
    assert.deepEqual(here.keys.published(), there.keys.published());
    const rotations = [...here.facts, ...there.facts].filter(({ type }) => type === 'signing_key.rotated');
    // One of the two may have lost the race after it had written its fact, which then is not committed.
    const [, second] = here.keys.published();
    assert.ok(rotations.some(({ subject }) => subject === second?.kid));
    assert.equal(
      [...here.observed, ...there.observed].filter(({ kind }) => kind === 'signing-key-made').length,
      2,
    );
    clock.now = start + 30 * dayMs;
    for (const { keys } of processes) assert.equal(keys.current().kid, second?.kid);
    clock.now -= 1;
    const { content } = await here.login(user);
    clock.now += 14 * minuteMs;
    await there.keys.look();
    await good(there.sessions.verifyToken(content.token));
    clock.now += 3 * minuteMs;
    await there.keys.look();
    assert.deepEqual(
      there.keys.published().map(({ kid }) => kid),
      [second?.kid],
    );
    await until(() => here.keys.published().length === 1);
    assert.ok(there.observed.some((fact) => fact.kind === 'signing-key-retired' && fact.kid === first));
    for (const { keys } of processes) await keys.close();
  });

  test(`${engine}: a ring that was removed is made anew, and what the old one signed is refused`, async (context) => {
    const [one, other] = await open(context);
    const user = await putUser(one, ada);
    const [here, there] = [await startProcess(one), await startProcess(other)];
    const before = await here.login(user);
    const row = await one.read(signingKeysTable, 'ring');
    assert.ok(row);
    const removal = { table: signingKeysTable, id: 'ring', expect: { rev: row.rev }, next: null };
    await one.commit({ changes: [removal], events: [] });
    const old = row.doc;
    const isNew = ({ keys }: typeof here) => !old.includes(keys.current().kid);
    await until(() => isNew(here) && isNew(there));
    for (const { sessions } of [here, there]) await refused(sessions.verifyToken(before.content.token));
    assert.deepEqual(here.keys.published(), there.keys.published());
    for (const { keys } of [here, there]) await keys.close();
  });
}

test('a key that this process has not heard of yet is looked for in the store, at most once a second', async (context) => {
  const store = await openEmbedded(context);
  const user = await putUser(store, ada);
  const clock = { now: start };
  let reads = 0;
  const deaf: Store = {
    ...store,
    onChange: () => () => undefined,
    read: (table, id) => {
      if (table === signingKeysTable) reads += 1;
      return store.read(table, id);
    },
  };
  const here = await startProcess(deaf, clock);
  const row = await store.read(signingKeysTable, 'ring');
  assert.ok(row);
  await store.commit({
    changes: [{ table: signingKeysTable, id: 'ring', expect: { rev: row.rev }, next: null }],
    events: [],
  });
  const there = await startProcess(store, clock);
  const { content } = await there.login(user);
  clock.now += 1000;
  reads = 0;
  await good(here.sessions.verifyToken(content.token));
  assert.equal(reads, 1);
  for (let at = 0; at < 100; at += 1) assert.equal(await here.keys.find(`made-up-${at}`), undefined);
  assert.equal(reads, 1);
  for (const { keys } of [here, there]) await keys.close();
});

test('looks again after a look that failed, and signs meanwhile', async (context) => {
  const store = await openEmbedded(context);
  let fails = false;
  const shaky: Store = {
    ...store,
    read: (table, id) => {
      if (fails && table === signingKeysTable) {
        fails = false;
        return Promise.reject(new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 }));
      }
      return store.read(table, id);
    },
  };
  const clock = { now: start };
  const process = await startProcess(shaky, clock);
  const row = await store.read(signingKeysTable, 'ring');
  assert.ok(row);
  fails = true;
  clock.now = start + 27 * dayMs;
  const touched = { ...row, search: null, references: [] };
  await store.commit({
    changes: [{ table: signingKeysTable, id: 'ring', expect: { rev: row.rev }, next: touched }],
    events: [],
  });
  await until(() => process.observed.some(({ kind }) => kind === 'store-failed'));
  process.keys.current();
  await until(() => process.keys.published().length === 2);
  await process.keys.close();
});

test('others can verify our tokens by the published set, which may be kept for less than the lead', async (context) => {
  const store = await openEmbedded(context);
  const user = await putUser(store, ada);
  const process = await startProcess(store);
  const { content } = await process.login(user);
  const set = createLocalJWKSet({ keys: process.keys.published() } as JSONWebKeySet);
  const { payload } = await jwtVerify(content.token, set, { issuer: origin, currentDate: new Date(start) });
  assert.equal(payload.sub, user.id);
  assert.equal(process.keys.publishedSeconds, 300);
  await process.keys.close();
  const brief = await startProcess(store, undefined, { signingKeySeconds: 60 });
  assert.equal(brief.keys.publishedSeconds, 15);
  await brief.keys.close();
});

test('without a public URL tokens name the ring, so they are good on every process and after a restart', async (context) => {
  const store = await openEmbedded(context);
  const user = await putUser(store, ada);
  const [here, there] = [
    await startProcess(store, undefined, { publicUrl: undefined }),
    await startProcess(store),
  ];
  assert.match(here.keys.name(), /^urn:comity:[0-9a-z]{26}$/);
  assert.equal(here.keys.name(), there.keys.name());
  const { content } = await here.login(user);
  assert.equal(decodeJwt(content.token).iss, here.keys.name());
  assert.equal(decodeJwt(content.token).aud, here.keys.name());
  await good(here.sessions.verifyToken(content.token));
  await refused(there.sessions.verifyToken(content.token));
  for (const { keys } of [here, there]) await keys.close();
});

test('a new algorithm counts from the next key on, beside the keys of the old one', async (context) => {
  const store = await openEmbedded(context);
  const user = await putUser(store, ada);
  const clock = { now: start };
  const before = await startProcess(store, clock);
  await before.keys.close();
  const process = await startProcess(store, clock, { signingAlgorithm: 'ES256' });
  assert.equal(process.keys.current().algorithm, 'EdDSA');
  clock.now = start + 27 * dayMs;
  await process.keys.look();
  clock.now = start + 30 * dayMs - 1000;
  const old = await process.login(user);
  clock.now += 1000;
  assert.equal(process.keys.current().algorithm, 'ES256');
  const { content } = await process.login(user);
  for (const { token } of [content, old.content]) await good(process.sessions.verifyToken(token));
  await process.keys.close();
});
