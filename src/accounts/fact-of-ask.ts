/** A fact of security as a request led to it: who asked, and from where. */

import type { Request } from '../http/message.ts';
import type { Ask } from '../kernel/resource.ts';
import type { AuditFact } from './audit-fact.ts';

export type AddressOf = (request: Pick<Request, 'fields' | 'peer'>) => string;

export function factOfAsk(
  ask: Ask,
  addressOf: AddressOf,
  what: Pick<AuditFact, 'type' | 'subject' | 'detail'>,
): AuditFact {
  const { principal, request } = ask;
  return {
    actor: principal.kind === 'authenticated' ? principal.id : null,
    address: addressOf(request),
    ...what,
  };
}
