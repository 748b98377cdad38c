/**
 * GitLab with a secret token, which it sends as it is: it proves who sent a message, and nothing of what is in it. Where a signing token can
 * be set, GitLab signs by Standard Webhooks besides: declare it as `standard`, with `X-Gitlab-Event` as its type.
 *
 * `Idempotency-Key` is the same when GitLab tries again. `X-Gitlab-Event-UUID` is not looked at for that: events that a webhook caused have
 * the one of their cause, and would be taken for repetitions of it. Before GitLab 17.4 there is neither, and the body tells.
 */
import type { SenderRule } from './sender-rule.ts';

export const gitlab: SenderRule = {
  signature: { kind: 'token', header: 'x-gitlab-token' },
  dedupe: [{ header: 'idempotency-key' }],
  type: [[{ header: 'x-gitlab-event' }], [{ json: '/object_kind' }]],
  keep: [
    'x-gitlab-event',
    'x-gitlab-event-uuid',
    'x-gitlab-webhook-uuid',
    'x-gitlab-instance',
    'idempotency-key',
    'user-agent',
  ],
};
