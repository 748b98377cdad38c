/** Signatures that others published: those of the Standard Webhooks specification's libraries, of GitHub's documentation of its plain scheme, and RFC 4648's and RFC 8032's vectors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signPlain, signStandard, verifyPlain, verifyStandard } from '../../../src/webhooks/index.ts';
import { signEd25519 } from '../../../src/webhooks/signature/ed25519.ts';
import { decodeBase64, encodeBase64, encodeHex } from '../../../src/webhooks/signature/octets.ts';

const standard = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  body: '{"test": 2432232314}',
};
const at = { nowMs: standard.timestamp * 1000 };
const secret = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const v1 = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
const privateKey =
  'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
const publicKey = 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=';
const v1a = 'v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==';

test('signs and verifies the v1 vector of Standard Webhooks, with and without the prefix of the secret', async () => {
  for (const text of [secret, `whsec_${secret}`]) {
    const headers = await signStandard({ ...standard, secrets: [text] });
    assert.equal(headers['webhook-signature'], v1);
    const message = { ...standard, timestamp: '1614265330', signature: v1 };
    assert.deepEqual(await verifyStandard({ ...message, secrets: [text], ...at }), {
      ok: true,
      id: standard.id,
      timestamp: standard.timestamp,
      version: 'v1',
    });
  }
});

test('signs and verifies the v1a vector of Standard Webhooks', async () => {
  const headers = await signStandard({ ...standard, privateKeys: [privateKey] });
  assert.equal(headers['webhook-signature'], v1a);
  const message = { ...standard, timestamp: '1614265330', signature: v1a };
  const verdict = await verifyStandard({ ...message, publicKeys: [publicKey], ...at });
  assert.deepEqual(verdict, { ok: true, id: standard.id, timestamp: standard.timestamp, version: 'v1a' });
});

test('signs and verifies the vector of the plain scheme', async () => {
  const header = 'sha256=e3eccac34c43c7dc1cbb905488b1b81347fcc700a7b025697a9d07862256023f';
  const body = '{\n  "foo": "bar"\n}\n';
  assert.deepEqual(await signPlain({ body, secrets: ['mysecret'] }), [header]);
  assert.deepEqual(await verifyPlain({ body, header, secrets: ['mysecret'] }), { ok: true });
});

test('signs test 2 of RFC 8032 §7.1', async () => {
  const seed = Buffer.from('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', 'hex');
  const signature = await signEd25519(seed, Uint8Array.of(0x72));
  assert.equal(
    encodeHex(signature),
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
      '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  );
});

test('writes and reads the base64 of RFC 4648 §10', () => {
  const vectors = {
    '': '',
    f: 'Zg==',
    fo: 'Zm8=',
    foo: 'Zm9v',
    foob: 'Zm9vYg==',
    fooba: 'Zm9vYmE=',
    foobar: 'Zm9vYmFy',
  };
  for (const [text, base64] of Object.entries(vectors)) {
    assert.equal(encodeBase64(Buffer.from(text)), base64);
    assert.deepEqual(Buffer.from(decodeBase64(base64) ?? 'none'), Buffer.from(text));
  }
  for (const wrong of ['Zg', 'Zg=', 'Zh==', 'Zm9=', 'Zm 9', 'Zm9v\n', 'Zm-_', '====', 'Z===']) {
    assert.equal(decodeBase64(wrong), undefined, wrong);
  }
});
