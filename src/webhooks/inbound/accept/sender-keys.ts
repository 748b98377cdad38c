/**
 * What a sender's messages are verified with: keys made of its secrets once, and again when one was rotated or its time is over (§6.7).
 */
import type { KeyObject } from 'node:crypto';
import type { DeclaredSender } from '../../../config/senders.ts';
import { type MacPrimitives, type PreparedKeys, prepareKeys } from '../../signature/prepared-keys.ts';
import type { SenderSecret, SenderSecrets } from '../sender-secrets.ts';

/** The keys that hold at a time (ms since the epoch); undefined: nothing is signed so that it would be believed. */
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
