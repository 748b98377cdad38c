/** The Ed25519 keys that a receiver takes a sender's signatures of: those it was given, and those that the sender publishes. */
import { anyEd25519, ed25519KeyBytes } from './ed25519.ts';
import { decodeBase64Url } from './octets.ts';
import { type BodyReader, readBounded } from './read-bounded.ts';

/** Whether one of the keys made one of the signatures. @throws KeyDiscoveryError where only published keys could tell and they cannot be had */
export type VerifyEd25519 = (signatures: readonly Uint8Array[], content: Uint8Array) => Promise<boolean>;

/** Undefined: no signature by Ed25519 is taken. @param publicKeys 32 octets each, as `publicKeyOf` makes them */
export function ed25519By(
  publicKeys: readonly Uint8Array[],
  discovery: KeyDiscovery | undefined,
): VerifyEd25519 | undefined {
  if (publicKeys.length === 0 && discovery === undefined) return undefined;
  return async (signatures, content) => {
    if (await anyEd25519(publicKeys, signatures, content)) return true;
    if (discovery === undefined) return false;
    const known = await discovery.keys();
    if (await anyEd25519(known, signatures, content)) return true;
    const renewed = await discovery.renew();
    return renewed !== known && anyEd25519(renewed, signatures, content);
  };
}

/*
 * The Ed25519 keys that a sender publishes as a JWK set (RFC 7517 §5), such as Comity's at `/.well-known/jwks.json`. They are kept, asked
 * for anew when they are old or when a signature fits none of them, and that seldom, so that nobody makes a receiver ask by sending it
 * signatures. Only keys from the one URL that the receiver chose are believed: nothing in a message names a key.
 */

declare const fetch: FetchKeys;
declare const AbortSignal: { timeout(ms: number): never };
declare const TextDecoder: { new (): { decode(octets: Uint8Array): string } };

/** As much of `fetch` as is needed; that of every runtime fits. */
export type FetchKeys = (url: string, init: FetchKeysInit) => Promise<FetchedKeys>;
export type FetchKeysInit = {
  readonly headers: Record<string, string>;
  readonly redirect: 'manual';
  /** An AbortSignal. This folder knows the type of no runtime, and `never` fits all of them. */
  readonly signal: never;
};
export type FetchedKeys = {
  readonly status: number;
  readonly body: { getReader(): BodyReader } | null;
};

export type KeyDiscoveryOptions = {
  /** Of the JWK set: https, unless you trust the way there. */
  readonly url: string;
  /** That of the runtime if not given. */
  readonly fetch?: FetchKeys | undefined;
  /** How long keys are taken as they are. 300 if not said: as long as Comity lets a copy be kept. */
  readonly freshSeconds?: number | undefined;
  /** The least time between two requests, whatever came of the first. 30 if not said. */
  readonly againSeconds?: number | undefined;
  /** How long keys are used that can no longer be asked for. 86,400 if not said. */
  readonly staleSeconds?: number | undefined;
  /** For a whole request. 5000 if not said. */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds since the epoch; the runtime's clock if not said. */
  readonly nowMs?: (() => number) | undefined;
};

export type KeyDiscovery = {
  /** The keys, 32 octets each; asked for where none are known or they are old. @throws KeyDiscoveryError */
  keys(): Promise<readonly Uint8Array[]>;
  /** The keys, asked for now unless that was done a moment ago. @throws KeyDiscoveryError */
  renew(): Promise<readonly Uint8Array[]>;
};

/** The keys of a sender cannot be had now. Not the message's fault: answer 503, so that the sender tries again. */
export class KeyDiscoveryError extends Error {
  override readonly name = 'KeyDiscoveryError';
}

const answerBytesMax = 64 * 1024;
/** Each costs a try for each signature. Comity has one or two, beside those of its tokens; more where they are replaced by the minute. */
const keysMax = 32;

/** Nothing is asked for before the first signature. Make one for each sender and keep it: what it knows is in it. */
export function createKeyDiscovery(options: KeyDiscoveryOptions): KeyDiscovery {
  const { freshSeconds = 300, againSeconds = 30, staleSeconds = 86_400, nowMs = Date.now } = options;
  let known: readonly Uint8Array[] | undefined;
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
      failure = new KeyDiscoveryError(`no keys could be had from ${options.url}`, { cause: error });
    }
  }

  async function renew(): Promise<readonly Uint8Array[]> {
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

async function fetchKeys({ url, fetch: ask = fetch, timeoutMs = 5000 }: KeyDiscoveryOptions) {
  const answer = await ask(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    // Keys come from the URL that was chosen or not at all.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const reader = answer.body?.getReader();
  if (answer.status !== 200) {
    await reader?.cancel();
    throw new Error(`the answer was ${answer.status}`);
  }
  const content = reader === undefined ? new Uint8Array() : await readBounded(reader, answerBytesMax);
  return readKeySet(JSON.parse(new TextDecoder().decode(content)));
}

function readKeySet(set: unknown): readonly Uint8Array[] {
  const keys: unknown = isRecord(set) ? set.keys : undefined;
  if (!Array.isArray(keys)) throw new Error('the answer is no JWK set');
  const found = keys.map(signingKeyOf).filter((key) => key !== undefined);
  if (found.length > keysMax)
    throw new Error(`the JWK set has more than ${keysMax} keys of the curve Ed25519`);
  return found;
}

/** Undefined for keys of other kinds and for other uses (RFC 7517 §4.2 to §4.4), which a set may hold. */
function signingKeyOf(key: unknown): Uint8Array | undefined {
  if (!isRecord(key) || key.kty !== 'OKP' || key.crv !== 'Ed25519' || typeof key.x !== 'string')
    return undefined;
  if (key.use !== undefined && key.use !== 'sig') return undefined;
  if (key.alg !== undefined && key.alg !== 'EdDSA' && key.alg !== 'Ed25519') return undefined;
  if (Array.isArray(key.key_ops) && !key.key_ops.includes('verify')) return undefined;
  const octets = decodeBase64Url(key.x);
  return octets?.length === ed25519KeyBytes ? octets : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
