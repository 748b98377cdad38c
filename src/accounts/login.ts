/**
 * Login by address and password (§5.4), and its second step for an account with a second factor (§5.8). One unit writes the session and
 * the row of the password, so that a concurrent password change is detected and a session never outlives the password that opened it.
 *
 * An account with a second factor gets a challenge in place of a session. The second step takes the challenge with a code: one unit uses
 * both and opens the session, so that of many requests with one code, or one challenge, exactly one gets a session. Failed attempts of
 * both steps are limited (attempt-limit.ts).
 */
import { Type } from 'typebox';
import type { Allowance } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { actionResource, type Done } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import { StoreUnavailable } from '../store/store.ts';
import { type AccountParts, type Attempted, commitRetried } from './account-parts.ts';
import {
  accountsTag,
  cookieSchema,
  emailSchema,
  exampleChallenge,
  exampleEmail,
  exampleFactorCode,
  examplePassword,
  passwordSchema,
  type Refusal,
  refusedBy,
  tokensOutput,
} from './account-schemas.ts';
import { digestOf, passwordChange, passwordsTable, readPassword } from './account-tables.ts';
import { type From, fromOf, originOf } from './audit.ts';
import type { Checked } from './passwords/check-password.ts';
import type { PasswordHasher } from './passwords/hasher.ts';
import type { ChallengeTokens, OpenedChallenge } from './second-factor/challenge-tokens.ts';
import {
  attemptOfFactor,
  factorCodeSchema,
  limitedAttempt,
  limitedFact,
  type Wrong,
  wrongFactor,
} from './second-factor/change-factor.ts';
import { useCode } from './second-factor/factor-codes.ts';
import { factorChange, readFactor, type SecondFactor } from './second-factor/factor-row.ts';
import type { Opened } from './sessions/sessions.ts';

const loginSchema = Type.Object({
  email: emailSchema,
  password: passwordSchema,
  code: Type.Optional(factorCodeSchema),
  cookie: cookieSchema,
});

const secondStepSchema = Type.Object({
  challenge: Type.String({ description: 'From the 401 of the login.' }),
  code: factorCodeSchema,
  cookie: cookieSchema,
});

/**
 * POST /auth/login (§5.4, §8) and POST /auth/login/second-factor (§5.8). Every reason to refuse a login is the same 401, apart from too
 * many failed attempts. With `cookie: true` the response also sets the session cookie; a page of another site may not ask for that,
 * because it could log a browser in to an account of its own.
 */
export function loginResources(parts: AccountParts): readonly Resource[] {
  const finishLogin = createFinishLogin(parts);
  return [firstStepResource(parts, finishLogin), secondStepResource(parts, finishLogin)];
}

function firstStepResource(parts: AccountParts, finishLogin: FinishLogin): Resource {
  const { base, isCrossSite, settings, addressOf } = parts;
  const login = createLogin(parts);
  return actionResource(
    {
      path: `${base}/auth/login`,
      tag: accountsTag,
      ignoresCredentials: true,
      id: 'login',
      summary: 'Log in',
      description:
        'The response is the same for an unknown address, a wrong password and a disabled account. Failed logins are limited by account and by address. An account with a second factor is answered 401 `second_factor_required` with a `challenge` for `/auth/login/second-factor`, unless the request has its `code`, which other accounts ignore.',
      input: {
        name: 'Login',
        schema: loginSchema,
        example: { email: exampleEmail, password: examplePassword },
      },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: [
        ...(settings.verifiedEmailRequired ? (['email_unverified'] as const) : []),
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
    settings,
  );
}

function secondStepResource(
  { base, isCrossSite, settings, addressOf }: AccountParts,
  finishLogin: FinishLogin,
): Resource {
  return actionResource(
    {
      path: `${base}/auth/login/second-factor`,
      tag: accountsTag,
      ignoresCredentials: true,
      id: 'finishLogin',
      summary: 'Finish a login with the second factor',
      description:
        'A challenge works once. Wrong codes are limited by account and by address, as failed logins are, and leave the challenge valid.',
      input: {
        name: 'LoginSecondFactor',
        schema: secondStepSchema,
        example: { challenge: exampleChallenge, code: exampleFactorCode },
      },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: ['challenge_invalid', 'cross_site_request', 'rate_limited', 'second_factor_invalid'],
      handler: async (ask, { challenge, code, cookie = false }) => {
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        const done = await finishLogin({ challenge, code, cookie, ...fromOf(ask.request, addressOf) });
        return finishedDone(done);
      },
    },
    settings,
  );
}

/** The response to a login of one or two steps. */
export function finishedDone(
  done: { readonly ok: true; readonly opened: Opened } | (Refusal & { readonly ok: false }),
): Done {
  return done.ok ? { content: done.opened.content, fields: done.opened.fields } : refusedBy(done);
}

export type LoggedIn =
  | { readonly ok: true; readonly opened: Opened }
  | {
      readonly ok: false;
      readonly problem: 'invalid_credentials' | 'rate_limited' | 'email_unverified' | 'unavailable';
      readonly allowance?: Allowance;
    }
  /** The login continues with the challenge. */
  | { readonly ok: false; readonly problem: 'second_factor_required'; readonly step: NextStep };

/** @throws StoreUnavailable */
export type Login = (
  email: string,
  password: string,
  how: From & { readonly cookie: boolean },
) => Promise<LoggedIn>;

export function createLogin(parts: AccountParts): Login {
  const { store, checkPassword, settings } = parts;
  return async (email, password, how) => {
    const checked = await checkPassword(email, password, how);
    if (!checked.ok) {
      return checked.allowance === undefined
        ? { ok: false, problem: 'invalid_credentials' }
        : { ok: false, problem: 'rate_limited', allowance: checked.allowance };
    }
    if (settings.verifiedEmailRequired && !checked.found.user.emailVerified) {
      return { ok: false, problem: 'email_unverified' };
    }
    const row = { table: passwordsTable, id: checked.found.user.id };
    // A login that waited for its turn must compare the password with the current row.
    const open = opening(parts, checked, password, { ...how, isFresh: !store.lines.isBusy(row) });
    return commitRetried<LoggedIn>(store, row, open, () => unavailable);
  };
}

const unavailable = { ok: false, problem: 'unavailable' } as const;
const refused: Attempted<LoggedIn> = { refused: { ok: false, problem: 'invalid_credentials' } };

function opening(
  parts: AccountParts,
  checked: Extract<Checked, { ok: true }>,
  password: string,
  how: From & { readonly cookie: boolean; readonly isFresh: boolean },
): () => Promise<Attempted<LoggedIn>> {
  const { cookie } = how;
  const { store, findUser, hasher, sessions, audit, clock, challenges } = parts;
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

/** The challenge of a login whose first factor was right, and how it can be met. */
export type NextStep = {
  readonly challenge: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly methods: readonly ('totp' | 'passkey' | 'recovery_code')[];
};

/** @param passwordHash the hash that the account has after this step */
export function nextStep(
  challenges: ChallengeTokens,
  user: string,
  passwordHash: string | null | undefined,
  { totp, passkeys, recoveryCodes }: SecondFactor,
): NextStep {
  const challenge = challenges.issue('login', { user, password: passwordMark(passwordHash) });
  const methods = [
    ...(totp === null ? [] : (['totp'] as const)),
    ...(passkeys.length === 0 ? [] : (['passkey'] as const)),
    ...(recoveryCodes.length === 0 ? [] : (['recovery_code'] as const)),
  ];
  return { challenge, expiresIn: challenges.seconds, methods };
}

/** The mark of a password in a challenge: another password makes the challenge void. */
export function passwordMark(hash: string | null | undefined): string {
  return digestOf(`password ${hash ?? ''}`);
}

export function stepProblem({ challenge, expiresIn, methods }: NextStep): Problem {
  return { code: 'second_factor_required', context: { challenge, expiresIn, methods } };
}

type FinishedLogin =
  | { readonly ok: true; readonly opened: Opened }
  | {
      readonly ok: false;
      readonly problem: Wrong['problem'] | 'challenge_invalid' | 'unavailable';
      readonly allowance?: Allowance;
    };

type SecondStep = From & { readonly challenge: string; readonly code: string; readonly cookie: boolean };

const voidChallenge: FinishedLogin = { ok: false, problem: 'challenge_invalid' };

/** @throws StoreUnavailable */
type FinishLogin = (step: SecondStep) => Promise<FinishedLogin>;

function createFinishLogin(parts: AccountParts): FinishLogin {
  const { store, challenges, limit, audit } = parts;
  return async (step) => {
    const challenge = challenges.open('login', step.challenge);
    if (challenge === undefined) return voidChallenge;
    const row = { table: passwordsTable, id: challenge.user };
    const attempt = () => finishOnce(parts, challenge, step);
    return limitedAttempt<FinishedLogin>(
      limit,
      attemptOfFactor({ userId: challenge.user, address: step.address }),
      () => commitRetried<FinishedLogin>(store, row, attempt, () => unavailable),
      { wrong: wrongFactor, onLimited: () => audit.note(limitedFact(challenge.user, step)) },
    );
  };
}

async function finishOnce(
  parts: AccountParts,
  challenge: OpenedChallenge<'login'>,
  step: SecondStep,
): Promise<Attempted<FinishedLogin>> {
  const { clock, audit, challenges, factorMail, sessions, settings } = parts;
  const { code, cookie } = step;
  const at = clock();
  const found = await readLogin(parts, challenge);
  if (found === undefined) return { refused: voidChallenge };
  const { user, password, stored } = found;
  const used = useCode(user.id, stored.factor, code, { at, windowSteps: settings.totpWindowStepsMax });
  const fact = { subject: user.id, ...originOf(step) } as const;
  if (used === undefined) {
    audit.note({ type: 'login.failed', actor: null, ...fact, detail: { use: 'second-factor' } });
    return { refused: wrongFactor };
  }
  const opened = await sessions.open(user, { cookie, at });
  const { method } = used;
  const changes = [
    ...factorChange(user.id, stored, used.next, at),
    challenges.use(challenge),
    // As every login does, so that it never overlaps a change of the password unnoticed.
    ...(password === undefined ? [] : [passwordChange(user.id, password, password.hash, at)]),
    ...opened.changes,
    audit.entry({
      ...{ type: 'login.succeeded', actor: user.id, ...fact },
      detail: { session: opened.session, method },
    }),
    ...(method === 'recovery_code' ? factorMail(user, 'code-used', at) : []),
  ];
  return { changes, result: { ok: true, opened } };
}

/** Returns undefined if the challenge is used, or the account, its password or its factor no longer admits it. */
async function readLogin(parts: AccountParts, challenge: OpenedChallenge<'login'>) {
  const { store, findUser, challenges, settings } = parts;
  if (await challenges.isUsed(challenge)) return undefined;
  const found = await findUser.byId(challenge.user);
  const password = await readPassword(store, challenge.user);
  const stored = await readFactor(store, challenge.user);
  if (found === undefined || found.user.disabled || stored === undefined) return undefined;
  if (settings.verifiedEmailRequired && !found.user.emailVerified) return undefined;
  if (passwordMark(password?.hash) !== challenge.password) return undefined;
  return { user: found.user, password, stored };
}
