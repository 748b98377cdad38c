/**
 * What goes with a change of an account, in one unit: the entries of the audit trail, the end of its sessions when it is disabled, of
 * the codes mailed to an address that is no longer its own, and of all that it leaves behind when it is deleted.
 */
import type { AuditFact } from '../../../auth/audit-fact.ts';
import { readUser, type User } from '../../../auth/tables.ts';
import { isAdministrator } from '../../../model/principal.ts';
import type { Change } from '../../../store/store.ts';
import type { Accompaniment, Written } from '../../collection/served.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import type { Leavings } from './leavings.ts';
import type { UserResourcesOptions } from './options.ts';

type Told = Pick<AuditFact, 'type' | 'detail'>;

export function accompanyUser(
  options: Pick<UserResourcesOptions, 'audit' | 'addressOf' | 'sessions' | 'generationChanges'>,
  leavings: Leavings,
): (written: Written) => Promise<Accompaniment> {
  const { audit, addressOf, sessions, generationChanges } = options;

  async function consequences(
    ask: Written['ask'],
    id: string,
    before: User,
    after: User | undefined,
  ): Promise<readonly Change[]> {
    if (after === undefined) {
      return [...(await leavings.gather(id, revocationEntry(options, ask))), ...generationChanges()];
    }
    const told = mayBeToldOtherwise(before, after) ? generationChanges() : [];
    const ends = after.disabled && !before.disabled ? await sessions.endOfUser(id, null) : [];
    const codes = before.email === after.email ? [] : await leavings.codes(id);
    return [...ends, ...codes, ...told];
  }

  return async ({ ask, id, before, next }) => {
    if (next === null && !mayLeave(ask)) return { refused: { code: 'forbidden', message: keyOnly } };
    const stood = before === undefined ? undefined : readUser(before.doc);
    const after = next === null ? undefined : readUser(next.doc);
    const entries = factsOf(stood, after).map((told) =>
      audit.entry(factOfAsk(ask, addressOf, { ...told, subject: id })),
    );
    const changes = stood === undefined ? [] : await consequences(ask, id, stood, after);
    return { changes: [...changes, ...entries] };
  };
}

/** @returns the entry of the audit trail about a key that goes with its account */
export function revocationEntry(
  { audit, addressOf }: Pick<UserResourcesOptions, 'audit' | 'addressOf'>,
  ask: Written['ask'],
): (key: string) => Change {
  const detail = { reason: 'account.deleted' };
  return (key) => audit.entry(factOfAsk(ask, addressOf, { type: 'key.revoked', subject: key, detail }));
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

/** Whether the endpoints of the account may be told of other events than before. */
function mayBeToldOtherwise(before: User, after: User): boolean {
  const isSame = before.tenant === after.tenant && before.disabled === after.disabled;
  return !isSame || !sameGrants(before, after);
}

function grants({ roles, scopes }: User): Told['detail'] & object {
  return { roles, scopes };
}

function sameGrants(before: User, after: User): boolean {
  return JSON.stringify(grants(before)) === JSON.stringify(grants(after));
}
