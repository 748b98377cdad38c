/**
 * Login by address and password (§5.4). One unit writes the session and the row of the password, so that a concurrent password change
 * is detected and a session never outlives the password that opened it.
 */

import { Type } from 'typebox';
import type { Allowance } from '../http/message.ts';
import { actionResource } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import type { Services } from '../store/capabilities.ts';
import { StoreUnavailable } from '../store/store.ts';
import {
  type AccountRouteOptions,
  accountsTag,
  cookieSchema,
  emailSchema,
  exampleEmail,
  examplePassword,
  passwordSchema,
  tokensOutput,
} from './account-schemas.ts';
import { passwordsTable } from './account-tables.ts';
import { type Audit, type From, originOf } from './audit-fact.ts';
import { type Attempted, commitRetried } from './commit-retried.ts';
import type { CrossSiteCheck } from './cross-site.ts';
import { fromOf } from './fact-of-ask.ts';
import type { Checked, CheckPassword } from './passwords/check-password.ts';
import type { PasswordHasher } from './passwords/hasher.ts';
import { passwordChange, readPassword } from './passwords/password-row.ts';
import type { ChallengeTokens } from './second-factor/challenge-tokens.ts';
import { readFactor } from './second-factor/factor-row.ts';
import { factorCodeSchema } from './second-factor/factor-schemas.ts';
import type { FinishLogin } from './second-factor/finish-login.ts';
import { finishedDone } from './second-factor/finish-login-route.ts';
import { type NextStep, nextStep, stepProblem } from './second-factor/next-step.ts';
import type { Opened, Sessions } from './sessions/sessions.ts';
import type { FindUser } from './users/find-user.ts';

export type LoggedIn =
  | { readonly ok: true; readonly opened: Opened }
  | {
      readonly ok: false;
      readonly problem: 'invalid_credentials' | 'rate_limited' | 'email_unverified' | 'unavailable';
      readonly allowance?: Allowance;
    }
  /** The login continues with the challenge (§5.8). */
  | { readonly ok: false; readonly problem: 'second_factor_required'; readonly step: NextStep };

export type LoginOptions = Pick<Services, 'store' | 'clock'> & {
  readonly findUser: FindUser;
  readonly checkPassword: CheckPassword;
  readonly hasher: Pick<PasswordHasher, 'hash' | 'verify' | 'isOutdated'>;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly audit: Pick<Audit, 'entry'>;
  readonly challenges: ChallengeTokens;
  readonly verifiedEmailRequired: boolean;
};

/** @throws StoreUnavailable */
export type Login = (
  email: string,
  password: string,
  how: From & { readonly cookie: boolean },
) => Promise<LoggedIn>;

export function createLogin(options: LoginOptions): Login {
  const { store, checkPassword, verifiedEmailRequired } = options;
  return async (email, password, how) => {
    const checked = await checkPassword(email, password, how);
    if (!checked.ok) {
      return checked.allowance === undefined
        ? { ok: false, problem: 'invalid_credentials' }
        : { ok: false, problem: 'rate_limited', allowance: checked.allowance };
    }
    if (verifiedEmailRequired && !checked.found.user.emailVerified) {
      return { ok: false, problem: 'email_unverified' };
    }
    const row = { table: passwordsTable, id: checked.found.user.id };
    // A login that waited for its turn must compare the password with the current row.
    const open = opening(options, checked, password, { ...how, isFresh: !store.lines.isBusy(row) });
    return commitRetried<LoggedIn>(store, row, open, () => unavailable);
  };
}

const unavailable: LoggedIn = { ok: false, problem: 'unavailable' };
const refused: Attempted<LoggedIn> = { refused: { ok: false, problem: 'invalid_credentials' } };

function opening(
  options: LoginOptions,
  checked: Extract<Checked, { ok: true }>,
  password: string,
  how: From & { readonly cookie: boolean; readonly isFresh: boolean },
): () => Promise<Attempted<LoggedIn>> {
  const { cookie } = how;
  const { store, findUser, hasher, sessions, audit, clock, challenges } = options;
  let { user } = checked.found;
  let stored = checked.password;
  let renewed: string | undefined;
  let { isFresh } = how;

  /** False if the account or its password no longer admits the login. */
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
    const next = hasher.isOutdated(stored.hash) ? (renewed ?? stored.hash) : stored.hash;
    const rewritten = passwordChange(user.id, stored, next, at);
    const factor = await readFactor(store, user.id);
    if (factor !== undefined) {
      const step = nextStep(challenges, user.id, next, factor.factor);
      const result: LoggedIn = { ok: false, problem: 'second_factor_required', step };
      return next === stored.hash ? { refused: result } : { changes: [rewritten], result };
    }
    const opened = await sessions.open(user, { cookie, at });
    const fact = audit.entry({
      type: 'login.succeeded',
      actor: user.id,
      subject: user.id,
      ...originOf(how),
      detail: { session: opened.session },
    });
    const changes = [rewritten, ...opened.changes, fact];
    return { changes, result: { ok: true, opened } };
  };
}

/** Hashes the password with the current costs; undefined if the queue is full: then the old hash stays until the next login. */
async function renew(hasher: Pick<PasswordHasher, 'hash'>, password: string): Promise<string | undefined> {
  try {
    return await hasher.hash(password);
  } catch (error) {
    if (error instanceof StoreUnavailable) return undefined;
    throw error;
  }
}

type LoginResourceOptions = AccountRouteOptions & {
  readonly login: Login;
  readonly finishLogin: FinishLogin;
  readonly isCrossSite: CrossSiteCheck;
  readonly verifiedEmailRequired: boolean;
};

const schema = Type.Object({
  email: emailSchema,
  password: passwordSchema,
  code: Type.Optional(factorCodeSchema),
  cookie: cookieSchema,
});

/**
 * POST /auth/login (§5.4, §8). Every reason why it cannot be is the same 401, apart from too many failures before. With
 * `cookie: true` it sets the session cookie besides; a page of another site may not ask for that, or it could log a browser in to an
 * account of its own.
 */
export function loginResource(options: LoginResourceOptions): Resource {
  const { base, login, finishLogin, isCrossSite, limits, addressOf, verifiedEmailRequired } = options;
  return actionResource(
    {
      path: `${base}/auth/login`,
      tag: accountsTag,
      noun: 'login',
      ignoresCredentials: true,
      id: 'login',
      summary: 'Log in',
      description:
        'The response is the same for an unknown address, a wrong password and a disabled account. Failed logins are limited by account and by address. An account with a second factor is answered 401 `second_factor_required` with a `challenge` for `/auth/login/second-factor`, unless the request has its `code`, which other accounts ignore.',
      input: { name: 'Login', schema, example: { email: exampleEmail, password: examplePassword } },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: [
        ...(verifiedEmailRequired ? (['email_unverified'] as const) : []),
        ...(['cross_site_request', 'invalid_credentials', 'rate_limited'] as const),
        ...(['second_factor_invalid', 'second_factor_required'] as const),
      ],
      handler: async (ask, { email, password, code, cookie = false }) => {
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        const how = { cookie, ...fromOf(ask.request, addressOf) };
        const first = await login(email, password, how);
        if (!first.ok && first.problem === 'second_factor_required') {
          if (code === undefined) return { refused: stepProblem(first.step) };
          const { challenge } = first.step;
          return finishedDone(await finishLogin({ challenge, code, ...how }));
        }
        return finishedDone(first);
      },
    },
    limits,
  );
}
