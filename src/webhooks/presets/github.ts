/**
 * GitHub: the plain scheme, with one signature. `X-Hub-Signature`, which comes beside it, is the same with SHA-1, and not looked at.
 * The id of a delivery is the same when somebody has it delivered again: to process such a one, replay it from the inbox.
 */
import { plainRule } from '../signature/plain.ts';
import type { SenderRule } from './sender-rule.ts';

export const github: SenderRule = {
  signature: { ...plainRule, separator: null },
  dedupe: [{ header: 'x-github-delivery' }],
  type: [[{ header: 'x-github-event' }, { json: '/action' }], [{ header: 'x-github-event' }]],
  keep: [
    'x-github-event',
    'x-github-delivery',
    'x-github-hook-id',
    'x-github-hook-installation-target-id',
    'x-github-hook-installation-target-type',
    'user-agent',
  ],
};
