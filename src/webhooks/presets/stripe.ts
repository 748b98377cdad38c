/** Stripe: the timestamped scheme in `Stripe-Signature`. The whole `whsec_...` is the key. Thin events have `id` and `type` as well. */
import { timestampedRule } from '../signature/timestamped.ts';
import type { SenderRule } from './sender-rule.ts';

export const stripe: SenderRule = {
  signature: { ...timestampedRule, header: 'stripe-signature' },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};
