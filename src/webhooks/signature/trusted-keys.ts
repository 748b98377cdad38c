/**
 * The public keys by which a receiver verifies a sender's signatures: given ones, and those that the sender publishes.
 */
import { anyMade, type PublicKey, readJwk, type SignedOctets } from './key-pair.ts';
import { type BodyReader, readBounded } from './octets.ts';
import type { KeyAlgorithm } from './signature-rule.ts';

/**
 * Returns true if one of the keys made one of the signatures. @throws KeyDiscoveryError if published keys are needed
 * and unavailable
 */
export type VerifyByKeys = (signed: SignedOctets) => Promise<boolean>;

/** Undefined: no signature of a key pair is accepted. @param publicKeys from `publicKeyOf` @param discovery of keys of the algorithm */
export function verifyingBy(
  publicKeys: readonly PublicKey[],
  discovery: KeyDiscovery | undefined,
  algorithm: KeyAlgorithm = 'ed25519',
): VerifyByKeys | undefined {
  if (publicKeys.length === 0 && discovery === undefined) return undefined;
  return async (signed) => {
    if (await anyMade(algorithm, publicKeys, signed)) return true;
    if (discovery === undefined) return false;
    const known = await discovery.keys();
    if (await anyMade(algorithm, known, signed)) return true;
    const renewed = await discovery.renew();
    return renewed !== known && anyMade(algorithm, renewed, signed);
  };
}

/*
 * The keys that a sender publishes as a JWK set (RFC 7517 §5), such as Comity's at `/.well-known/jwks.json`.
 * They are cached, and fetched again when they are old or match no signature, at a bounded rate, so that forged
 * messages cannot cause many requests. Only keys from the one URL that the receiver chose are trusted: nothing in a
 * message names a key.
 */

declare const fetch: FetchKeys;
declare const AbortSignal: { timeout(ms: number): never };
declare const TextDecoder: { new (): { decode(octets: Uint8Array): string } };

/** The used part of `fetch`, which every runtime provides. */
export type FetchKeys = (url: string, init: FetchKeysInit) => Promise<FetchedKeys>;
export type FetchKeysInit = {
  readonly headers: Record<string, string>;
  readonly redirect: 'manual';
  /** An AbortSignal. This folder uses the types of no runtime, and `never` fits all of them. */
  readonly signal: never;
};
export type FetchedKeys = {
  readonly status: number;
  readonly body: { getReader(): BodyReader } | null;
};

export type KeyDiscoveryOptions = {
  /** The URL of the JWK set. Use https, unless you trust the network. */
  readonly url: string;
  /** The algorithm of the keys that count. Default `ed25519`. */
  readonly algorithm?: KeyAlgorithm | undefined;
  /** Reads the keys of a response. Default: as a JWK set. @throws Error if they cannot be used */
  readonly read?: ((content: Uint8Array) => readonly PublicKey[]) | undefined;
  /** Default: the runtime's. */
  readonly fetch?: FetchKeys | undefined;
  /** Time for which fetched keys are used. Default 300, the cache lifetime of Comity's own set. */
  readonly freshSeconds?: number | undefined;
  /** Minimum interval of requests, whatever their outcome. Default 30. */
  readonly againSeconds?: number | undefined;
  /** Time for which keys are used while they cannot be fetched. Default 86,400. */
  readonly staleSeconds?: number | undefined;
  /** For a whole request. Default 5000. */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: (() => number) | undefined;
};

export type KeyDiscovery = {
  /** Returns the keys; fetches them if there are none or they are old. @throws KeyDiscoveryError */
  keys(): Promise<readonly PublicKey[]>;
  /** Fetches the keys, unless that was done within `againSeconds`. @throws KeyDiscoveryError */
  renew(): Promise<readonly PublicKey[]>;
};

/** A sender's keys are unavailable. Not the message's fault: respond with 503, so that the sender retries. */
export class KeyDiscoveryError extends Error {
  override readonly name = 'KeyDiscoveryError';
}

const answerBytesMax = 64 * 1024;
/**
 * Each costs a try for each signature. Comity has one or two, in addition to those of its tokens; more if they are
 * replaced every minute.
 */
const keysMax = 32;

/**
 * Creates a key discovery. It fetches nothing before the first signature. Create one for each sender and keep it,
 * because it holds the cache.
 */
export function createKeyDiscovery(options: KeyDiscoveryOptions): KeyDiscovery {
  const { freshSeconds = 300, againSeconds = 30, staleSeconds = 86_400, nowMs = Date.now } = options;
  let known: readonly PublicKey[] | undefined;
  let knownAt = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let failure: KeyDiscoveryError | undefined;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    askedAt = nowMs();
    try {
      known = await fetchKeys(options);
      knownAt = askedAt;
      failure = undefined;
    } catch (error) {
      failure = new KeyDiscoveryError(`the keys cannot be fetched from ${options.url}`, { cause: error });
    }
  }

  async function renew(): Promise<readonly PublicKey[]> {
    if (asking === undefined && nowMs() - askedAt >= againSeconds * 1000) {
      asking = ask().finally(() => {
        asking = undefined;
      });
    }
    await asking;
    if (known !== undefined && nowMs() - knownAt < staleSeconds * 1000) return known;
    throw failure ?? new KeyDiscoveryError(`the keys from ${options.url} are too old`);
  }

  return {
    renew,
    async keys() {
      return known !== undefined && nowMs() - knownAt < freshSeconds * 1000 ? known : renew();
    },
  };
}

async function fetchKeys(options: KeyDiscoveryOptions): Promise<readonly PublicKey[]> {
  const { url, algorithm, read, fetch: ask = fetch, timeoutMs = 5000 } = options;
  const answer = await ask(url, {
    headers: { accept: read === undefined ? 'application/jwk-set+json, application/json' : '*/*' },
    // Only the chosen URL may supply keys.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const reader = answer.body?.getReader();
  if (answer.status !== 200) {
    await reader?.cancel();
    throw new Error(`the response has the status ${answer.status}`);
  }
  const content = reader === undefined ? new Uint8Array() : await readBounded(reader, answerBytesMax);
  if (read !== undefined) return read(content);
  return readKeySet(JSON.parse(new TextDecoder().decode(content)), algorithm);
}

function readKeySet(set: unknown, algorithm: KeyAlgorithm = 'ed25519'): readonly PublicKey[] {
  const keys: unknown = isRecord(set) ? set.keys : undefined;
  if (!Array.isArray(keys)) throw new Error('the response is not a JWK set');
  const found = keys.map((key) => readJwk(key, algorithm)).filter((key) => key !== undefined);
  if (found.length > keysMax) throw new Error(`the JWK set has more than ${keysMax} keys for ${algorithm}`);
  return found;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
