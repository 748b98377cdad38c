/**
 * The header fields of a forwarded message, in layers of which none can stand in for one before it:
 * - what describes the body, which is the sender's: `Content-Type` and `Content-Encoding` as they came;
 * - the signatures of the scheme, with the id of the message in `webhook-id` or `X-Service-Delivery`, the same at each attempt;
 * - where it came from: `Comity-Sender`, `Comity-Dedupe-Key`, `Comity-Type`, `Comity-Received-At`, `Comity-Attempt`;
 * - what the configuration adds, and then what the sender's rule keeps of its own fields.
 *
 * Signatures cover the body (and id and time with it), not these fields: who must not be fooled about the sender gives each its own secret.
 */

import type { KeyObject } from 'node:crypto';
import { reservedHeaderNames } from '../../../config/reserved-names.ts';
import { isToken } from '../../../http/syntax/token.ts';
import { ownFields } from '../../outbound/send/reserved-headers.ts';
import {
  messageId,
  plainFields,
  type Signed,
  standardFields,
  timestampedFields,
} from '../../outbound/send/scheme-fields.ts';
import type { Claimed } from '../hand-on.ts';

/** What the names of the fields begin with that say where a message came from, in lower case. */
export const originPrefix = 'comity-';

export type Signing = {
  readonly body: Uint8Array;
  /** The current one first. */
  readonly keys: readonly KeyObject[];
  /** Unix seconds. */
  readonly timestamp: number;
  readonly version: string;
};

export type ForwardHeaders = {
  readonly scheme: 'standard' | 'timestamped' | 'plain';
  readonly headers: Readonly<Record<string, string>>;
};

/** Names and values in turn. */
export function forwardFields(
  { sender, received, content, attempt }: Claimed,
  { scheme, headers }: ForwardHeaders,
  { version, ...signing }: Signing,
): readonly string[] {
  const delivery = { id: received.id, eventType: received.type ?? '' };
  const fields = [
    ...asItCame('Content-Type', content.contentType),
    ...asItCame('Content-Encoding', content.contentEncoding),
    ...['User-Agent', `Comity/${version}`],
    ...schemeFields(scheme, { ...signing, delivery }),
    ...['Comity-Sender', sender.name],
    ...field('Comity-Dedupe-Key', received.dedupeKey),
    ...field('Comity-Type', received.type),
    ...['Comity-Received-At', received.receivedAt],
    ...['Comity-Attempt', String(attempt)],
  ];
  const names = new Set<string>();
  for (let at = 0; at < fields.length; at += 2) names.add(fields[at]?.toLowerCase() ?? '');
  for (const own of [headers, content.headers]) addOwn(fields, own, names);
  return fields;
}

/** Whether a configuration may add the field to what is forwarded; the bounds on its value are not looked at. */
export function isForwardable(name: string): boolean {
  const folded = name.toLowerCase();
  return isToken(name) && !reservedHeaderNames.has(folded) && !folded.startsWith(originPrefix);
}

function schemeFields(scheme: ForwardHeaders['scheme'], signed: Signed): readonly string[] {
  switch (scheme) {
    case 'standard':
      return standardFields(signed, messageId(signed.delivery.id), []);
    case 'timestamped':
      return timestampedFields(signed);
    case 'plain':
      return withoutEmpty(plainFields(signed));
  }
}

/** A message without a type has no field for it. */
function withoutEmpty(fields: readonly string[]): readonly string[] {
  return fields.filter((_, at) => fields[at % 2 === 0 ? at + 1 : at] !== '');
}

/** Those that are nobody else's. Names that differ in case alone are the same field. */
function addOwn(fields: string[], own: Readonly<Record<string, string>>, names: Set<string>): void {
  const pairs = ownFields(own);
  for (let at = 0; at < pairs.length; at += 2) {
    const [name = '', value = ''] = pairs.slice(at, at + 2);
    const folded = name.toLowerCase();
    if (names.has(folded) || !isForwardable(name)) continue;
    names.add(folded);
    fields.push(name, value);
  }
}

/** Visible ASCII with spaces and tabs between: a value that cannot end its field. */
const fieldValue = /^[!-~](?:[\t -~]*[!-~])?$/;

/** Left out where no field that we send could hold it. */
function asItCame(name: string, value: string | null): readonly string[] {
  return value !== null && fieldValue.test(value) ? [name, value] : [];
}

/** Names and values in turn. What no field can hold is written as in a URL. */
function field(name: string, value: string | null): readonly string[] {
  if (value === null || value === '') return [];
  return [name, fieldValue.test(value) ? value : encodeURIComponent(value.toWellFormed())];
}
