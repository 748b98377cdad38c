/** Secrets of senders that stand in the store (§5.6, §6.7): made once, whoever starts at the same time, followed, and rotated with an overlap. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { inspectSenders } from '../../../src/config/inspect-senders.ts';
import { weaknessOf } from '../../../src/config/sender-secrets.ts';
import { Lines } from '../../../src/store/lines.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import {
  type LoadedSenderSecrets,
  loadSenderSecrets,
  rotateSenderSecret,
  type SecretName,
} from '../../../src/webhooks/receiving/sender-secrets.ts';
import { rotatedSecrets, secretsMax } from '../../../src/webhooks/secrets.ts';
import { standardKey } from '../../../src/webhooks/signature/mac-keys.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';

const senders = inspectSenders(
  {
    billing: { preset: 'timestamped' },
    lab: { preset: 'gitlab', forward: { url: 'http://10.0.0.7' } },
    given: { preset: 'plain' },
  },
  [],
);
const given = new Map([['GIVEN_WEBHOOK_SECRET', ['of-the-environment', 'the-one-before']]]);
const billing: SecretName = { sender: 'billing', use: 'receive' };
const names: readonly SecretName[] = [
  billing,
  { sender: 'lab', use: 'receive' },
  { sender: 'lab', use: 'forward' },
];
const start = Date.UTC(2030, 0, 1);
const clock = () => start;
const options = { senders, given, clock, random: randomBytes, observe: assert.ifError };

function texts({ secrets }: LoadedSenderSecrets): readonly string[] {
  return names.flatMap((name) => secrets.of(name).map(({ secret }) => secret));
}

/** Resolves when the table of the secrets is told to have changed. */
function told(store: Store): Promise<void> {
  return new Promise((resolve) => {
    const stop = store.onChange('sender_secrets', () => {
      stop();
      resolve();
    });
  });
}

for (const [engine, open] of engines) {
  test(`${engine}: of processes that start at once one makes each secret, shows it this once, and all know it`, async (context) => {
    const stores = await open(context);
    const processes = await Promise.all(stores.map((store) => loadSenderSecrets({ ...options, store })));
    context.after(() => Promise.all(processes.map(({ secrets }) => secrets.close())));
    const [one, other] = processes;
    assert.ok(one !== undefined && other !== undefined);

    const made = processes.flatMap((each) => each.made);
    assert.deepEqual(made.map(({ variable }) => variable).sort(), [
      'BILLING_WEBHOOK_SECRET',
      'LAB_FORWARD_SECRET',
      'LAB_WEBHOOK_SECRET',
    ]);
    assert.deepEqual(made.map(({ secret }) => secret).sort(), [...texts(one)].sort());
    assert.deepEqual(texts(one), texts(other));
    assert.equal(new Set(texts(one)).size, 3);
    for (const secret of texts(one)) {
      assert.equal(standardKey(secret).length, 32);
      assert.equal(weaknessOf(secret), undefined);
    }

    const again = await loadSenderSecrets({ ...options, store: stores[0] });
    await again.secrets.close();
    assert.deepEqual([again.made, texts(again)], [[], texts(one)], 'a later start finds them');

    const changed = told(stores[1]);
    const rotation = { store: stores[0], clock, random: randomBytes };
    // The other process may know of the rotation before this one returns.
    const before = other.secrets.of(billing);
    const { secret } = await rotateSenderSecret(rotation, billing, { overlapMs: 60_000 });
    await changed;
    await other.secrets.refresh();
    assert.deepEqual(other.secrets.of(billing), [
      { secret, until: null },
      { secret: before[0]?.secret, until: start + 60_000 },
    ]);
    // Before the stores, which were opened first and are closed first.
    await Promise.all(processes.map(({ secrets }) => secrets.close()));
  });
}

test('secrets of the environment are as they are given, and nothing of them is stored', async (context) => {
  const store = await openEmbedded(context);
  const { secrets, made } = await loadSenderSecrets({ ...options, store });
  const name: SecretName = { sender: 'given', use: 'receive' };
  assert.deepEqual(secrets.of(name), [
    { secret: 'of-the-environment', until: null },
    { secret: 'the-one-before', until: null },
  ]);
  assert.deepEqual([secrets.source(name), secrets.source(billing)], ['environment', 'store']);
  assert.ok(made.every(({ sender }) => sender !== 'given'));
  assert.equal(await store.read('sender_secrets', 'given'), undefined);
  assert.deepEqual(secrets.of({ sender: 'nobody', use: 'receive' }), []);
  await secrets.close();
});

test('the list of secrets is the very same one until it changes', async (context) => {
  const store = await openEmbedded(context);
  const { secrets } = await loadSenderSecrets({ ...options, store });
  const [stood, others] = [secrets.of(billing), secrets.of({ sender: 'lab', use: 'receive' })];
  await secrets.refresh();
  assert.equal(secrets.of(billing), stood);
  await rotateSenderSecret({ store, clock, random: randomBytes }, billing, { overlapMs: 0 });
  await secrets.refresh();
  assert.notEqual(secrets.of(billing), stood);
  assert.equal(secrets.of(billing).length, 1, 'without an overlap the one of before is gone');
  assert.equal(secrets.of({ sender: 'lab', use: 'receive' }), others);
  await secrets.close();
});

test('what was made is there again when a variable that outranked it is gone', async (context) => {
  const store = await openEmbedded(context);
  const first = await loadSenderSecrets({ ...options, store });
  await first.secrets.close();
  const outranked = new Map([['BILLING_WEBHOOK_SECRET', ['for-a-while']]]);
  const second = await loadSenderSecrets({ ...options, store, given: outranked });
  await second.secrets.close();
  assert.deepEqual(second.secrets.of(billing), [{ secret: 'for-a-while', until: null }]);
  assert.deepEqual(
    second.made.map(({ sender }) => sender),
    ['given'],
  );
  const third = await loadSenderSecrets({ ...options, store });
  await third.secrets.close();
  assert.deepEqual([third.made, third.secrets.of(billing)], [[], first.secrets.of(billing)]);
});

test('rotations that race leave a place for each', async (context) => {
  const store = await openEmbedded(context);
  const { secrets } = await loadSenderSecrets({ ...options, store });
  const rotation = { store, clock, random: randomBytes };
  const made = await Promise.all(
    ['a', 'b', 'c'].map((secret) => rotateSenderSecret(rotation, billing, { secret, overlapMs: 1000 })),
  );
  await secrets.refresh();
  const [current, ...before] = secrets.of(billing);
  assert.deepEqual(made.map(({ secret }) => secret).sort(), ['a', 'b', 'c']);
  assert.equal(current?.until, null);
  assert.deepEqual(
    before.map(({ until }) => until),
    [start + 1000, start + 1000, start + 1000],
  );
  // Before the store, which it follows.
  await secrets.close();
});

test('a rotation that others keep overtaking says that it can be asked for again', async () => {
  const store = {
    read: () => undefined,
    commit: async () => ({ outcome: 'superseded', change: 0, current: undefined }) as const,
    lines: new Lines({ changeWaitMs: 10 }),
  };
  const rotation = rotateSenderSecret({ store, clock, random: randomBytes }, billing, { overlapMs: 0 });
  await assert.rejects(rotation, StoreUnavailable);
});

test('a rotation makes nothing last longer, drops what is over, and keeps ten at most', () => {
  const stood = [
    { secret: 'current', until: null },
    { secret: 'soon', until: 1500 },
    { secret: 'over', until: 1000 },
  ];
  assert.deepEqual(rotatedSecrets(stood, 'new', 1000, 1000), [
    { secret: 'new', until: null },
    { secret: 'current', until: 2000 },
    { secret: 'soon', until: 1500 },
  ]);
  assert.deepEqual(rotatedSecrets(stood, 'soon', 1000, 1000), [
    { secret: 'soon', until: null },
    { secret: 'current', until: 2000 },
  ]);
  const many = Array.from({ length: secretsMax }, (_, at) => ({ secret: `${at}`, until: null }));
  const rotated = rotatedSecrets(many, 'new', 1000, 1000).map(({ secret }) => secret);
  assert.deepEqual(rotated, ['new', ...many.slice(0, -1).map(({ secret }) => secret)]);
});
