/** Key discovery: which keys of a JWK set are believed, and how often, how long and how much a receiver asks. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { test } from 'node:test';
import { createKeyDiscovery, KeyDiscoveryError, verifyStandard } from '../../../src/webhooks/index.ts';
import { listen } from '../../harness/listening.ts';

const [first, second] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')] as const;
const entry = (key: { readonly publicKey: KeyObject }) => ({
  ...key.publicKey.export({ format: 'jwk' }),
  use: 'sig',
  alg: 'EdDSA',
  key_ops: ['verify'],
});
const id = 'evt_1';
const body = '{}';
const start = 1_900_000_000_000;

/** A sender that publishes what `answer` says. */
const sender = {
  asked: 0,
  answer: (_response: ServerResponse): void => undefined,
};
const server = createServer((_request, response) => {
  sender.asked += 1;
  sender.answer(response);
});
const url = `${(await listen(server, test)).url}/.well-known/jwks.json`;

function publish(keys: readonly unknown[], status = 200): void {
  sender.asked = 0;
  sender.answer = (response) => void response.writeHead(status).end(JSON.stringify({ keys }));
}

function discovery(more: object = {}) {
  const clock = { now: start };
  return { clock, discovery: createKeyDiscovery({ url, nowMs: () => clock.now, ...more }) };
}

function message(key: { readonly privateKey: KeyObject }) {
  const timestamp = String(start / 1000);
  const signature = `v1a,${sign(null, Buffer.from(`${id}.${timestamp}.${body}`), key.privateKey).toString('base64')}`;
  return { id, timestamp, body, signature, nowMs: start };
}

test('believes what a published key signed, and asks once however many messages come', async () => {
  publish([entry(first), entry(second)]);
  const { discovery: keys } = discovery();
  const verdicts = await Promise.all(
    [first, second, first].map((key) => verifyStandard({ ...message(key), discovery: keys })),
  );
  assert.deepEqual(
    verdicts.map(({ ok }) => ok),
    [true, true, true],
  );
  assert.equal(sender.asked, 1);
});

test('asks again for a key that it does not know, but no more than every 30 seconds', async () => {
  publish([entry(first)]);
  const { clock, discovery: keys } = discovery();
  const verdict = (key: typeof first) => verifyStandard({ ...message(key), discovery: keys });
  assert.ok((await verdict(first)).ok);
  publish([entry(first), entry(second)]);
  clock.now += 29_999;
  for (let count = 0; count < 5; count += 1)
    assert.deepEqual(await verdict(second), { ok: false, reason: 'no-match' });
  assert.equal(sender.asked, 0);
  clock.now += 1;
  assert.ok((await verdict(second)).ok);
  assert.equal(sender.asked, 1);
});

test('asks anew for keys that are older than 300 seconds, so that one that was taken back is believed no longer', async () => {
  publish([entry(first)]);
  const { clock, discovery: keys } = discovery();
  assert.equal((await keys.keys()).length, 1);
  publish([entry(second)]);
  clock.now += 299_999;
  assert.ok((await verifyStandard({ ...message(first), discovery: keys })).ok);
  assert.equal(sender.asked, 0);
  clock.now += 1;
  assert.deepEqual(await verifyStandard({ ...message(first), discovery: keys }), {
    ok: false,
    reason: 'no-match',
  });
  assert.equal(sender.asked, 1);
});

test('goes on with the keys that it has for a day when the sender does not answer, and then says so', async () => {
  publish([entry(first)]);
  const { clock, discovery: keys } = discovery();
  await keys.keys();
  publish([], 503);
  clock.now += 86_399_999;
  assert.ok((await verifyStandard({ ...message(first), discovery: keys })).ok);
  clock.now += 1;
  await assert.rejects(verifyStandard({ ...message(first), discovery: keys }), KeyDiscoveryError);
});

test('without any key it fails instead of calling the message wrong, and does not ask at each message', async () => {
  publish([], 500);
  const { clock, discovery: keys } = discovery();
  for (let count = 0; count < 3; count += 1) {
    await assert.rejects(verifyStandard({ ...message(first), discovery: keys }), (error) => {
      assert.ok(error instanceof KeyDiscoveryError);
      assert.match(String(error.cause), /the response has the status 500/);
      return true;
    });
  }
  assert.equal(sender.asked, 1);
  publish([entry(first)]);
  clock.now += 30_000;
  assert.ok((await verifyStandard({ ...message(first), discovery: keys })).ok);
});

test('takes only Ed25519 keys that are there to verify signatures', async () => {
  const right = entry(first);
  publish([
    ...[
      null,
      7,
      {},
      { ...right, kty: 'EC' },
      { ...right, crv: 'X25519' },
      { ...right, x: 'AAAA' },
      { ...right, x: 7 },
    ],
    ...[
      { ...right, use: 'enc' },
      { ...right, alg: 'ES256' },
      { ...right, key_ops: ['sign'] },
    ],
    { kty: right.kty, crv: right.crv, x: right.x },
  ]);
  assert.equal((await discovery().discovery.keys()).length, 1);
});

const unusable: Readonly<
  Record<string, readonly [answer: (response: ServerResponse) => void, cause: RegExp]>
> = {
  'a redirect, even to itself': [
    (response) => void response.writeHead(302, { location: url }).end(),
    /the response has the status 302/,
  ],
  'an answer that is no JSON': [(response) => void response.end('<html>'), /JSON/],
  'an answer that is no JWK set': [(response) => void response.end('[]'), /not a JWK set/],
  'more keys than anyone has': [
    (response) => void response.end(JSON.stringify({ keys: Array.from({ length: 33 }, () => entry(first)) })),
    /more than 32 keys/,
  ],
  // It does not end either: were it read on, the time would run out.
  'an answer over 64 KiB': [(response) => void response.write(' '.repeat(65_537)), /more than 65536 bytes/],
  'an answer that never ends': [(response) => void response.write('{'), /timeout/i],
};

for (const [what, [answer, cause]] of Object.entries(unusable)) {
  test(`takes no keys from ${what}`, async () => {
    sender.answer = answer;
    await assert.rejects(discovery({ timeoutMs: 200 }).discovery.keys(), (error) => {
      assert.ok(error instanceof KeyDiscoveryError);
      assert.match(String(error.cause), cause);
      return true;
    });
  });
}
