/** Security facts of the audit trail. A fact never holds a secret or long text from a client. */
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
  | 'identity.linked'
  | 'key.created'
  | 'key.changed'
  | 'key.rotated'
  | 'key.revoked'
  | 'signing_key.rotated';

export type AuditFact = {
  readonly type: AuditType;
  /** Id of the principal that acted; null if unknown. */
  readonly actor: string | null;
  readonly subject: string | null;
  /** The address that rate limits count; null without a request. */
  readonly address: string | null;
  readonly detail?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
};

export type Audit = {
  /** Returns the row of a fact, to commit together with the change that it records. */
  entry(fact: AuditFact): Change;
  /** Queues a fact without a change, such as a failed login, for the background writer; bounded, and never throws. */
  note(fact: AuditFact): void;
  close(): Promise<void>;
};
