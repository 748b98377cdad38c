/** Security facts of the audit trail, and where a request came from. A fact never holds a secret or long text from a client. */
import type { Request } from '../http/message.ts';
import { type Ask, actorOfAsk } from '../kernel/resource.ts';
import type { ActorKind } from '../model/actor.ts';
import type { Change } from '../store/store.ts';

export type AuditType =
  | 'account.registered'
  | 'account.changed'
  | 'account.disabled'
  | 'account.enabled'
  | 'account.roles_changed'
  | 'account.deleted'
  | 'login.succeeded'
  | 'login.failed'
  | 'login.limited'
  | 'session.ended'
  | 'session.reused'
  | 'password.changed'
  | 'password.reset_requested'
  | 'password.reset'
  | 'email.verified'
  | 'second_factor.added'
  | 'second_factor.changed'
  | 'second_factor.removed'
  | 'second_factor.reset'
  | 'recovery_codes.created'
  | 'identity.linked'
  | 'key.created'
  | 'key.changed'
  | 'key.rotated'
  | 'key.revoked'
  | 'portal_link.created'
  | 'portal_link.revoked'
  | 'portal_session.opened'
  | 'signing_key.rotated'
  | 'events.expunged'
  | 'backup.created'
  | 'backup.deleted';

export type AuditFact = {
  readonly type: AuditType;
  /** Id of the principal that acted; null if there is none: a caller that proved nothing, or Comity itself. */
  readonly actor: string | null;
  /** Absent: an account, of itself; without an id, an anonymous caller, or Comity itself where there is no address. */
  readonly kind?: ActorKind;
  /** The API key that was used. */
  readonly keyId?: string;
  /** Id of the request, as in the log; absent: none led to it. */
  readonly requestId?: string;
  readonly subject: string | null;
  /** The address that rate limits count; null without a request. */
  readonly address: string | null;
  readonly detail?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
};

/** Where a request came from. */
export type From = {
  /** The address that rate limits count. */
  readonly address: string;
  /** Absent: the request has no id. */
  readonly requestId?: string | undefined;
};

/** The members of a fact that tell where the request came from. */
export function originOf({ address, requestId }: From): Pick<AuditFact, 'address' | 'requestId'> {
  return { address, ...(requestId === undefined ? {} : { requestId }) };
}

export type Audit = {
  /** Returns the row of a fact, to commit together with the change that it records. */
  entry(fact: AuditFact): Change;
  /** Queues a fact without a change, such as a failed login, for the background writer; bounded, and never throws. */
  note(fact: AuditFact): void;
  close(): Promise<void>;
};

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
