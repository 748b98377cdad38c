/** The Ed25519 keys that a receiver takes a sender's signatures of: those it was given, and those that the sender publishes. */
import type { KeyDiscovery } from './discover-keys.ts';
import { anyEd25519 } from './ed25519.ts';

/** Whether one of the keys made one of the signatures. @throws KeyDiscoveryError where only published keys could tell and they cannot be had */
export type VerifyEd25519 = (signatures: readonly Uint8Array[], content: Uint8Array) => Promise<boolean>;

/** Undefined: no signature by Ed25519 is taken. @param publicKeys 32 octets each, as `publicKeyOf` makes them */
export function ed25519By(
  publicKeys: readonly Uint8Array[],
  discovery: KeyDiscovery | undefined,
): VerifyEd25519 | undefined {
  if (publicKeys.length === 0 && discovery === undefined) return undefined;
  return async (signatures, content) => {
    if (await anyEd25519(publicKeys, signatures, content)) return true;
    if (discovery === undefined) return false;
    const known = await discovery.keys();
    if (await anyEd25519(known, signatures, content)) return true;
    const renewed = await discovery.renew();
    return renewed !== known && anyEd25519(renewed, signatures, content);
  };
}
