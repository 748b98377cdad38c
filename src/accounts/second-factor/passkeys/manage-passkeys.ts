/** Adds, renames and removes the passkeys of an account (§5.8). */

import type { FactorOwner } from '../change-factor.ts';
import {
  type ChangedFactor,
  changeFactor,
  type Planned,
  type Proof,
  type Refused,
} from '../change-factor.ts';
import { addFactor, type EnrolOptions, type ShownCodes } from '../enrol-totp.ts';
import { type Passkey, readFactor } from '../factor-row.ts';
import { challengeBytes, type PasskeyRequest } from './passkey-login.ts';
import { authenticationOptions, registrationOptions, verifyRegistration } from './webauthn.ts';

/** A passkey as its owner sees it. */
export type ShownPasskey = Pick<
  Passkey,
  'id' | 'name' | 'transports' | 'backedUp' | 'createdAt' | 'lastUsedAt'
>;

export function shownPasskey(passkey: Passkey): ShownPasskey {
  const { id, name, transports, backedUp, createdAt, lastUsedAt } = passkey;
  return { id, name, transports, backedUp, createdAt, lastUsedAt };
}

const voidChallenge: Refused = { ok: false, problem: 'challenge_invalid' };
const wrongPasskey: Refused = { ok: false, problem: 'passkey_invalid' };
const missing: Refused = { ok: false, problem: 'not_found' };

/** @throws StoreUnavailable */
export function beginPasskey(
  options: EnrolOptions,
  owner: FactorOwner,
  proof: Proof,
): Promise<ChangedFactor<PasskeyRequest>> {
  const { challenges, random, relyingParty } = options;
  return changeFactor(options, owner, proof, async ({ user, factor, hadFactor }) => {
    const challenge = random(challengeBytes).toString('base64url');
    const timeoutMs = challenges.seconds * 1000;
    const { passkeys } = factor;
    return {
      next: factor,
      facts: [],
      result: {
        challenge: challenges.issue('passkey', { user: owner.userId, challenge, hadFactor }),
        expiresIn: challenges.seconds,
        options: await registrationOptions(relyingParty(), user, { challenge, passkeys, timeoutMs }),
      },
    };
  });
}

export type AddedPasskey = { readonly passkey: ShownPasskey } & ShownCodes;

/** @throws StoreUnavailable */
export async function addPasskey(
  options: EnrolOptions,
  owner: FactorOwner,
  typed: { readonly challenge: string; readonly name: string; readonly response: unknown },
): Promise<ChangedFactor<AddedPasskey>> {
  const { challenges, relyingParty, newId, passkeysPerAccountMax } = options;
  const opened = challenges.open('passkey', typed.challenge);
  if (opened === undefined || opened.user !== owner.userId) return voidChallenge;
  const registered = await verifyRegistration(relyingParty(), opened.challenge, typed.response);
  if (registered === undefined) return wrongPasskey;
  const id = `pas_${newId()}`;
  return changeFactor(options, owner, null, async (state): Promise<Planned<AddedPasskey>> => {
    // Proven without a factor, and one was added since.
    if (state.hadFactor && !opened.hadFactor) return voidChallenge;
    if (await challenges.isUsed(opened)) return voidChallenge;
    const { passkeys } = state.factor;
    if (passkeys.some(({ credential }) => credential === registered.credential)) return wrongPasskey;
    if (passkeys.length >= passkeysPerAccountMax) return { ok: false, problem: 'passkeys_exhausted' };
    const createdAt = new Date(state.at).toISOString();
    const passkey: Passkey = { id, name: typed.name, ...registered, createdAt, lastUsedAt: null };
    const added = await addFactor(options, owner, state, {
      ...state.factor,
      passkeys: [...passkeys, passkey],
    });
    return {
      next: added.next,
      facts: [{ type: 'second_factor.added', method: 'passkey', passkey: id }],
      news: 'passkey-added',
      changes: [challenges.use(opened), ...added.changes],
      result: { passkey: shownPasskey(passkey), ...added.result },
    };
  });
}

/** @throws StoreUnavailable */
export function renamePasskey(
  options: EnrolOptions,
  owner: FactorOwner,
  typed: { readonly id: string; readonly name: string },
): Promise<ChangedFactor<ShownPasskey>> {
  return changeFactor(options, owner, null, ({ factor }) => {
    const passkey = factor.passkeys.find(({ id }) => id === typed.id);
    if (passkey === undefined) return missing;
    const renamed = { ...passkey, name: typed.name };
    const passkeys = factor.passkeys.map((each) => (each.id === typed.id ? renamed : each));
    const fact = { type: 'second_factor.changed', method: 'passkey', passkey: typed.id } as const;
    const facts = passkey.name === typed.name ? [] : [fact];
    return { next: { ...factor, passkeys }, facts, result: shownPasskey(renamed) };
  });
}

/** Also removes the recovery codes if no other factor is left. @throws StoreUnavailable */
export function removePasskey(
  options: EnrolOptions,
  owner: FactorOwner,
  typed: { readonly id: string; readonly proof: Proof },
): Promise<ChangedFactor<null>> {
  return changeFactor(options, owner, typed.proof, ({ factor }) => {
    const passkeys = factor.passkeys.filter(({ id }) => id !== typed.id);
    if (passkeys.length === factor.passkeys.length) return missing;
    return {
      next: { ...factor, passkeys },
      facts: [{ type: 'second_factor.removed', method: 'passkey', passkey: typed.id }],
      news: 'passkey-removed',
      result: null,
    };
  });
}

/** Options for a passkey that proves a change of the factor. @throws StoreUnavailable */
export async function beginProof(options: EnrolOptions, userId: string): Promise<PasskeyRequest> {
  const { challenges, random, relyingParty, store } = options;
  const stored = await readFactor(store, userId);
  const challenge = random(challengeBytes).toString('base64url');
  const passkeys = stored?.factor.passkeys ?? [];
  const timeoutMs = challenges.seconds * 1000;
  return {
    challenge: challenges.issue('passkeyProof', { user: userId, challenge }),
    expiresIn: challenges.seconds,
    options: await authenticationOptions(relyingParty(), { challenge, passkeys, timeoutMs }),
  };
}
