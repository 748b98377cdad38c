/**
 * Digests of content and of representations: RFC 9530. `Content-Digest` and `Repr-Digest` (§2, §3) to octets and back, and the wish of
 * `Want-Repr-Digest` (§4). Of the algorithms, those of the section "Active" in its registry.
 */
import { type BareItem, type Dictionary, parseDictionary, serializeByteSequence } from 'structured-headers';

export type DigestAlgorithm = 'sha-256' | 'sha-512';

const digestBytes: Readonly<Record<DigestAlgorithm, number>> = { 'sha-256': 32, 'sha-512': 64 };

/**
 * The digests in a field; other algorithms are left out, so the map may be empty (RFC 9530 §2). Undefined if the field is malformed, or a
 * digest has another length than its algorithm gives.
 */
export function parseDigests(value: string): ReadonlyMap<DigestAlgorithm, Uint8Array> | undefined {
  const members = parseMembers(value);
  if (members === undefined) return undefined;
  const digests = new Map<DigestAlgorithm, Uint8Array>();
  for (const [name, [bare]] of members) {
    if (!isAlgorithm(name)) continue;
    const octets = octetsOf(bare);
    if (octets?.length !== digestBytes[name]) return undefined;
    digests.set(name, octets);
  }
  return digests;
}

/** Writes a field with one digest: `sha-256=:...:`. */
export function formatDigest(algorithm: DigestAlgorithm, octets: Uint8Array): string {
  return `${algorithm}=${serializeByteSequence(new Uint8Array(octets))}`;
}

/** The largest weight of `Want-Repr-Digest`; 0 refuses the algorithm (RFC 9530 §4). */
const weightMax = 10;

/** True if a `Want-` field asks for the algorithm. A malformed field asks for nothing: it is only a wish. */
export function wantsDigest(value: string, algorithm: DigestAlgorithm): boolean {
  const [weight] = parseMembers(value)?.get(algorithm) ?? [0];
  return typeof weight === 'number' && Number.isInteger(weight) && weight >= 1 && weight <= weightMax;
}

function isAlgorithm(name: string): name is DigestAlgorithm {
  return Object.hasOwn(digestBytes, name);
}

function octetsOf(bare: BareItem | readonly unknown[]): Uint8Array | undefined {
  return bare instanceof ArrayBuffer ? new Uint8Array(bare) : undefined;
}

function parseMembers(value: string): Dictionary | undefined {
  try {
    return parseDictionary(value);
  } catch {
    // The package throws for every malformed value.
    return undefined;
  }
}
