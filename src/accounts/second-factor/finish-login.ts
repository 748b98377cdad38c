/**
 * The second step of a login (§5.8): the challenge of the first one, with a code. One unit uses the challenge and the code and opens the
 * session, so that of many requests with one code, or one challenge, exactly one gets a session.
 */

import type { Allowance } from '../../http/message.ts';
import type { Change } from '../../store/store.ts';
import { passwordsTable } from '../account-tables.ts';
import { type From, originOf } from '../audit-fact.ts';
import { type Attempted, commitRetried } from '../commit-retried.ts';
import { passwordChange, readPassword, type StoredPassword } from '../passwords/password-row.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import type { OpenedChallenge } from './challenge-tokens.ts';
import { type FactorOptions, limitedFact } from './change-factor.ts';
import { limitedAttempt, type Wrong, wrongFactor } from './factor-limit.ts';
import { factorChange, readFactor } from './factor-row.ts';
import { passwordMark } from './next-step.ts';
import { useCode } from './use-code.ts';

export type FinishLoginOptions = FactorOptions & {
  readonly sessions: Pick<Sessions, 'open'>;
  readonly verifiedEmailRequired: boolean;
};

export type FinishedLogin =
  | { readonly ok: true; readonly opened: Opened }
  | {
      readonly ok: false;
      readonly problem: Wrong['problem'] | 'challenge_invalid' | 'unavailable';
      readonly allowance?: Allowance;
    };

export type LoginStep = From & {
  readonly challenge: string;
  readonly code: string;
  readonly cookie: boolean;
};

/** @throws StoreUnavailable */
export type FinishLogin = (step: LoginStep) => Promise<FinishedLogin>;

const voidChallenge: FinishedLogin = { ok: false, problem: 'challenge_invalid' };
const unavailable: FinishedLogin = { ok: false, problem: 'unavailable' };

export function createFinishLogin(options: FinishLoginOptions): FinishLogin {
  const { store, challenges, limit, audit } = options;
  return async (step) => {
    const challenge = challenges.open('login', step.challenge);
    if (challenge === undefined) return voidChallenge;
    const row = { table: passwordsTable, id: challenge.user };
    const attempt = () => tryOnce(options, challenge, step);
    return limitedAttempt<FinishedLogin>(
      limit,
      { userId: challenge.user, address: step.address },
      () => commitRetried<FinishedLogin>(store, row, attempt, () => unavailable),
      () => audit.note(limitedFact(challenge.user, step)),
    );
  };
}

async function tryOnce(
  options: FinishLoginOptions,
  challenge: OpenedChallenge<'login'>,
  step: LoginStep,
): Promise<Attempted<FinishedLogin>> {
  const { clock, audit, challenges, factorMail, totpWindowStepsMax: windowSteps } = options;
  const { code, cookie } = step;
  const at = clock();
  const found = await readLogin(options, challenge);
  if (found === undefined) return { refused: voidChallenge };
  const { user, password, stored } = found;
  const used = useCode(user.id, stored.factor, code, { at, windowSteps });
  const fact = { subject: user.id, ...originOf(step) } as const;
  if (used === undefined) {
    audit.note({ type: 'login.failed', actor: null, ...fact, detail: { use: 'second-factor' } });
    return { refused: wrongFactor };
  }
  const opened = await options.sessions.open(user, { cookie, at });
  const { method } = used;
  const changes = [
    ...factorChange(user.id, stored, used.next, at),
    challenges.use(challenge),
    ...rewritten(user.id, password, at),
    ...opened.changes,
    audit.entry({
      ...{ type: 'login.succeeded', actor: user.id, ...fact },
      detail: { session: opened.session, method },
    }),
    ...(method === 'recovery_code' ? factorMail(user, 'code-used', at) : []),
  ];
  return { changes, result: { ok: true, opened } };
}

/** As every login does, so that it never overlaps a change of the password unnoticed. */
function rewritten(id: string, standing: StoredPassword | undefined, at: number): readonly Change[] {
  return standing === undefined ? [] : [passwordChange(id, standing, standing.hash, at)];
}

/** Returns undefined if the challenge is used, or the account, its password or its factor no longer admits it. */
async function readLogin(options: FinishLoginOptions, challenge: OpenedChallenge<'login'>) {
  const { store, findUser, challenges, verifiedEmailRequired } = options;
  if (await challenges.isUsed(challenge)) return undefined;
  const found = await findUser.byId(challenge.user);
  const password = await readPassword(store, challenge.user);
  const stored = await readFactor(store, challenge.user);
  if (found === undefined || found.user.disabled || stored === undefined) return undefined;
  if (verifiedEmailRequired && !found.user.emailVerified) return undefined;
  if (passwordMark(password?.hash) !== challenge.password) return undefined;
  return { user: found.user, password, stored };
}
