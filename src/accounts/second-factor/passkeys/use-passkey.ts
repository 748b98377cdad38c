/** Judges the response of a passkey against a second factor (§5.8): which passkey it is, and the factor after its use. */
import type { Passkey, SecondFactor } from '../factor-row.ts';
import type { RelyingParty } from './relying-party.ts';
import { verifyAssertion } from './webauthn.ts';

export type UsedPasskey = { readonly next: SecondFactor; readonly passkey: Passkey };

/** What a browser sends after `navigator.credentials.get`. */
export type Assertion = { readonly id: string; readonly response: { readonly userHandle?: string } };

/**
 * @param how.challenge in base64url @param how.at milliseconds since the epoch
 * @returns undefined if no passkey of the account made the response
 */
export async function usePasskey(
  party: RelyingParty,
  factor: SecondFactor,
  response: Assertion,
  how: { readonly challenge: string; readonly userVerified: boolean; readonly at: number },
): Promise<UsedPasskey | undefined> {
  const passkey = factor.passkeys.find(({ credential }) => credential === response.id);
  if (passkey === undefined) return undefined;
  const { challenge, userVerified } = how;
  const used = await verifyAssertion(party, passkey, { challenge, response, userVerified });
  if (used === undefined) return undefined;
  const after = { ...passkey, ...used, lastUsedAt: new Date(how.at).toISOString() };
  const passkeys = factor.passkeys.map((each) => (each.id === passkey.id ? after : each));
  return { next: { ...factor, passkeys }, passkey: after };
}
