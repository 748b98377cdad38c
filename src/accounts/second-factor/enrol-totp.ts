/**
 * Adds, replaces and removes an authenticator application, and makes recovery codes (§5.8). A new secret is not stored until a code
 * made with it confirms that the application has it: until then it is sealed in the token of the enrolment.
 */
import type { Sessions } from '../sessions/sessions.ts';
import {
  type ChangedFactor,
  changeFactor,
  type FactorOptions,
  type FactorOwner,
  type FactorState,
  type Planned,
  type Proof,
  type Refused,
} from './change-factor.ts';
import { isFactor, type SecondFactor } from './factor-row.ts';
import { drawRecoveryCodes } from './recovery-codes.ts';
import { drawTotpSecret, looksLikeTotp, stepOfCode, totpUri } from './totp.ts';

export type EnrolOptions = FactorOptions & {
  readonly sessions: Pick<Sessions, 'endOfUser'>;
  /** Name of the service in authenticator applications. */
  readonly issuer: string;
  readonly newId: () => string;
  readonly passkeysPerAccountMax: number;
};

export type Enrolment = {
  readonly enrolment: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** Base32, for people who cannot scan the code. */
  readonly secret: string;
  readonly uri: string;
};

/** Codes that are shown once; absent if the account keeps those that it has. */
export type ShownCodes = { readonly recoveryCodes?: readonly string[] };

/** @throws StoreUnavailable */
export function beginTotp(
  options: EnrolOptions,
  owner: FactorOwner,
  proof: Proof,
): Promise<ChangedFactor<Enrolment>> {
  const { challenges, random, issuer } = options;
  const { userId } = owner;
  return changeFactor(options, owner, proof, ({ user, factor, hadFactor }) => {
    const secret = drawTotpSecret(random);
    const enrolment = challenges.issue('totp', { user: userId, secret, hadFactor });
    const uri = totpUri(secret, issuer, user.email);
    return {
      next: factor,
      facts: [],
      result: { enrolment, expiresIn: challenges.seconds, secret, uri },
    };
  });
}

const voidEnrolment: Refused = { ok: false, problem: 'challenge_invalid' };
const wrongCode: Refused = { ok: false, problem: 'second_factor_invalid' };

/** @throws StoreUnavailable */
export async function confirmTotp(
  options: EnrolOptions,
  owner: FactorOwner,
  typed: { readonly enrolment: string; readonly code: string },
): Promise<ChangedFactor<ShownCodes>> {
  const { challenges, totpWindowStepsMax } = options;
  const enrolment = challenges.open('totp', typed.enrolment);
  if (enrolment === undefined || enrolment.user !== owner.userId) return voidEnrolment;
  return changeFactor(options, owner, null, async (state): Promise<Planned<ShownCodes>> => {
    const { secret, hadFactor } = enrolment;
    // Proven without a factor, and one was added since.
    if (state.hadFactor && !hadFactor) return voidEnrolment;
    if (await challenges.isUsed(enrolment)) return voidEnrolment;
    const code = typed.code.trim();
    const step = looksLikeTotp(code)
      ? stepOfCode({ secret, lastStep: 0 }, code, state.at, totpWindowStepsMax)
      : undefined;
    if (step === undefined) return wrongCode;
    const totp = { secret, lastStep: step, addedAt: new Date(state.at).toISOString() };
    const added = await addFactor(options, owner, state, { ...state.factor, totp });
    return {
      ...added,
      facts: [{ type: 'second_factor.added', method: 'totp' }],
      news: 'totp-added',
      changes: [challenges.use(enrolment), ...added.changes],
    };
  });
}

/**
 * The first factor of an account comes with recovery codes, and ends all other sessions, which were opened without it.
 * @param next the factor with the new part
 */
export async function addFactor(
  { random, sessions }: EnrolOptions,
  { userId, session }: FactorOwner,
  { hadFactor }: FactorState,
  next: SecondFactor,
) {
  if (hadFactor) return { next, changes: [], result: {} };
  const { codes, digests } = drawRecoveryCodes(userId, random);
  return {
    next: { ...next, recoveryCodes: digests },
    changes: await sessions.endOfUser(userId, session),
    result: { recoveryCodes: codes },
  };
}

/** Also removes the recovery codes if nothing else is left. @throws StoreUnavailable */
export function removeTotp(
  options: EnrolOptions,
  owner: FactorOwner,
  proof: Proof,
): Promise<ChangedFactor<null>> {
  return changeFactor(options, owner, proof, ({ factor }) => {
    if (factor.totp === null) return { ok: false, problem: 'not_found' };
    return {
      next: { ...factor, totp: null },
      facts: [{ type: 'second_factor.removed', method: 'totp' }],
      news: 'totp-removed',
      result: null,
    };
  });
}

/** Replaces the recovery codes. @throws StoreUnavailable */
export function renewRecoveryCodes(
  options: EnrolOptions,
  owner: FactorOwner,
  proof: Proof,
): Promise<ChangedFactor<Required<ShownCodes>>> {
  return changeFactor(options, owner, proof, ({ factor }) => {
    if (!isFactor(factor)) return { ok: false, problem: 'not_found' };
    const { codes, digests } = drawRecoveryCodes(owner.userId, options.random);
    return {
      next: { ...factor, recoveryCodes: digests },
      facts: [{ type: 'recovery_codes.created' }],
      news: 'codes-created',
      result: { recoveryCodes: codes },
    };
  });
}
