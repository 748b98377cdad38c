/** Signatures by Ed25519 of a sender (§5.6, `v1a`): by keys that the configuration names, and by those that the sender publishes. */
import type { DeclaredSender } from '../../../config/senders.ts';
import { createKeyDiscovery, type FetchKeys } from '../../signature/discover-keys.ts';
import { publicKeyOf } from '../../signature/ed25519.ts';
import { ed25519By, type VerifyEd25519 } from '../../signature/trusted-keys.ts';

/** @returns undefined for a sender that has no such keys @param fetchKeys asks through the egress guard */
export function createSenderEd25519(
  { rule, publicKeys, keysUrl }: DeclaredSender,
  fetchKeys: FetchKeys | undefined,
  nowMs: () => number,
): VerifyEd25519 | undefined {
  if (rule.signature.kind !== 'hmac' || rule.signature.asymmetricPrefix === undefined) return undefined;
  const discovery =
    keysUrl === undefined || fetchKeys === undefined
      ? undefined
      : createKeyDiscovery({ url: keysUrl.href, fetch: fetchKeys, nowMs });
  return ed25519By(
    publicKeys.map((key) => publicKeyOf(key)),
    discovery,
  );
}
