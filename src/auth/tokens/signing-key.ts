/**
 * One key pair that signs access tokens (RFC 7518 §3, RFC 8037): as it is stored, as it is used, and as it is published. The private
 * half stands in the store, since every process must sign with it: it is the one secret there that is no digest.
 */
import { exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';

export type SigningAlgorithm = 'EdDSA' | 'ES256' | 'RS256';

export type StoredKey = {
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  /** Milliseconds since the epoch: from then on it signs, until the next one does. */
  readonly signsFrom: number;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
};

export type SigningKey = Pick<StoredKey, 'kid' | 'algorithm' | 'signsFrom'> & {
  readonly publicKey: CryptoKey;
  readonly privateKey: CryptoKey;
  /** As an entry of the JWK set (RFC 7517 §4): no private member can be in it. */
  readonly published: JWK;
};

/** @param kid a name that no other key has @param signsFrom milliseconds since the epoch */
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
    throw new Error('a signing key is a pair, not a shared secret');
  }
  const published = { ...publicMembers(publicJwk), kid, alg: algorithm, use: 'sig' };
  return { kid, algorithm, signsFrom, publicKey, privateKey, published };
}

/** Named one by one: whatever else a stored key may hold stays here. */
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
