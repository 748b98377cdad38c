/** The answers that are no 204, as the server gives them (§2.2, §4.14). */
import type { RefusalReason } from '../signature/refusal.ts';
import type { ChallengeAnswer } from './message-facts.ts';

/** The sender asked whether somebody listens. It is told, and nothing is stored. */
export type Challenged = {
  readonly outcome: 'challenge';
  readonly status: 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type RefusedMessage = {
  readonly outcome: 'refused';
  readonly status: 400 | 413;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly reason: RefusalReason | 'too-large';
  /** What is likely wrong with the receiver, for its log; undefined: nothing that could be seen. */
  readonly hint: string | undefined;
};

const json = { 'content-type': 'application/json' } as const;

export function challengeAnswer({ name, value }: ChallengeAnswer): Challenged {
  return { outcome: 'challenge', status: 200, headers: json, body: JSON.stringify({ [name]: value }) };
}

export function refusedAnswer(reason: RefusedMessage['reason'], hint: string | undefined): RefusedMessage {
  const isLarge = reason === 'too-large';
  return {
    outcome: 'refused',
    status: isLarge ? 413 : 400,
    headers: json,
    body: JSON.stringify(isLarge ? largeBody : { ...refusalOf(reason), reason }),
    reason,
    hint,
  };
}

const largeBody = { error: 'request content is too large', code: 'content_too_large' };

function refusalOf(reason: RefusalReason): { readonly error: string; readonly code: string } {
  return reason === 'stale' || reason === 'ahead'
    ? { error: 'the signed time is too far from now', code: 'signature_stale' }
    : { error: 'invalid signature', code: 'signature_invalid' };
}
