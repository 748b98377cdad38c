/** Checks the public keys that a sender's Ed25519 signatures (`v1a`, §5.6) are said to be made with, or where it publishes them. */
import { publicKeyOf } from '../../webhooks/signature/ed25519.ts';
import type { SignatureRule } from '../../webhooks/signature/signature-rule.ts';
import { isLoopbackHost } from '../oauth-providers.ts';
import type { Refuse } from './refuse.ts';

const publicKeysMax = 10;
const urlCharactersMax = 2000;

export function inspectPublicKeys(
  written: unknown,
  signature: SignatureRule | undefined,
  refuse: Refuse,
): readonly string[] {
  if (written === undefined) return [];
  refuseWithoutUse('publicKeys', signature, refuse);
  if (!Array.isArray(written) || written.length > publicKeysMax || !written.every(isPublicKey)) {
    refuse(`publicKeys must be a list of at most ${publicKeysMax} texts: "whpk_" and base64 of 32 octets`);
    return [];
  }
  return written;
}

export function inspectKeysUrl(
  written: unknown,
  signature: SignatureRule | undefined,
  refuse: Refuse,
): URL | undefined {
  if (written === undefined) return undefined;
  refuseWithoutUse('keysUrl', signature, refuse);
  const url = typeof written === 'string' && written.length <= urlCharactersMax ? URL.parse(written) : null;
  if (url !== null && isTrustworthy(url)) return url;
  refuse(
    'keysUrl must be an https URL without user and fragment (http:// only for 127.0.0.1, [::1] and localhost)',
  );
  return undefined;
}

function refuseWithoutUse(member: string, signature: SignatureRule | undefined, refuse: Refuse): void {
  if (signature === undefined) return;
  if (signature.kind === 'token' || signature.asymmetricPrefix === undefined) {
    refuse(`${member} means nothing, for no signature of this sender is made with a key pair`);
  }
}

/** What names the keys that are believed must come unchanged. */
function isTrustworthy({ protocol, hostname, username, password, hash }: URL): boolean {
  if (username !== '' || password !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

function isPublicKey(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  try {
    publicKeyOf(value);
    return true;
  } catch {
    // It throws for whatever is no key, and says nothing more than the sentence here does.
    return false;
  }
}
