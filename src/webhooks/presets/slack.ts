/**
 * Slack: `v0=` and the HMAC of `v0:<timestamp>:<body>`. Events are JSON, with an id that is the same when Slack tries again; slash commands
 * and interactions are forms, of which commands have a `trigger_id` of their own. A URL is asked once, by a signed message, for its challenge.
 */
import type { SenderRule } from './sender-rule.ts';

export const slack: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-slack-signature',
    hash: 'sha256',
    encoding: 'hex',
    prefix: 'v0=',
    separator: null,
    signed: 'v0:{timestamp}:{body}',
    timestamp: { header: 'x-slack-request-timestamp' },
    key: 'text',
    toleranceSeconds: 300,
  },
  dedupe: [{ json: '/event_id' }, { form: 'trigger_id' }],
  type: [[{ json: '/event/type' }], [{ json: '/type' }], [{ form: 'command' }]],
  challenge: { json: '/type', is: 'url_verification', answer: 'challenge', echo: '/challenge' },
  keep: ['x-slack-request-timestamp', 'x-slack-retry-num', 'x-slack-retry-reason', 'user-agent'],
};
