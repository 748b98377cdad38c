/** The keys of v1a: one ring for all processes, replaced with an overlap, and published before they sign and after. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { withoutSpent } from '../../../src/accounts/tokens/rotating-keys.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import type { Store } from '../../../src/store/store.ts';
import { webhookKeysTable } from '../../../src/webhooks/sending/sending-tables.ts';
import {
  createWebhookKeys,
  keptMs,
  signingAt,
  type WebhookKeys,
} from '../../../src/webhooks/sending/webhook-keys.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { openEmbedded } from '../../harness/stores.ts';

const start = Date.UTC(2030, 0, 1);
const hourMs = 3_600_000;
const graceMs = 600_000;
const dayMs = 24 * hourMs;
const period = 30 * 86_400;
const content = Buffer.from('evt_1.1900000000.{}');

type Process = { readonly keys: WebhookKeys; readonly observed: Observation[] };

async function startProcess(store: Store, clock: { now: number }): Promise<Process> {
  const observed: Observation[] = [];
  const services = servicesOver(store, {
    clock: () => clock.now,
    observe: (fact) => void observed.push(fact),
    settings: { signingKeySeconds: period },
  });
  return { keys: await createWebhookKeys(services), observed };
}

/** The names of the published keys that made the signatures, in the order of the signatures. */
async function signers(keys: WebhookKeys): Promise<readonly (string | undefined)[]> {
  return (await keys.sign(content)).map((signature) => {
    const fits = keys.published().find((key) => {
      const publicKey = createPublicKey({ key: { ...key }, format: 'jwk' });
      return verify(null, content, publicKey, Buffer.from(signature, 'base64'));
    });
    return fits?.kid;
  });
}

test('the key of before goes on signing for a lead, second, and goes ten minutes after that', () => {
  const keys = [{ signsFrom: 0 }, { signsFrom: 30 * dayMs }];
  const [first, second] = keys;
  const at = (now: number) => signingAt(keys, period, now);
  assert.deepEqual(at(-1), [first], 'of a process whose clock is behind');
  assert.deepEqual(at(30 * dayMs - 1), [first]);
  assert.deepEqual(at(30 * dayMs), [second, first]);
  assert.deepEqual(at(33 * dayMs - 1), [second, first]);
  assert.deepEqual(at(33 * dayMs), [second]);
  assert.equal(withoutSpent(keys, keptMs(period), 33 * dayMs + graceMs - 1), keys);
  assert.deepEqual(withoutSpent(keys, keptMs(period), 33 * dayMs + graceMs), [second]);
});

test('processes on one store share a ring, rotate it together, and tell of it once', async (context) => {
  const embedded = await openEmbedded(context);
  const clock = { now: start };
  const stores = [embedded, { ...embedded, shared: true }, { ...embedded }];
  const processes = await Promise.all(stores.map((store) => startProcess(store, clock)));
  context.after(async () => {
    for (const { keys } of processes) await keys.close();
  });
  const told = () => processes.flatMap(({ observed }) => observed);
  const lookAll = () => Promise.all(processes.map(({ keys }) => keys.look()));
  const [one] = processes;
  assert.ok(one !== undefined);
  const published = () => processes.map(({ keys }) => keys.published().map(({ kid }) => kid));

  const [first] = one.keys.published().map(({ kid }) => kid);
  assert.match(String(first), /^whk_[0-9a-z]{26}$/);
  assert.deepEqual(published(), [[first], [first], [first]]);
  assert.deepEqual(told(), [{ kind: 'signing-key-made', kid: first, algorithm: 'EdDSA' }]);
  for (const { keys } of processes) assert.deepEqual(await signers(keys), [first]);

  clock.now = start + 27 * dayMs;
  await lookAll();
  const second = one.keys.published().at(-1)?.kid;
  assert.notEqual(second, first);
  assert.deepEqual(published(), [
    [first, second],
    [first, second],
    [first, second],
  ]);
  assert.equal(told().length, 2);
  for (const { keys } of processes)
    assert.deepEqual(await signers(keys), [first], 'it is published, and does not sign yet');

  clock.now = start + 30 * dayMs;
  for (const { keys } of processes) assert.deepEqual(await signers(keys), [second, first]);
  clock.now = start + 33 * dayMs;
  for (const { keys } of processes) assert.deepEqual(await signers(keys), [second]);
  await lookAll();
  assert.deepEqual(published()[0], [first, second]);
  clock.now += graceMs;
  await lookAll();
  assert.deepEqual(published(), [[second], [second], [second]]);
  assert.deepEqual(told().at(-1)?.kind, 'signing-key-retired');

  const { keys: again } = await startProcess(embedded, clock);
  assert.deepEqual(await signers(again), [second], 'a start finds what is there');
  await again.close();
});

test('publishes the public half alone, as a key that verifies signatures (RFC 7517 §4, RFC 8037 §2)', async (context) => {
  const store = await openEmbedded(context);
  const { keys } = await startProcess(store, { now: start });
  context.after(() => keys.close());
  const [key] = keys.published();
  assert.deepEqual(Object.keys(key ?? {}).sort(), ['alg', 'crv', 'key_ops', 'kid', 'kty', 'use', 'x']);
  assert.deepEqual(
    { ...key, kid: '', x: '' },
    {
      ...{ kty: 'OKP', crv: 'Ed25519', x: '', kid: '', use: 'sig', alg: 'EdDSA', key_ops: ['verify'] },
    },
  );
  assert.equal(keys.publishedSeconds, 300);
  const row = await store.read(webhookKeysTable, 'ring');
  assert.match(String(row?.doc), /"d":"/, 'which is there, or nothing could sign');
});

test('takes a key that another process made as soon as the store tells of it', async (context) => {
  const store = await openEmbedded(context);
  const clock = { now: start };
  const { keys: one } = await startProcess(store, clock);
  const { keys: other } = await startProcess(store, clock);
  context.after(() => Promise.all([one.close(), other.close()]));
  const told = new Promise<void>((resolve) => {
    const stop = store.onChange(webhookKeysTable, () => {
      stop();
      resolve();
    });
  });
  clock.now += 27 * dayMs;
  await one.look();
  await told;
  // The other one reads in a turn of its own after it was told.
  while (other.published().length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.deepEqual(other.published(), one.published());
});
