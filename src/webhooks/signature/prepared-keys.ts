/**
 * The keys that verify by a rule, made once for each set of secrets. The cryptography is the caller's: that of Node answers at once, Web
 * Crypto (web-primitives.ts) with promises.
 */
import { keysOf, standardKey, textKey } from './secret.ts';
import type { Hash, SignatureRule } from './signature-rule.ts';
import { readTemplate, type SignedTemplate } from './signed-template.ts';

export type MaybePromise<Value> = Value | Promise<Value>;

export type MacPrimitives<Key> = {
  /** A key as the runtime keeps it. */
  importKey(octets: Uint8Array, hash: Hash): Key;
  /** HMAC (RFC 2104) over the parts, one after the other. */
  mac(key: Key, hash: Hash, parts: readonly Uint8Array[]): MaybePromise<Uint8Array>;
  sha256(content: Uint8Array): MaybePromise<Uint8Array>;
};

export type PreparedKeys<Key> =
  | { readonly kind: 'hmac'; readonly template: SignedTemplate; readonly keys: readonly Key[] }
  | { readonly kind: 'token'; readonly tokens: readonly Uint8Array[] };

/**
 * @param secrets at least one, unless the rule also takes signatures by Ed25519
 * @throws TypeError for what can be no secret and for a rule that cannot be verified by; it names nothing of a secret
 */
export function prepareKeys<Key>(
  rule: SignatureRule,
  secrets: readonly string[],
  primitives: MacPrimitives<Key>,
): PreparedKeys<Key> {
  if (rule.kind === 'token') return { kind: 'token', tokens: keysOf(secrets, textKey) };
  const template = readTemplate(rule);
  if (secrets.length === 0 && rule.asymmetricPrefix !== undefined)
    return { kind: 'hmac', template, keys: [] };
  const octets = keysOf(secrets, rule.key === 'base64' ? standardKey : textKey);
  return { kind: 'hmac', template, keys: octets.map((each) => primitives.importKey(each, rule.hash)) };
}
