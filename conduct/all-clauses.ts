/** The clauses of the suite, in the order of a report. */
import type { Clause } from './clause.ts';
import { authenticationClauses } from './clauses/authentication.ts';
import { cachingClauses } from './clauses/caching.ts';
import { conditionClauses } from './clauses/conditions.ts';
import { crossOriginClauses } from './clauses/cross-origin.ts';
import { framingClauses } from './clauses/framing.ts';
import { http2Clauses } from './clauses/http2.ts';
import { http2FrameClauses } from './clauses/http2-frames.ts';
import { idempotencyClauses } from './clauses/idempotency.ts';
import { interimClauses } from './clauses/interim.ts';
import { lastClause, methodClauses } from './clauses/methods.ts';
import { negotiationClauses } from './clauses/negotiation.ts';
import { patchClauses } from './clauses/patch.ts';
import { problemClauses } from './clauses/problems.ts';
import { queryClauses } from './clauses/query.ts';
import { rangeClauses } from './clauses/ranges.ts';
import { strictnessClauses } from './clauses/strictness.ts';
import { tunnelClauses } from './clauses/tunnel.ts';
import { upgradeClauses } from './clauses/upgrade.ts';
import { receiverClauses } from './webhooks/receiver.ts';
import { senderClauses } from './webhooks/sender.ts';

export const apiClauses: readonly Clause[] = [
  ...[...methodClauses, ...negotiationClauses, ...conditionClauses, ...patchClauses, ...queryClauses],
  ...[...rangeClauses, ...cachingClauses, ...problemClauses, ...authenticationClauses, ...crossOriginClauses],
  ...[...idempotencyClauses, ...interimClauses, ...upgradeClauses, ...framingClauses, ...strictnessClauses],
  ...[...http2Clauses, ...http2FrameClauses, ...tunnelClauses, lastClause],
];

/** A clause as people read of it. */
export type DescribedClause = Pick<Clause, 'id' | 'title' | 'section' | 'level' | 'writes'> & {
  readonly group: string;
};

/** Every clause: those of APIs, of receivers and of senders. */
export function describeClauses(): readonly DescribedClause[] {
  // The scheme and the secret matter where a receiver is judged.
  const ofReceivers = receiverClauses({ scheme: 'standard', secret: '' });
  return [...apiClauses, ...ofReceivers, ...senderClauses.map((clause) => ({ ...clause, group: 'sender' }))];
}
