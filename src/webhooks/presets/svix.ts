/**
 * Svix, and whoever sends by it without a name of their own: Standard Webhooks in fields that begin with `svix-`. Its newer customers send
 * `webhook-id` and so on: those are `standard`.
 */
import { standardRule } from '../signature/standard.ts';
import type { SenderRule } from './sender-rule.ts';

export const svix: SenderRule = {
  signature: {
    ...standardRule,
    header: 'svix-signature',
    timestamp: { header: 'svix-timestamp' },
    id: 'svix-id',
  },
  dedupe: [{ header: 'svix-id' }],
  type: [[{ json: '/type' }]],
  keep: ['svix-id', 'svix-timestamp', 'user-agent'],
};
