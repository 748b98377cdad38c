/**
 * What goes with a change of an account, in one unit: the entries of the audit trail, the end of its sessions when it is disabled, of
 * the codes mailed to an address that is no longer its own, and of all that it leaves behind when it is deleted.
 */
import type { AuditFact } from '../../../auth/audit-fact.ts';
import type { User } from '../../../auth/tables.ts';
import { isAdministrator } from '../../../model/principal.ts';
import type { Change } from '../../../store/store.ts';
import type { Accompaniment, Written } from '../../collection/served.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import type { Leavings } from './leavings.ts';
import type { UserResourcesOptions } from './options.ts';

type Told = Pick<AuditFact, 'type' | 'detail'>;

export function accompanyUser(
  options: Pick<UserResourcesOptions, 'audit' | 'addressOf' | 'sessions'>,
  leavings: Leavings,
): (written: Written) => Promise<Accompaniment> {
  const { audit, addressOf, sessions } = options;

  async function consequences(id: string, before: User, after: User | undefined): Promise<readonly Change[]> {
    if (after === undefined) return leavings.gather(id);
    const ends = after.disabled && !before.disabled ? await sessions.endOfUser(id, null) : [];
    return before.email === after.email ? ends : [...ends, ...(await leavings.codes(id))];
  }

  return async ({ ask, id, before, next }) => {
    if (next === null && !mayLeave(ask)) return { refused: { code: 'forbidden', message: keyOnly } };
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as User);
    const after = next === null ? undefined : (JSON.parse(next.doc) as User);
    const entries = factsOf(stood, after).map((told) =>
      audit.entry(factOfAsk(ask, addressOf, { ...told, subject: id })),
    );
    const changes = stood === undefined ? [] : await consequences(id, stood, after);
    return { changes: [...changes, ...entries] };
  };
}

const keyOnly = 'log in to delete your account; a key cannot';

/** A key is for programs: one that leaks must not take its owner's account with it. */
function mayLeave({ principal, known }: Written['ask']): boolean {
  return isAdministrator(principal) || (known !== undefined && known.scheme !== 'key');
}

/** One fact for each kind of change; the rest of the members are only named, never shown. */
function factsOf(before: User | undefined, after: User | undefined): readonly Told[] {
  if (after === undefined) return [{ type: 'account.deleted' }];
  if (before === undefined) return [{ type: 'account.registered', detail: grants(after) }];
  const facts: Told[] = [];
  if (before.disabled !== after.disabled) {
    facts.push({ type: after.disabled ? 'account.disabled' : 'account.enabled' });
  }
  if (!sameGrants(before, after)) facts.push({ type: 'account.roles_changed', detail: grants(after) });
  const members = (['email', 'name', 'emailVerified', 'tenant'] as const).filter(
    (member) => before[member] !== after[member],
  );
  if (members.length > 0) facts.push({ type: 'account.changed', detail: { members } });
  return facts;
}

function grants({ roles, scopes }: User): Told['detail'] & object {
  return { roles, scopes };
}

function sameGrants(before: User, after: User): boolean {
  return JSON.stringify(grants(before)) === JSON.stringify(grants(after));
}
