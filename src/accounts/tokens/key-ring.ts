/**
 * The life of signing keys, as pure functions of the ring and the time.
 *
 * - `published` from its creation, at least a tenth of the period (and up to an hour) before it signs, so that clients that cache the
 *   JWK set have it by then.
 * - `signing` from `signsFrom` until that of the next key; exactly one key is.
 * - `verifying` until every token that it signed has expired; then it is removed.
 */
import { exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';

export type Ring = {
  /** The issuer name of this store's tokens if no public URL is configured. */
  readonly name: string;
  readonly keys: readonly StoredKey[];
};

export type RingTimes = {
  readonly signingKeySeconds: number;
  readonly accessTokenSeconds: number;
};

const hourMs = 3_600_000;
const leadParts = 10;
/** Kept beyond the expiry of its last token, for processes whose clocks differ. */
const graceMs = 60_000;

/** How long a key is published before it signs, in milliseconds. */
export function leadMs(signingKeySeconds: number): number {
  const periodMs = signingKeySeconds * 1000;
  return Math.max(periodMs / leadParts, Math.min(hourMs, periodMs / 2));
}

/** Returns the last key whose `signsFrom` has passed, or else the first. */
export function signingAt<K extends Pick<StoredKey, 'signsFrom'>>(
  keys: readonly K[],
  now: number,
): K | undefined {
  return keys.findLast((key) => key.signsFrom <= now) ?? keys[0];
}

/** Returns `signsFrom` of the next key, if it is time to create one. */
export function nextSignsFrom(ring: Ring, times: RingTimes, now: number): number | undefined {
  const last = ring.keys.at(-1);
  if (last === undefined) return now;
  if (last.signsFrom > now) return undefined;
  const lead = leadMs(times.signingKeySeconds);
  const due = last.signsFrom + times.signingKeySeconds * 1000;
  return now >= due - lead ? Math.max(due, now + lead) : undefined;
}

export function withoutSpent(ring: Ring, times: RingTimes, now: number): Ring {
  const { keys } = ring;
  const kept = keys.filter((_key, at) => {
    const successor = keys[at + 1];
    return successor === undefined || successor.signsFrom + times.accessTokenSeconds * 1000 + graceMs > now;
  });
  return kept.length === keys.length ? ring : { ...ring, keys: kept };
}

export type SigningAlgorithm = 'EdDSA' | 'ES256' | 'RS256';

export type StoredKey = {
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  /** Milliseconds since the epoch; the key signs from then until the next one does. */
  readonly signsFrom: number;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
};

export type SigningKey = Pick<StoredKey, 'kid' | 'algorithm' | 'signsFrom'> & {
  readonly publicKey: CryptoKey;
  readonly privateKey: CryptoKey;
  /** Entry of the JWK set (RFC 7517 §4), without private members. */
  readonly published: JWK;
};

/**
 * Generates a key pair (RFC 7518 §3, RFC 8037). The private key is stored, because every process signs with it; it is the only stored
 * secret that is not a digest.
 * @param kid unique
 * @param signsFrom milliseconds since the epoch
 */
export async function makeSigningKey(
  algorithm: SigningAlgorithm,
  kid: string,
  signsFrom: number,
): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return {
    kid,
    algorithm,
    signsFrom,
    publicJwk: await exportJWK(publicKey),
    privateJwk: await exportJWK(privateKey),
  };
}

export async function importSigningKey(stored: StoredKey): Promise<SigningKey> {
  const { kid, algorithm, signsFrom, publicJwk, privateJwk } = stored;
  const [publicKey, privateKey] = await Promise.all([
    importJWK(publicJwk, algorithm),
    importJWK(privateJwk, algorithm),
  ]);
  if (publicKey instanceof Uint8Array || privateKey instanceof Uint8Array) {
    throw new Error('a signing key must be a key pair, not a shared secret');
  }
  const published = { ...publicMembers(publicJwk), kid, alg: algorithm, use: 'sig' };
  return { kid, algorithm, signsFrom, publicKey, privateKey, published };
}

/** Copies members by name, so that no other member of a stored key is published. */
function publicMembers({ kty, crv, x, y, n, e }: JWK): JWK {
  return {
    ...(kty === undefined ? {} : { kty }),
    ...(crv === undefined ? {} : { crv }),
    ...(x === undefined ? {} : { x }),
    ...(y === undefined ? {} : { y }),
    ...(n === undefined ? {} : { n }),
    ...(e === undefined ? {} : { e }),
  };
}
