/**
 * The messages that the receiver is measured with: one of 1 KiB for each key, signed by one of three schemes, the same for Comity and for
 * the floors. Keys are spread evenly over their space, as those of real senders are, so that each is found in another place of an index.
 * Pure: a key in, text out.
 */
import { productDocument } from '../product.ts';
import { secret, secretKey } from '../webhooks/sent-events.ts';

export const schemes = ['standard', 'timestamped', 'plain'] as const;
export type SigningScheme = (typeof schemes)[number];

/** The senders of `comity.config.ts`. */
export const senderNames = ['standard', 'timestamped', 'plain', 'handled', 'waiting', 'looping'] as const;

export const webhooksPath = '/api/v1/webhooks';
export const keyDigits = 24;
/** Stands where the key goes. */
export const keyMark = 'k'.repeat(keyDigits);
export const messageType = 'invoice.paid';

const bodyBytes = 1024;
/** Half of the digits of a seeded key say its place, the other half what it is told apart by. */
const placeDigits = 12;

/** What of the secret is the key of the HMAC. */
export function hmacKey(scheme: SigningScheme): Uint8Array {
  return scheme === 'standard' ? secretKey : Buffer.from(secret);
}

/** The body of every message, with `keyMark` once. */
export function messageTemplate(): string {
  const start = `{"id":"evt_${keyMark}","type":"${messageType}","data":{"object":${productDocument(1)},"memo":"`;
  return `${start.padEnd(bodyBytes - '"}}'.length, 'Paid by invoice, net 30. ')}"}}`;
}

/** What tells repetitions of the message with this key. */
export function dedupeKey(scheme: SigningScheme, key: string): string {
  return scheme === 'timestamped' ? `evt_${key}` : `msg_${key}`;
}

/** The key with this index of so many that are stored before the measurement, rising with the index. */
export function seededKey(index: number, count: number): string {
  const place = Math.floor((index / count) * 16 ** placeDigits);
  return (
    place.toString(16).padStart(placeDigits, '0') + index.toString(16).padStart(keyDigits - placeDigits, '0')
  );
}
