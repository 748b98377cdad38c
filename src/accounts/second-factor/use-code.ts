/** Judges a typed code against a second factor: a TOTP code or a recovery code, each of which works once. Pure but for the hashes. */
import type { SecondFactor } from './factor-row.ts';
import { takeRecoveryCode } from './recovery-codes.ts';
import { looksLikeTotp, stepOfCode } from './totp.ts';

export type UsedCode = {
  readonly method: 'totp' | 'recovery_code';
  /** The factor in which the code is used up. */
  readonly next: SecondFactor;
};

/** @param how.at milliseconds since the epoch @returns undefined if the code is wrong, used, or of another time */
export function useCode(
  userId: string,
  factor: SecondFactor,
  typed: string,
  how: { readonly at: number; readonly windowSteps: number },
): UsedCode | undefined {
  const text = typed.trim();
  if (looksLikeTotp(text)) {
    if (factor.totp === null) return undefined;
    const step = stepOfCode(factor.totp, text, how.at, how.windowSteps);
    if (step === undefined) return undefined;
    return { method: 'totp', next: { ...factor, totp: { ...factor.totp, lastStep: step } } };
  }
  const recoveryCodes = takeRecoveryCode(userId, factor.recoveryCodes, text);
  return recoveryCodes === undefined
    ? undefined
    : { method: 'recovery_code', next: { ...factor, recoveryCodes } };
}
