/**
 * A passkey as the first credential of an account (§5.8.11), in place of a password: at a registration, and for an invitation. It is
 * discoverable and verifies its user, because it logs in alone, and it comes with recovery codes, as every first factor does. The account
 * that it is for stands in the challenge.
 */
import { Type } from 'typebox';
import type { ProblemCode } from '../../../http/problem-registry.ts';
import { idFor } from '../../../model/id.ts';
import type { Change } from '../../../store/store.ts';
import type { AccountParts } from '../../account-parts.ts';
import { exampleChallenge } from '../../account-schemas.ts';
import type { User } from '../../account-tables.ts';
import { type From, originOf } from '../../audit.ts';
import type { OpenedChallenge } from '../challenge-tokens.ts';
import { drawRecoveryCodes } from '../factor-codes.ts';
import { factorChange } from '../factor-row.ts';
import { challengeBytes, type PasskeyRequest } from './passkey-login.ts';
import {
  exampleRegistration,
  passkeyNameCharactersMax,
  registrationOptions,
  registrationSchema,
  verifyRegistration,
} from './webauthn.ts';

export const firstPasskeySchema = Type.Object(
  {
    challenge: Type.String(),
    response: registrationSchema,
    name: Type.Optional(Type.String({ minLength: 1, maxLength: passkeyNameCharactersMax })),
  },
  {
    description: 'A passkey in place of a password: the challenge of its options, and what the browser made.',
  },
);

export const exampleFirstPasskey = { challenge: exampleChallenge, response: exampleRegistration };

/** @param user the account, or the one to be */
export async function beginFirstPasskey(
  { challenges, random, relyingParty }: AccountParts,
  user: Pick<User, 'id' | 'email' | 'name'>,
): Promise<PasskeyRequest> {
  const challenge = random(challengeBytes).toString('base64url');
  const how = { challenge, passkeys: [], timeoutMs: challenges.seconds * 1000, isAlone: true };
  return {
    challenge: challenges.issue('firstPasskey', { user: user.id, challenge }),
    expiresIn: challenges.seconds,
    options: await registrationOptions(relyingParty(), user, how),
  };
}

export type FirstPasskey = {
  /** The account that it is for. */
  readonly user: string;
  readonly recoveryCodes: readonly string[];
  /** Another request has used it. @throws StoreUnavailable */
  isUsed(): Promise<boolean>;
  /** @param at milliseconds since the epoch */
  changes(at: number, from: From): readonly Change[];
};

/** @throws StoreUnavailable */
export async function takeFirstPasskey(
  parts: AccountParts,
  typed: { readonly challenge: string; readonly response: unknown; readonly name?: string },
): Promise<FirstPasskey | { readonly problem: ProblemCode }> {
  const { challenges, relyingParty } = parts;
  const opened = challenges.open('firstPasskey', typed.challenge);
  if (opened === undefined || (await challenges.isUsed(opened))) return { problem: 'challenge_invalid' };
  const registered = await verifyRegistration(relyingParty(), opened.challenge, typed.response, true);
  if (registered === undefined) return { problem: 'passkey_invalid' };
  return made(parts, opened, { ...registered, name: typed.name ?? 'Passkey' });
}

function made(
  { challenges, newId, random, audit }: AccountParts,
  opened: OpenedChallenge<'firstPasskey'>,
  registered: Parameters<typeof passkeyOf>[1],
): FirstPasskey {
  const { user } = opened;
  const id = idFor('passkey', newId);
  const { codes: recoveryCodes, digests } = drawRecoveryCodes(user, random);
  return {
    user,
    recoveryCodes,
    isUsed: () => challenges.isUsed(opened),
    changes(at, from) {
      const passkeys = [passkeyOf(id, registered, at)];
      const fact = { actor: user, subject: user, ...originOf(from) };
      return [
        challenges.use(opened),
        ...factorChange(user, undefined, { totp: null, passkeys, recoveryCodes: digests }, at),
        audit.entry({ type: 'second_factor.added', ...fact, detail: { method: 'passkey', passkey: id } }),
      ];
    },
  };
}

function passkeyOf(
  id: string,
  registered: { readonly name: string } & NonNullable<Awaited<ReturnType<typeof verifyRegistration>>>,
  at: number,
) {
  return { id, ...registered, createdAt: new Date(at).toISOString(), lastUsedAt: null };
}
