/**
 * Registration: account, password, first session, code of the verification mail and audit entry in one unit, so that an account is whole
 * or not there. That an address is taken is told (surface), here alone.
 *
 * Where addresses must be verified before a login, the account comes without a session, and so without tokens.
 */
import type { Change, Store } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import { normalizeEmail } from '../email.ts';
import type { PasswordHasher } from '../passwords/hasher.ts';
import { newPasswordFault, type PasswordBounds } from '../passwords/new-password.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import { readUser, type User, type UserFields, userDefaults, usersTable } from '../tables.ts';
import type { AccountMail } from './account-mail.ts';
import { commitRetried } from './commit-retried.ts';
import type { FindUser } from './find-user.ts';
import { passwordChange } from './password-row.ts';
import { userRow } from './user-row.ts';

export type Registration = { readonly email: string; readonly password: string; readonly name?: string };

export type Registered =
  /** `opened` is null where the address must be verified first. */
  | { readonly ok: true; readonly user: User; readonly opened: Opened | null }
  | { readonly ok: false; readonly problem: 'unique_taken' | 'unavailable' }
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly faults: readonly Fault[] };

export type Fault = { readonly pointer: string; readonly message: string };

export type RegisterOptions = PasswordBounds & {
  readonly store: Store;
  readonly findUser: FindUser;
  readonly hasher: Pick<PasswordHasher, 'hash'>;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly audit: Pick<Audit, 'entry'>;
  readonly mail: AccountMail;
  readonly newId: () => string;
  readonly clock: () => number;
  readonly verifiedEmailRequired: boolean;
};

/** @throws StoreUnavailable */
export type Register = (
  registration: Registration,
  how: { readonly cookie: boolean; readonly address: string },
) => Promise<Registered>;

export function createRegister(options: RegisterOptions): Register {
  const { store, findUser, hasher, mail } = options;
  return async (registration, how) => {
    const email = normalizeEmail(registration.email);
    const passwordFault = newPasswordFault(registration.password, options);
    if (email === undefined || passwordFault !== undefined) {
      return { ok: false, problem: 'validation_failed', faults: faultsOf(email, passwordFault) };
    }
    // The unit would find out as well; a hash is not spent on what it refuses.
    if ((await findUser.byEmail(email)) !== undefined) return taken;
    const hash = await hasher.hash(registration.password);
    const fields: UserFields = {
      email,
      ...(registration.name === undefined ? {} : { name: registration.name }),
      ...userDefaults,
    };
    const id = `usr_${options.newId()}`;
    const code = mail.mint({ id, email }, 'verification');
    const attempt = async () => {
      const made = await makeAccount(options, { id, fields, hash }, how);
      const changes = code === undefined ? made.changes : [...made.changes, code.change];
      return { changes, result: made.result };
    };
    const registered = await commitRetried<Registered>(store, undefined, attempt, () => taken);
    if (registered.ok && code !== undefined) mail.sendCode('verification', { id, email }, code.code);
    return registered;
  };
}

const taken: Registered = { ok: false, problem: 'unique_taken' };

async function makeAccount(
  options: RegisterOptions,
  account: { readonly id: string; readonly fields: UserFields; readonly hash: string },
  { cookie, address }: { readonly cookie: boolean; readonly address: string },
): Promise<{ readonly changes: readonly Change[]; readonly result: Registered }> {
  const { sessions, audit, clock, verifiedEmailRequired } = options;
  const { id, fields, hash } = account;
  const at = clock();
  const row = userRow(id, fields, at, at);
  const user = readUser(row.doc);
  const opened = verifiedEmailRequired ? null : await sessions.open(user, { cookie, at });
  const detail = opened === null ? {} : { session: opened.session };
  const changes: readonly Change[] = [
    { table: usersTable, id, expect: { absent: true }, next: row },
    passwordChange(id, undefined, hash, at),
    ...(opened?.changes ?? []),
    audit.entry({ type: 'account.registered', actor: id, subject: id, address, detail }),
  ];
  return { changes, result: { ok: true, user, opened } };
}

function faultsOf(email: string | undefined, passwordFault: string | undefined): readonly Fault[] {
  const faults: Fault[] = [];
  if (email === undefined) faults.push({ pointer: '/email', message: 'must be an e-mail address' });
  if (passwordFault !== undefined) faults.push({ pointer: '/password', message: passwordFault });
  return faults;
}
