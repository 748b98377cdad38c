/** Standard Webhooks 1.0 (§5.6), which dozens of services send by, GitLab among them where a signing token is set. */
import { standardRule } from '../signature/standard.ts';
import type { SenderRule } from './sender-rule.ts';

export const standard: SenderRule = {
  signature: standardRule,
  dedupe: [{ header: 'webhook-id' }],
  type: [[{ json: '/type' }]],
  keep: ['webhook-id', 'webhook-timestamp', 'user-agent'],
};
