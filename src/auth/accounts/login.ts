/**
 * Login by address and password (§5.4). The session and the row of the password are written in one unit: a password that was changed in
 * the meantime is seen, and a session never outlives the password that it was opened with.
 */
import type { Allowance } from '../../http/allowance.ts';
import { type Store, StoreUnavailable } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import type { PasswordHasher } from '../passwords/hasher.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import { passwordsTable } from '../tables.ts';
import type { Checked, CheckPassword } from './check-password.ts';
import { type Attempted, commitRetried } from './commit-retried.ts';
import type { FindUser } from './find-user.ts';
import { passwordChange, readPassword } from './password-row.ts';

export type LoggedIn =
  | { readonly ok: true; readonly opened: Opened }
  | {
      readonly ok: false;
      readonly problem: 'invalid_credentials' | 'rate_limited' | 'email_unverified' | 'unavailable';
      readonly allowance?: Allowance;
    };

export type LoginOptions = {
  readonly store: Store;
  readonly findUser: FindUser;
  readonly checkPassword: CheckPassword;
  readonly hasher: Pick<PasswordHasher, 'hash' | 'verify' | 'isOutdated'>;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly audit: Pick<Audit, 'entry'>;
  readonly clock: () => number;
  readonly verifiedEmailRequired: boolean;
};

/**
 * @param how.address as limits count it
 * @throws StoreUnavailable
 */
export type Login = (
  email: string,
  password: string,
  how: { readonly cookie: boolean; readonly address: string },
) => Promise<LoggedIn>;

export function createLogin(options: LoginOptions): Login {
  const { store, checkPassword, verifiedEmailRequired } = options;
  return async (email, password, how) => {
    const checked = await checkPassword(email, password, how.address);
    if (!checked.ok) {
      return checked.allowance === undefined
        ? { ok: false, problem: 'invalid_credentials' }
        : { ok: false, problem: 'rate_limited', allowance: checked.allowance };
    }
    if (verifiedEmailRequired && !checked.found.user.emailVerified) {
      return { ok: false, problem: 'email_unverified' };
    }
    const row = { table: passwordsTable, id: checked.found.user.id };
    // A login that waits for its turn finds another row than the one that was compared.
    const open = opening(options, checked, password, { ...how, isFresh: !store.lines.isBusy(row) });
    return commitRetried<LoggedIn>(store, row, open, () => unavailable);
  };
}

const unavailable: LoggedIn = { ok: false, problem: 'unavailable' };
const refused: Attempted<LoggedIn> = { refused: { ok: false, problem: 'invalid_credentials' } };

/** The unit of the login, computed from what was compared at first and from what stands after a lost race. */
function opening(
  options: LoginOptions,
  checked: Extract<Checked, { ok: true }>,
  password: string,
  how: { readonly cookie: boolean; readonly address: string; readonly isFresh: boolean },
): () => Promise<Attempted<LoggedIn>> {
  const { cookie, address } = how;
  const { store, findUser, hasher, sessions, audit, clock } = options;
  let { user } = checked.found;
  let stored = checked.password;
  let renewed: string | undefined;
  let { isFresh } = how;

  /** False: the account or its password is no longer what the attempt was good for. */
  async function readAgain(): Promise<boolean> {
    const [found, again] = [await findUser.byId(user.id), await readPassword(store, user.id)];
    if (found === undefined || found.user.disabled || again === undefined || again.hash === null)
      return false;
    // Another login may have renewed the hash of the same password.
    if (again.hash !== stored.hash && !(await hasher.verify(password, again.hash))) return false;
    user = found.user;
    stored = { ...again, hash: again.hash };
    return true;
  }

  return async () => {
    if (!isFresh && !(await readAgain())) return refused;
    isFresh = false;
    if (renewed === undefined && hasher.isOutdated(stored.hash)) renewed = await renew(hasher, password);
    const at = clock();
    const opened = await sessions.open(user, { cookie, at });
    const next = hasher.isOutdated(stored.hash) ? (renewed ?? stored.hash) : stored.hash;
    const fact = audit.entry({
      type: 'login.succeeded',
      actor: user.id,
      subject: user.id,
      address,
      detail: { session: opened.session },
    });
    const changes = [passwordChange(user.id, stored, next, at), ...opened.changes, fact];
    return { changes, result: { ok: true, opened } };
  };
}

/** A hash of the costs of now; when there is no room for one, the old one is good until the next login. */
async function renew(hasher: Pick<PasswordHasher, 'hash'>, password: string): Promise<string | undefined> {
  try {
    return await hasher.hash(password);
  } catch (error) {
    if (error instanceof StoreUnavailable) return undefined;
    throw error;
  }
}
