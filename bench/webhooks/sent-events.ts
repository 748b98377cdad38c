/**
 * What the measurements of webhooks send: events about one product each, of about 400 bytes, the same for Comity, the floors and the
 * peer. Pure: an index in, text out.
 */
import { eventDocument } from '../../src/model/event.ts';
import { productDocument, productId } from '../product.ts';

/** Every endpoint of the benchmark has it. */
export const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLw3tR8mQ2vYx1aA=';
export const secretKey = Buffer.from(secret.slice('whsec_'.length), 'base64');

/** No endpoint asks for it, so that nothing is made of it but what is seeded. */
export const seededType = 'seeded.created';

export function eventId(index: number): string {
  return `evt_${productId(index)}`;
}

export function eventText(index: number): string {
  return eventDocument(eventId(index), seededType, 1_790_000_000_000, productDocument(index));
}

/** What is posted to `/events`; `sentAt` is what the receiver subtracts. @param at milliseconds since the epoch with fractions */
export function postedText(index: number, type: string, at: number): string {
  return `{"type":"${type}","data":{"object":{"sentAt":${at.toFixed(3)},"product":${productDocument(index)}}}}`;
}

const mark = '"sentAt":';

/** Undefined in what does not say when it was sent. */
export function sentAtOf(body: string): number | undefined {
  const at = body.indexOf(mark);
  return at < 0 ? undefined : Number.parseFloat(body.slice(at + mark.length, at + mark.length + 24));
}
