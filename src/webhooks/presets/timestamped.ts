/** The timestamped scheme of §5.6, as a program such as Comity sends it. Stripe's is the same under another name. */
import { timestampedRule } from '../signature/timestamped.ts';
import type { SenderRule } from './sender-rule.ts';

export const timestamped: SenderRule = {
  signature: timestampedRule,
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};
