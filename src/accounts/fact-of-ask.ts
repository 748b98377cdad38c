/** A fact of security as a request led to it: who asked, and from where. */

import type { Request } from '../http/message.ts';
import { type Ask, actorOfAsk } from '../kernel/resource.ts';
import type { Change } from '../store/store.ts';
import { type AuditFact, type From, originOf } from './audit-fact.ts';

export type AddressOf = (request: Pick<Request, 'fields' | 'peer'>) => string;

/** The audit entry of an expunction. @param of whose events they are: the resource's or the owner's */
export type AuditExpunction = (ask: Ask, subject: string, of: 'object' | 'owner') => Change;

export function fromOf(request: Request, addressOf: (request: Request) => string): From {
  const { id } = request;
  return { address: addressOf(request), ...(id === '' ? {} : { requestId: id }) };
}

export function factOfAsk(
  ask: Ask,
  addressOf: AddressOf,
  what: Pick<AuditFact, 'type' | 'subject' | 'detail'>,
): AuditFact {
  const { kind, id, keyId } = actorOfAsk(ask);
  const { request } = ask;
  return {
    ...{ actor: id, kind },
    ...(keyId === undefined ? {} : { keyId }),
    ...originOf(fromOf(request, addressOf)),
    ...what,
  };
}
