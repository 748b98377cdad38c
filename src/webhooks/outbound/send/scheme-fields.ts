/**
 * The header fields of each scheme (§5.6) over one body: a fresh timestamp and fresh signatures for each attempt (§6.8), one signature for
 * each secret that is active at that moment (§6.7).
 *
 * The plain scheme's field holds one signature, and whoever checks it compares the whole of it. So `X-Hub-Signature-256` has that of the
 * current secret, and those of secrets that are being replaced stand in a field of their own.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { plainHeader } from '../../signature/plain.ts';
import { standardPrefix, standardSignature } from '../../signature/standard.ts';
import { timestampedHeader, timestampedPrefix } from '../../signature/timestamped.ts';
import type { Claim } from '../claim.ts';

export type Signed = {
  readonly delivery: Pick<Claim['delivery'], 'id' | 'eventType'>;
  readonly body: Uint8Array;
  /** The current one first. */
  readonly keys: readonly KeyObject[];
  /** Unix seconds. */
  readonly timestamp: number;
};

/** Names and values in turn. */
export function timestampedFields({ body, keys, timestamp }: Signed): string[] {
  const prefix = timestampedPrefix(timestamp);
  const signatures = keys.map((key) => createHmac('sha256', key).update(prefix).update(body).digest('hex'));
  return ['Service-Signature', timestampedHeader(timestamp, signatures)];
}

/** Names and values in turn. */
export function plainFields({ delivery, body, keys }: Signed): string[] {
  const [current = '', ...previous] = keys.map((key) =>
    plainHeader(createHmac('sha256', key).update(body).digest('hex')),
  );
  return [
    ...['X-Hub-Signature-256', current],
    ...(previous.length === 0 ? [] : ['X-Hub-Signature-256-Previous', previous.join(',')]),
    ...['X-Service-Event', fieldText(delivery.eventType)],
    ...['X-Service-Delivery', delivery.id],
  ];
}

/** Names and values in turn. @param asymmetric signatures in base64 of each key that signs now, over the same id, time and body */
export function standardFields(
  { body, keys, timestamp }: Signed,
  id: string,
  asymmetric: readonly string[],
): string[] {
  const prefix = standardPrefix(id, timestamp);
  const list = keys.map((key) =>
    standardSignature('v1', createHmac('sha256', key).update(prefix).update(body).digest('base64')),
  );
  for (const signature of asymmetric) list.push(standardSignature('v1a', signature));
  return ['webhook-id', id, 'webhook-timestamp', String(timestamp), 'webhook-signature', list.join(' ')];
}

/** What the id of an event is in `webhook-id`. A full stop ends the id in what is signed, so none may be in it. */
export function messageId(eventId: string): string {
  return fieldText(eventId).replaceAll('.', '%2E');
}

const visible = /^[!-~]+$/;

/** Types and ids are chosen by who posts an event; what no field can hold is written as in a URL. */
function fieldText(text: string): string {
  return visible.test(text) ? text : encodeURIComponent(text.toWellFormed());
}
