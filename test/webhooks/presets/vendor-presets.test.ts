/**
 * Each vendor's preset believes a message that is signed here as the vendor documents it, and nothing that was changed since. The SDKs of
 * vendors judge the same in the full tier (full/webhooks/vendor-sdks).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { presets } from '../../../src/webhooks/presets.ts';
import { memberReader } from '../../../src/webhooks/receive/message-facts.ts';
import { publicKeyOf } from '../../../src/webhooks/signature/key-pair.ts';
import { prepareKeys, webPrimitives } from '../../../src/webhooks/signature/mac-keys.ts';
import { keyAlgorithmOf, type SignatureRule } from '../../../src/webhooks/signature/signature-rule.ts';
import { verifyingBy } from '../../../src/webhooks/signature/trusted-keys.ts';
import { verifyByRule } from '../../../src/webhooks/signature/verify-by-rule.ts';
import { type Sent, secret, url, type Vendor, type VendorName, vendorsAt } from './vendor-messages.ts';

const seconds = 1_900_000_000;
const json = '{"id":"evt_1","type":"a.b","name":"Käse"}';
const vendors = vendorsAt(seconds);

function judge(name: VendorName, { body, fields }: Sent, at = seconds) {
  const rule = { ...presets[name].signature, ...vendors[name].rule } as SignatureRule;
  const message = { body: Buffer.from(body), header: (field: string) => fields[field] };
  const { publicKey } = vendors[name];
  const algorithm = keyAlgorithmOf(rule);
  const byKeys =
    publicKey === undefined || algorithm === undefined
      ? undefined
      : verifyingBy([publicKeyOf(publicKey, algorithm)], undefined, algorithm);
  return verifyByRule(
    rule,
    { ...message, url, member: memberReader(message) },
    prepareKeys(rule, [secret], webPrimitives),
    { primitives: webPrimitives, nowMs: at * 1000, byKeys },
  );
}
const refused = (reason: string) => ({ ok: false, reason });

describe('the preset of a vendor', () => {
  for (const [name, vendor] of Object.entries(vendors) as [VendorName, Vendor][]) {
    const { body = json, isTimed = false, signsNoContent = false, issued = null } = vendor;
    const sent = vendor.send(body, secret);
    const rule = presets[name].signature;
    test(`believes what it signed, and nothing else: ${name}`, async () => {
      const verdict = await judge(name, sent);
      assert.ok(verdict.ok, JSON.stringify(verdict));
      assert.equal(verdict.timestamp, isTimed ? seconds : issued);
      assert.deepEqual(await judge(name, vendor.send(body, 'another secret')), refused('no-match'));
      for (const field of Object.keys(sent.fields)) {
        const { [field]: _, ...others } = sent.fields;
        if (field !== 'content-type')
          assert.equal((await judge(name, { ...sent, fields: others })).ok, false, field);
      }
      if (signsNoContent) return;
      assert.deepEqual(await judge(name, { ...sent, body: `${sent.body} ` }), refused('no-match'));
    });
    if (isTimed && rule.kind !== 'token') {
      test(`lets its time lie as far off as its rule says, and not one second more: ${name}`, async () => {
        const { toleranceSeconds } = rule;
        assert.ok((await judge(name, sent, seconds + toleranceSeconds)).ok);
        assert.ok((await judge(name, sent, seconds - toleranceSeconds)).ok);
        assert.deepEqual(await judge(name, sent, seconds + toleranceSeconds + 1), refused('stale'));
        assert.deepEqual(await judge(name, sent, seconds - toleranceSeconds - 1), refused('ahead'));
      });
    }
  }
});
