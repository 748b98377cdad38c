/** The answer of a login after a right password of an account with a second factor: a challenge, and how it can be met (§5.8). */
import type { Problem } from '../../http/problem.ts';
import { digestOf } from '../digest.ts';
import type { ChallengeTokens } from './challenge-tokens.ts';
import type { SecondFactor } from './factor-row.ts';

export type NextStep = {
  readonly challenge: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly methods: readonly FactorMethod[];
};

export type FactorMethod = 'totp' | 'passkey' | 'recovery_code';

/** @param passwordHash the hash that the account has after this step */
export function nextStep(
  challenges: ChallengeTokens,
  user: string,
  passwordHash: string | null | undefined,
  factor: SecondFactor,
): NextStep {
  const challenge = challenges.issue('login', { user, password: passwordMark(passwordHash) });
  return { challenge, expiresIn: challenges.seconds, methods: methodsOf(factor) };
}

function methodsOf({ totp, passkeys, recoveryCodes }: SecondFactor): readonly FactorMethod[] {
  return [
    ...(totp === null ? [] : (['totp'] as const)),
    ...(passkeys.length === 0 ? [] : (['passkey'] as const)),
    ...(recoveryCodes.length === 0 ? [] : (['recovery_code'] as const)),
  ];
}

/** The mark of a password in a challenge: another password makes the challenge void. */
export function passwordMark(hash: string | null | undefined): string {
  return digestOf(`password ${hash ?? ''}`);
}

export function stepProblem({ challenge, expiresIn, methods }: NextStep): Problem {
  return { code: 'second_factor_required', context: { challenge, expiresIn, methods } };
}
