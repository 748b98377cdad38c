/**
 * The keys that verify a sender's messages: prepared once from its secrets, and again when a secret is rotated or
 * expires (§6.7).
 */
import {
  createHash,
  createHmac,
  createSecretKey,
  type Hash,
  type Hmac,
  hash,
  type KeyObject,
} from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { DeclaredSender } from '../../config/senders.ts';
import { publicKeyOf } from '../signature/ed25519.ts';
import { type MacPrimitives, type PreparedKeys, prepareKeys } from '../signature/mac-keys.ts';
import {
  createKeyDiscovery,
  ed25519By,
  type FetchKeys,
  type VerifyEd25519,
} from '../signature/trusted-keys.ts';
import type { SenderSecret, SenderSecrets } from './sender-secrets.ts';

/** Returns the keys that are valid at a time (ms since the epoch); undefined: no signature is valid. */
export type SenderKeys = (now: number) => PreparedKeys<KeyObject> | undefined;

export function createSenderKeys(
  sender: DeclaredSender,
  secrets: Pick<SenderSecrets, 'of'>,
  primitives: MacPrimitives<KeyObject>,
): SenderKeys {
  const { signature } = sender.rule;
  const takesOthers = signature.kind === 'hmac' && signature.asymmetricPrefix !== undefined;
  const name = { sender: sender.name, use: 'receive' } as const;
  let madeOf: readonly SenderSecret[] | undefined;
  let goodUntil = Number.NEGATIVE_INFINITY;
  let keys: PreparedKeys<KeyObject> | undefined;
  return (now) => {
    const given = secrets.of(name);
    if (given === madeOf && now < goodUntil) return keys;
    const holding = given.filter(({ until }) => until === null || now < until);
    const texts = holding.map(({ secret }) => secret);
    keys = texts.length === 0 && !takesOthers ? undefined : prepareKeys(signature, texts, primitives);
    madeOf = given;
    goodUntil = Math.min(...holding.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    return keys;
  };
}

/*
 * Ed25519 verification for a sender (§5.6, `v1a`): by keys of the configuration, and by keys that the sender publishes.
 */

/** @returns undefined if the sender's rule has no such keys @param fetchKeys fetches through the egress guard */
export function createSenderEd25519(
  { rule, publicKeys, keysUrl }: DeclaredSender,
  fetchKeys: FetchKeys | undefined,
  nowMs: () => number,
): VerifyEd25519 | undefined {
  if (rule.signature.kind !== 'hmac' || rule.signature.asymmetricPrefix === undefined) return undefined;
  const discovery =
    keysUrl === undefined || fetchKeys === undefined
      ? undefined
      : createKeyDiscovery({ url: keysUrl.href, fetch: fetchKeys, nowMs });
  return ed25519By(
    publicKeys.map((key) => publicKeyOf(key)),
    discovery,
  );
}

/*
 * HMAC and digests by node:crypto, synchronously: for a message of 1 KiB this takes a fifth of the time of Web Crypto.
 * Long messages are hashed in slices, one per turn of the event loop for all messages together: 25 MiB take 20 to 100
 * ms, and unauthenticated clients can send them.
 */

/** Synchronous, for any length. */
export const nodeMac: MacPrimitives<KeyObject> = {
  importKey: (octets) => createSecretKey(octets),
  mac(key, algorithm, parts) {
    const hmac = createHmac(algorithm, key);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  },
  sha256: (content) => hash('sha256', content, 'buffer'),
};

/** Octets of one slice: one or two milliseconds. */
const sliceBytes = 1024 * 1024;

/** The same, in slices for long content. */
export function createSlicedMac(): MacPrimitives<KeyObject> {
  let line: Promise<unknown> = Promise.resolve();

  /** One turn of the event loop for each slice of any message. */
  function nextTurn(): Promise<unknown> {
    line = line.then(() => setImmediate());
    return line;
  }

  async function digestInSlices(made: Hash | Hmac, parts: readonly Uint8Array[]): Promise<Uint8Array> {
    for (const part of parts) {
      for (let at = 0; at < part.length; at += sliceBytes) {
        await nextTurn();
        made.update(part.subarray(at, at + sliceBytes));
      }
    }
    return made.digest();
  }

  return {
    importKey: nodeMac.importKey,
    mac(key, algorithm, parts) {
      if (parts.every(({ length }) => length <= sliceBytes)) return nodeMac.mac(key, algorithm, parts);
      return digestInSlices(createHmac(algorithm, key), parts);
    },
    sha256(content) {
      if (content.length <= sliceBytes) return nodeMac.sha256(content);
      return digestInSlices(createHash('sha256'), [content]);
    },
  };
}
