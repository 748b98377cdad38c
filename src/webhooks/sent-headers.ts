/**
 * The header fields of outgoing requests: those of each scheme, and those that a user may add by an endpoint's
 * `headers` or by a sender's forwarding.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { reservedHeaderNames } from '../config/reserved-names.ts';
import { isToken } from '../http/syntax/field-value.ts';
import type { Delivery } from '../model/delivery.ts';
import type { Scheme } from '../model/endpoint.ts';
import {
  plainHeader,
  standardPrefix,
  standardSignature,
  timestampedHeader,
  timestampedPrefix,
} from './signature/schemes.ts';

// The header fields of each scheme (§5.6) over one body: a fresh timestamp and fresh signatures for each attempt
// (§6.8), one signature for each active secret (§6.7).
//
// The plain scheme's field holds one signature, which receivers compare as a whole. So `X-Hub-Signature-256` has that
// of the current secret, and a field of its own has those of secrets that are being replaced.
//

export type Signed = {
  readonly delivery: Pick<Delivery, 'id' | 'eventType'>;
  readonly body: Uint8Array;
  /** The current one first. */
  readonly keys: readonly KeyObject[];
  /** Unix seconds. */
  readonly timestamp: number;
};

/**
 * The fields of each scheme, as alternating names and values.
 * @param id of the event, for `webhook-id`
 * @param asymmetric as `standardFields` takes them; none by default
 */
export const signedFields: Readonly<
  Record<Scheme, (signed: Signed, id: string, asymmetric?: readonly string[]) => string[]>
> = {
  standard: (signed, id, asymmetric = []) => standardFields(signed, messageId(id), asymmetric),
  timestamped: timestampedFields,
  plain: plainFields,
};

function timestampedFields({ body, keys, timestamp }: Signed): string[] {
  const prefix = timestampedPrefix(timestamp);
  const signatures = keys.map((key) => createHmac('sha256', key).update(prefix).update(body).digest('hex'));
  return ['Service-Signature', timestampedHeader(timestamp, signatures)];
}

function plainFields({ delivery, body, keys }: Signed): string[] {
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

/** @param asymmetric signatures in base64 of each key that signs now, over the same id, time and body */
function standardFields(
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

/**
 * Converts the id of an event for `webhook-id`. A full stop ends the id in the signed content, so the id must not
 * contain one.
 */
export function messageId(eventId: string): string {
  return fieldText(eventId).replaceAll('.', '%2E');
}

const visible = /^[!-~]+$/;

/** Percent-encodes texts that no field can hold: clients choose types and ids of events. */
function fieldText(text: string): string {
  return visible.test(text) ? text : encodeURIComponent(text.toWellFormed());
}

// Header fields that a user may add. Reserved: fields that frame the message, that belong to the connection (RFC 9110
// §7.6.1), and by which a receiver authenticates the sender (§5.6).
//

export const headerNameCharactersMax = 128;

export type HeaderBounds = { readonly headersMax: number; readonly valueCharactersMax: number };

/** Returns why an endpoint may not have these fields; undefined: it may. Names are compared without case. */
export function refuseHeaders(
  headers: Readonly<Record<string, string>>,
  { headersMax, valueCharactersMax }: HeaderBounds,
): string | undefined {
  const entries = Object.entries(headers);
  if (entries.length > headersMax) return `there must be at most ${headersMax} header fields`;
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, headerNameCharactersMax));
    if (name.length > headerNameCharactersMax || !isToken(name))
      return `${shown} is not the name of a header field`;
    const folded = name.toLowerCase();
    if (reservedHeaderNames.has(folded)) return `${shown} is a field that Comity sets itself`;
    if (seen.has(folded)) return `${shown} is declared twice`;
    seen.add(folded);
    if (value.length > valueCharactersMax)
      return `the value of ${shown} has more than ${valueCharactersMax} characters`;
    if (!isFieldValue(value))
      return `the value of ${shown} has a character that is not allowed in a header field`;
  }
  return undefined;
}

/** Alternating names and values of the fields that may be sent, whatever is stored. */
export function ownFields(headers: Readonly<Record<string, string>> | undefined): readonly string[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    const isOwn = isToken(name) && !reservedHeaderNames.has(name.toLowerCase()) && isFieldValue(value);
    return isOwn ? [name, value] : [];
  });
}

/**
 * RFC 9110 §5.5: visible ASCII, spaces and tabs between. No line breaks and no NUL, so a value cannot end its field.
 */
const fieldValue = /^[!-~](?:[\t -~]*[!-~])?$/;

function isFieldValue(value: string): boolean {
  return value === '' || fieldValue.test(value);
}
