/** Metrics of logins, mail and the audit trail (§5). Each label has its few values from the start, so that rates show the first. */
import { Counter, type Registry } from 'prom-client';
import type { AccountObservation } from './observation.ts';

/** @param faults the counter of what somebody should look at, by kind */
export function countAccounts(
  registry: Registry,
  faults: Counter<'kind'>,
): (observation: AccountObservation) => void {
  const registers = [registry];
  const logins = new Counter({
    name: 'comity_logins_total',
    help: 'Passwords judged and sign-ins by a provider, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const mails = new Counter({
    name: 'comity_mails_total',
    help: 'Mails that were sent or given up, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const dropped = new Counter({
    name: 'comity_audit_dropped_total',
    help: 'Facts that are missing in the audit trail.',
    registers,
  });
  for (const outcome of ['succeeded', 'failed', 'limited']) logins.inc({ outcome }, 0);
  for (const outcome of ['sent', 'given-up']) mails.inc({ outcome }, 0);
  return (observation) => {
    switch (observation.kind) {
      case 'login-judged':
        logins.inc({ outcome: observation.outcome });
        return;
      case 'mail-sent':
        mails.inc({ outcome: 'sent' });
        return;
      case 'mail-given-up':
        mails.inc({ outcome: 'given-up' });
        return;
      case 'audit-dropped':
        dropped.inc(observation.facts);
        return;
      case 'session-reused':
      case 'hashing-refused':
      case 'mail-delayed':
      case 'issuer-failed':
      case 'provider-failed':
        faults.inc({ kind: observation.kind });
        return;
      case 'signing-key-made':
      case 'secret-key-made':
      case 'secrets-encrypted':
      case 'signing-key-retired':
        return;
    }
  };
}
