/** Senders whose messages are signed by Ed25519 (§5.6, `v1a`): by keys that are named, and by keys that they publish. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import type { FetchKeys } from '../../../src/webhooks/signature/trusted-keys.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { declared, standardFields, type WalkedSenders, walkSenders } from './walked-senders.ts';

const store = await openEmbedded();
const body = '{"type":"a"}';

function keyPair(): { privateKey: KeyObject; octets: Buffer } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return { privateKey, octets: Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url') };
}

function post(room: WalkedSenders, id: string, key: KeyObject): Promise<{ status: number }> {
  const seconds = Math.floor(room.clock() / 1000);
  const signature = sign(null, Buffer.from(`${id}.${seconds}.${body}`), key).toString('base64');
  const fields = ['webhook-id', id, 'webhook-timestamp', String(seconds)];
  return room.post('partner', { body, fields: [...fields, 'webhook-signature', `v1a,${signature}`] });
}

describe('a sender with public keys', () => {
  const named = keyPair();
  const other = keyPair();
  const publicKeys = [`whpk_${named.octets.toString('base64')}`];

  test('is believed by a key that the configuration names, and still by its secrets', async () => {
    const room = walkSenders(store, { senders: [declared('partner', 'standard', { publicKeys })] });
    assert.equal((await post(room, 'ed_1', named.privateKey)).status, 204);
    assert.equal((await post(room, 'ed_2', other.privateKey)).status, 400);
    const fields = standardFields(body, 'ed_3', room.clock());
    assert.equal((await room.post('partner', { body, fields })).status, 204);
    room.setSecrets('partner', []);
    assert.equal((await post(room, 'ed_4', named.privateKey)).status, 204);
    assert.deepEqual(
      (await room.received('partner')).map(({ dedupeKey }) => dedupeKey),
      ['ed_1', 'ed_3', 'ed_4'],
    );
  });

  test('is not believed by such a signature where it has no keys', async () => {
    const room = walkSenders(store);
    assert.equal((await post(room, 'ed_5', named.privateKey)).status, 400);
  });

  test('is believed by a key that it publishes, also by one that is newer than our copy', async () => {
    let published = [named];
    let asked = 0;
    const fetchKeys: FetchKeys = async (url) => {
      assert.equal(url, 'https://partner.example/jwks.json');
      asked += 1;
      const keys = published.map(({ octets }) => ({
        ...{ kty: 'OKP', crv: 'Ed25519', x: octets.toString('base64url') },
      }));
      return Response.json({ keys });
    };
    const room = walkSenders(store, {
      fetchKeys,
      senders: [declared('partner', 'standard', { keysUrl: new URL('https://partner.example/jwks.json') })],
    });
    assert.equal((await post(room, 'pub_1', named.privateKey)).status, 204);
    assert.equal((await post(room, 'pub_2', named.privateKey)).status, 204);
    assert.equal(asked, 1);
    published = [other];
    room.moveClock(31);
    assert.equal((await post(room, 'pub_3', other.privateKey)).status, 204);
    assert.equal(asked, 2);
    assert.equal((await post(room, 'pub_4', named.privateKey)).status, 400);
  });

  test('is put off with 503 while its keys cannot be had, so that it tries again', async () => {
    let broken = true;
    const fetchKeys: FetchKeys = async () => {
      if (broken) throw new Error('the name did not resolve');
      return Response.json({
        keys: [{ kty: 'OKP', crv: 'Ed25519', x: named.octets.toString('base64url') }],
      });
    };
    const room = walkSenders(store, {
      fetchKeys,
      senders: [declared('partner', 'standard', { keysUrl: new URL('https://partner.example/jwks.json') })],
    });
    const answered = await room.post('partner', {
      body,
      fields: standardFields(body, 'off_0', room.clock()),
    });
    assert.equal(answered.status, 204, 'a secret needs no keys');
    assert.equal((await post(room, 'off_1', named.privateKey)).status, 503);
    assert.deepEqual(
      room.observed.map((fact) => [fact.kind, 'reason' in fact ? fact.reason : undefined]),
      [
        ['webhook-received', undefined],
        ['webhook-received', 'keys-unavailable'],
        ['receiving-failed', undefined],
      ],
    );
    broken = false;
    room.moveClock(31);
    assert.equal((await post(room, 'off_1', named.privateKey)).status, 204);
  });
});
