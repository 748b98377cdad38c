/**
 * Verifies signatures by public keys of a sender with Web Crypto: Ed25519 (RFC 8032), ECDSA over P-256 (FIPS 186-5) and RSASSA-PKCS1-v1_5
 * (RFC 8017 §8.2). The text forms of the keys: `whpk_...`, hexadecimal, a JWK, base64 or PEM of SubjectPublicKeyInfo (RFC 5280 §4.1).
 */
import { type Ed25519PublicJwk, ed25519KeyBytes, ed25519SignatureBytes, withoutPrefix } from './ed25519.ts';
import { decodeBase64, decodeBase64Url, decodeHex } from './octets.ts';
import type { KeyAlgorithm } from './signature-rule.ts';

type Key = { readonly type: string };

/** A public key as a JWK (RFC 7517 §4); other members are ignored. */
export type PublicJwk = Ed25519PublicJwk & {
  readonly y?: string;
  readonly n?: string;
  readonly e?: string;
  readonly kid?: string;
};

/** 32 octets of Ed25519, a SubjectPublicKeyInfo, or a JWK. */
export type PublicKey = Uint8Array | PublicJwk;

type Imported =
  | 'Ed25519'
  | { readonly name: 'ECDSA'; readonly namedCurve: 'P-256' }
  | { readonly name: 'RSASSA-PKCS1-v1_5'; readonly hash: 'SHA-256' };
type ImportedJwk = PublicJwk & { readonly ext: true };
type Verifying = 'Ed25519' | 'RSASSA-PKCS1-v1_5' | { readonly name: 'ECDSA'; readonly hash: 'SHA-256' };

declare const crypto: {
  readonly subtle: {
    importKey(
      format: 'raw' | 'spki' | 'jwk',
      key: Uint8Array | ImportedJwk,
      algorithm: Imported,
      extractable: false,
      usages: readonly ['verify'],
    ): Promise<Key>;
    verify(algorithm: Verifying, key: Key, signature: Uint8Array, content: Uint8Array): Promise<boolean>;
  };
};

type Algorithm = {
  readonly imported: Imported;
  readonly verifying: Verifying;
  /** Octets of a signature as it is sent. */
  readonly signatureBytes: { readonly least: number; readonly most: number };
};

/** `ecdsa`: a sequence of two integers of up to 33 octets. `rsa`: keys of 1,024 to 8,192 bits. */
const algorithms: Readonly<Record<KeyAlgorithm, Algorithm>> = {
  ed25519: {
    imported: 'Ed25519',
    verifying: 'Ed25519',
    signatureBytes: { least: ed25519SignatureBytes, most: ed25519SignatureBytes },
  },
  ecdsa: {
    imported: { name: 'ECDSA', namedCurve: 'P-256' },
    verifying: { name: 'ECDSA', hash: 'SHA-256' },
    signatureBytes: { least: 8, most: 72 },
  },
  es256: {
    imported: { name: 'ECDSA', namedCurve: 'P-256' },
    verifying: { name: 'ECDSA', hash: 'SHA-256' },
    signatureBytes: { least: 64, most: 64 },
  },
  rsa: {
    imported: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    verifying: 'RSASSA-PKCS1-v1_5',
    signatureBytes: { least: 128, most: 1024 },
  },
};

export function signatureBytesOf(algorithm: KeyAlgorithm): Algorithm['signatureBytes'] {
  return algorithms[algorithm].signatureBytes;
}

/**
 * Returns a public key as Web Crypto imports it: 32 octets of Ed25519, a SubjectPublicKeyInfo, or a JWK.
 * @throws TypeError
 */
export function publicKeyOf(key: string | PublicJwk, algorithm: KeyAlgorithm = 'ed25519'): PublicKey {
  if (typeof key === 'string') return algorithm === 'ed25519' ? ed25519KeyOf(key) : keyInfoOf(key);
  const jwk = readJwk(key, algorithm);
  if (jwk === undefined)
    throw new TypeError(`a JWK must be a public key for signatures, ${jwkMembers[algorithm]}`);
  return jwk;
}

const p256 = 'with kty EC, crv P-256, and x and y in base64url';
const jwkMembers: Readonly<Record<KeyAlgorithm, string>> = {
  ed25519: 'with kty OKP, crv Ed25519, and x in base64url',
  ecdsa: p256,
  es256: p256,
  rsa: 'with kty RSA, e, and n of 2,048 to 8,192 bits, in base64url',
};
const jwkAlgs: Readonly<Record<KeyAlgorithm, readonly unknown[]>> = {
  ed25519: [undefined, 'EdDSA', 'Ed25519'],
  ecdsa: [undefined, 'ES256'],
  es256: [undefined, 'ES256'],
  rsa: [undefined, 'RS256'],
};
const modulusBytes = { least: 256, most: 1024 };

/** Undefined for a key of another kind or for another use (RFC 7517 §4.2 to §4.4), which a set may hold. */
export function readJwk(key: unknown, algorithm: KeyAlgorithm): PublicKey | undefined {
  if (typeof key !== 'object' || key === null) return undefined;
  const { kty, crv, x, y, n, e, kid, use, alg, key_ops: operations } = key as Record<string, unknown>;
  if (use !== undefined && use !== 'sig') return undefined;
  if (!jwkAlgs[algorithm].includes(alg)) return undefined;
  if (Array.isArray(operations) && !operations.includes('verify')) return undefined;
  const name = typeof kid === 'string' ? { kid } : {};
  const holds = (text: unknown, least: number, most: number): text is string => {
    const octets = typeof text === 'string' ? decodeBase64Url(text) : undefined;
    return octets !== undefined && octets.length >= least && octets.length <= most;
  };
  if (algorithm === 'rsa') {
    if (kty !== 'RSA' || !holds(n, modulusBytes.least, modulusBytes.most) || !holds(e, 1, 8))
      return undefined;
    return { kty, n, e, ...name };
  }
  if (algorithm === 'ed25519') {
    if (kty !== 'OKP' || crv !== 'Ed25519' || !holds(x, ed25519KeyBytes, ed25519KeyBytes)) return undefined;
    return { kty, crv, x, ...name };
  }
  if (kty !== 'EC' || crv !== 'P-256' || !holds(x, integerBytes, integerBytes)) return undefined;
  return holds(y, integerBytes, integerBytes) ? { kty, crv, x, y, ...name } : undefined;
}

function ed25519KeyOf(key: string): Uint8Array {
  const octets = decodeHex(key, ed25519KeyBytes) ?? decodeBase64(withoutPrefix(key, 'whpk_'));
  if (octets?.length !== ed25519KeyBytes) {
    throw new TypeError(
      'a public key must be "whpk_" and base64 of 32 octets, 64 hexadecimal digits, or a JWK of the curve Ed25519',
    );
  }
  return octets;
}

const pemLines = /^-----BEGIN PUBLIC KEY-----([\sA-Za-z0-9+/=]+)-----END PUBLIC KEY-----$/;
/** The tag of an ASN.1 sequence, as which each SubjectPublicKeyInfo begins. */
const sequenceTag = 0x30;

function keyInfoOf(key: string): Uint8Array {
  const text = key.trim();
  const octets = decodeBase64((pemLines.exec(text)?.[1] ?? text).replaceAll(/\s/g, ''));
  if (octets === undefined || octets[0] !== sequenceTag) {
    throw new TypeError('a public key must be base64 or PEM of a SubjectPublicKeyInfo');
  }
  return octets;
}

export type SignedOctets = {
  readonly signatures: readonly Uint8Array[];
  readonly content: Uint8Array;
  /** The `kid` that the signature names: keys with another one are not tried. */
  readonly keyId?: string | undefined;
  /** The URL of the certificate that the message names. */
  readonly certificateUrl?: string | undefined;
};

/** Returns true if any key made any signature. An invalid key, or one of another algorithm, matches nothing. */
export async function anyMade(
  algorithm: KeyAlgorithm,
  keys: readonly PublicKey[],
  { signatures, content, keyId }: SignedOctets,
): Promise<boolean> {
  const { subtle } = crypto;
  const { verifying } = algorithms[algorithm];
  const plain = algorithm === 'ecdsa' ? signatures.flatMap(integersOf) : signatures;
  for (const each of keys) {
    if (isOther(each, keyId)) continue;
    const key = await imported(algorithm, each).catch(() => undefined);
    if (key === undefined) continue;
    for (const signature of plain) {
      if (await subtle.verify(verifying, key, signature, content)) return true;
    }
  }
  return false;
}

function isOther(key: PublicKey, keyId: string | undefined): boolean {
  return keyId !== undefined && 'kid' in key && key.kid !== undefined && key.kid !== keyId;
}

function imported(algorithm: KeyAlgorithm, key: PublicKey): Promise<Key> {
  const { imported: parameters } = algorithms[algorithm];
  const { subtle } = crypto;
  if (!(key instanceof Uint8Array)) {
    const { kid: _, ...members } = key;
    return subtle.importKey('jwk', { ...members, ext: true }, parameters, false, ['verify']);
  }
  return subtle.importKey(algorithm === 'ed25519' ? 'raw' : 'spki', key, parameters, false, ['verify']);
}

const integerTag = 0x02;
const integerBytes = 32;

/** Returns the two integers of a signature one after the other, as Web Crypto verifies it; none if it is not DER of two such integers. */
function integersOf(signature: Uint8Array): readonly Uint8Array[] {
  const [tag, length] = signature;
  if (tag !== sequenceTag || length !== signature.length - 2) return [];
  const joined = new Uint8Array(2 * integerBytes);
  let at = 2;
  for (const end of [integerBytes, 2 * integerBytes]) {
    if (signature[at] !== integerTag) return [];
    const octets = signature.subarray(at + 2, at + 2 + (signature[at + 1] ?? 0));
    const digits = octets[0] === 0 ? octets.subarray(1) : octets;
    if (octets.length !== signature[at + 1] || digits.length > integerBytes) return [];
    joined.set(digits, end - digits.length);
    at += 2 + octets.length;
  }
  return at === signature.length ? [joined] : [];
}
