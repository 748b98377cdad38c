/** A message verified by its sender's rule with Web Crypto: what binds the options of `receive` to the one way of verifying. */
import type { KeyDiscovery } from '../signature/discover-keys.ts';
import { type Ed25519PublicJwk, publicKeyOf } from '../signature/ed25519.ts';
import { prepareKeys } from '../signature/prepared-keys.ts';
import type { SignatureRule } from '../signature/signature-rule.ts';
import { ed25519By } from '../signature/trusted-keys.ts';
import { type RuleVerdict, verifyByRule } from '../signature/verify-by-rule.ts';
import { webPrimitives } from '../signature/web-primitives.ts';
import type { Message } from './message.ts';

export type TrustedKeys = {
  /** It is enough that one of them fits. Optional only beside keys. */
  readonly secrets?: readonly string[] | undefined;
  /** Keys whose Ed25519 signatures are taken besides: `whpk_` and base64, or JWKs. */
  readonly publicKeys?: readonly (string | Ed25519PublicJwk)[] | undefined;
  /** Keys that the sender publishes, besides. */
  readonly discovery?: KeyDiscovery | undefined;
};

export type VerifyMessage = TrustedKeys & {
  /** The whole URL that the sender called, as it knows it; needed where the sender signs it, as Twilio does. */
  readonly url?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
};

/** @throws TypeError for what can be no secret, key or tolerance, without any of them, and without a URL where one is signed */
export async function verifyMessage(
  rule: SignatureRule,
  message: Message,
  { secrets, publicKeys = [], discovery, url, nowMs }: VerifyMessage,
): Promise<RuleVerdict> {
  const ed25519 = ed25519By(publicKeys.map(publicKeyOf), discovery);
  if (secrets === undefined && ed25519 === undefined) {
    throw new TypeError('secrets must be an array of at least one, unless there are public keys');
  }
  const keys = prepareKeys(rule, secrets ?? [], webPrimitives);
  return verifyByRule(rule, { ...message, url }, keys, { primitives: webPrimitives, nowMs, ed25519 });
}
