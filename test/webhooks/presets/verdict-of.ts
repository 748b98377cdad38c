/** The verdict on a message by a rule: of both cryptographies, which must agree. */
import assert from 'node:assert/strict';
import { nodeMac } from '../../../src/webhooks/receiving/node-mac.ts';
import { prepareKeys, webPrimitives } from '../../../src/webhooks/signature/mac-keys.ts';
import type { RuleVerdict, SignatureRule } from '../../../src/webhooks/signature/signature-rule.ts';
import { verifyByRule } from '../../../src/webhooks/signature/verify-by-rule.ts';
import { nowSeconds, type Sent } from './signed-message.ts';

export type Judging = { readonly nowSeconds?: number; readonly toleranceSeconds?: number };

export async function verdictOf(
  rule: SignatureRule,
  { body, headers, url }: Sent,
  secrets: readonly string[],
  { nowSeconds: now = nowSeconds, toleranceSeconds }: Judging = {},
): Promise<RuleVerdict> {
  const message = { body, header: (name: string) => headers[name], url };
  const options = { nowMs: now * 1000, toleranceSeconds };
  const atOnce = verifyByRule(rule, message, prepareKeys(rule, secrets, nodeMac), {
    ...options,
    primitives: nodeMac,
  });
  assert.ok(
    !(atOnce instanceof Promise),
    'with cryptography that answers at once, the verdict is there at once',
  );
  const later = await verifyByRule(rule, message, prepareKeys(rule, secrets, webPrimitives), {
    ...options,
    primitives: webPrimitives,
  });
  assert.deepEqual(later, atOnce);
  return atOnce;
}
