/** A fact of security, as the audit trail keeps it. It never holds a secret, nor text that a stranger typed at length. */
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
  /** Id of the principal that did it; null: nobody known. */
  readonly actor: string | null;
  /** Id of the account, key or session that it was done to. */
  readonly subject: string | null;
  /** The address that limits count by; null where no request led to it. */
  readonly address: string | null;
  readonly detail?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
};

export type Audit = {
  /** The row of a fact, to be committed in one unit with what it tells of. */
  entry(fact: AuditFact): Change;
  /** Keeps a fact that changes nothing else, such as a failed login: soon, in the background, bounded; never throws. */
  note(fact: AuditFact): void;
  /** Writes what still waits. */
  close(): Promise<void>;
};
