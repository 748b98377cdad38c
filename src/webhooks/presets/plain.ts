/**
 * The plain scheme of §5.6. The id of a delivery is the same when it is sent again (§6.3), but it is not signed: it tells repetitions of
 * the sender, and keeps nobody who got hold of a message from sending it under another id.
 */
import { plainRule } from '../signature/plain.ts';
import type { SenderRule } from './sender-rule.ts';

export const plain: SenderRule = {
  signature: plainRule,
  dedupe: [{ header: 'x-service-delivery' }],
  type: [[{ header: 'x-service-event' }], [{ json: '/type' }]],
  keep: ['x-service-event', 'x-service-delivery', 'user-agent'],
};
