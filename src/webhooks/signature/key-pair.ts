/**
 * Verifies signatures by public keys of a sender with Web Crypto: Ed25519 (RFC 8032), ECDSA over P-256 (FIPS 186-5) and RSASSA-PKCS1-v1_5
 * (RFC 8017 §8.2). The text forms of the keys: `whpk_...`, hexadecimal, a JWK, base64 or PEM of SubjectPublicKeyInfo (RFC 5280 §4.1).
 */
import {
  type Ed25519PublicJwk,
  ed25519KeyBytes,
  ed25519SignatureBytes,
  memberOf,
  withoutPrefix,
} from './ed25519.ts';
import { decodeBase64, decodeHex } from './octets.ts';
import type { KeyPairAlgorithm } from './signature-rule.ts';

type Key = { readonly type: string };
type Imported =
  | 'Ed25519'
  | { readonly name: 'ECDSA'; readonly namedCurve: 'P-256' }
  | { readonly name: 'RSASSA-PKCS1-v1_5'; readonly hash: 'SHA-256' };
type Verifying = 'Ed25519' | 'RSASSA-PKCS1-v1_5' | { readonly name: 'ECDSA'; readonly hash: 'SHA-256' };

declare const crypto: {
  readonly subtle: {
    importKey(
      format: 'raw' | 'spki',
      key: Uint8Array,
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
const algorithms: Readonly<Record<KeyPairAlgorithm, Algorithm>> = {
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
  rsa: {
    imported: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    verifying: 'RSASSA-PKCS1-v1_5',
    signatureBytes: { least: 128, most: 1024 },
  },
};

export function signatureBytesOf(algorithm: KeyPairAlgorithm): Algorithm['signatureBytes'] {
  return algorithms[algorithm].signatureBytes;
}

/**
 * Returns the octets of a public key as Web Crypto imports it: 32 of Ed25519, or a SubjectPublicKeyInfo.
 * @throws TypeError
 */
export function publicKeyOf(
  key: string | Ed25519PublicJwk,
  algorithm: KeyPairAlgorithm = 'ed25519',
): Uint8Array {
  return algorithm === 'ed25519' ? ed25519KeyOf(key) : keyInfoOf(key);
}

function ed25519KeyOf(key: string | Ed25519PublicJwk): Uint8Array {
  const octets =
    typeof key === 'string'
      ? (decodeHex(key, ed25519KeyBytes) ?? decodeBase64(withoutPrefix(key, 'whpk_')))
      : memberOf(key, key.x);
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

function keyInfoOf(key: string | Ed25519PublicJwk): Uint8Array {
  const text = typeof key === 'string' ? key.trim() : '';
  const octets = decodeBase64((pemLines.exec(text)?.[1] ?? text).replaceAll(/\s/g, ''));
  if (octets === undefined || octets[0] !== sequenceTag) {
    throw new TypeError('a public key must be base64 or PEM of a SubjectPublicKeyInfo');
  }
  return octets;
}

/** Returns true if any key made any signature. An invalid key, or one of another algorithm, matches nothing. */
export async function anyMade(
  algorithm: KeyPairAlgorithm,
  keys: readonly Uint8Array[],
  signatures: readonly Uint8Array[],
  content: Uint8Array,
): Promise<boolean> {
  const { subtle } = crypto;
  const { imported, verifying } = algorithms[algorithm];
  const format = algorithm === 'ed25519' ? 'raw' : 'spki';
  const plain = algorithm === 'ecdsa' ? signatures.flatMap(integersOf) : signatures;
  for (const octets of keys) {
    const key = await subtle.importKey(format, octets, imported, false, ['verify']).catch(() => undefined);
    if (key === undefined) continue;
    for (const signature of plain) {
      if (await subtle.verify(verifying, key, signature, content)) return true;
    }
  }
  return false;
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
