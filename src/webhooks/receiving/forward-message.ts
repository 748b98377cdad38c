/**
 * Forwards a message to a URL of the user's (§4.14.5): the body as it came with its Content-Type and Content-Encoding, the fields that the
 * sender's rule keeps, and signatures of our own in place of the sender's, over one of the three schemes (§5.6). Through the egress guard
 * and with the bounds of the sending side. A 2xx is the acknowledgement, everything else has failed; when it is tried again is not said here.
 *
 * No `v1a` signatures: those are of what the program itself tells.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { reservedHeaderNames } from '../../config/reserved-names.ts';
import type { DeclaredSender, HandOnTo } from '../../config/senders.ts';
import type { Exchange, ExchangeOutcome } from '../../egress/exchange.ts';
import { isToken } from '../../http/syntax/token.ts';
import {
  messageId,
  ownFields,
  plainFields,
  type Signed,
  standardFields,
  timestampedFields,
} from '../sent-headers.ts';
import { standardKey, textKey } from '../signature/mac-keys.ts';
import { retryAfter } from '../work/schedule.ts';
import { emptyUnit } from './conclude-received.ts';
import type { Claimed, HandedOn, HandOn } from './hand-on.ts';
import type { SenderSecret, SenderSecrets } from './sender-secrets.ts';

export type ForwardOptions = {
  readonly exchange: Exchange;
  readonly secrets: Pick<SenderSecrets, 'of'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Of the program, for `User-Agent`. */
  readonly version: string;
  /** In which the receiver must answer. */
  readonly webhookTimeoutMs: number;
  /** A longer Retry-After is cut to this. */
  readonly webhookRetryAfterSecondsMax: number;
};

export type ForwardTo = Extract<HandOnTo, { readonly kind: 'forward' }>;

type TimedKey = { readonly key: KeyObject; readonly until: number | null };

/** Statuses with which Retry-After is read, as on the sending side. */
const slowing: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** One for all senders that forward. @throws TypeError where it is given a message of a sender that does not */
export function createForward(options: ForwardOptions): HandOn {
  const { exchange, clock, webhookTimeoutMs } = options;
  const keysOf = createKeys(options.secrets);
  return async (claimed, signal) => {
    const { handOn: to, name } = claimed.sender;
    if (to.kind !== 'forward') throw new TypeError(`${name} does not forward`);
    const keys = keysOf(claimed.sender, to, clock());
    if (typeof keys === 'string') return failed('refused', keys);
    const body = Buffer.from(claimed.content.body, 'base64');
    const timestamp = Math.floor(clock() / 1000);
    const fields = forwardFields(claimed, to, { body, keys, timestamp, version: options.version });
    const outcome = await exchange({
      ...{ url: to.url, method: 'POST', fields, body, timeoutMs: webhookTimeoutMs, signal },
      share: `sender/${name}`,
    });
    return handedOn(outcome, clock(), options.webhookRetryAfterSecondsMax);
  };
}

/** The keys of the secrets that are active, made once for each state of them; a text says why there are none. */
function createKeys(
  secrets: Pick<SenderSecrets, 'of'>,
): (sender: DeclaredSender, to: ForwardTo, now: number) => readonly KeyObject[] | string {
  const made = new WeakMap<readonly SenderSecret[], readonly TimedKey[]>();
  return ({ name }, { scheme }, now) => {
    const all = secrets.of({ sender: name, use: 'forward' });
    let keys = made.get(all);
    if (keys === undefined) {
      const keyOf = scheme === 'standard' ? standardKey : textKey;
      try {
        keys = all.map(({ secret, until }) => ({ key: createSecretKey(keyOf(secret)), until }));
      } catch (error) {
        return error instanceof Error ? error.message : 'a secret cannot be used';
      }
      made.set(all, keys);
    }
    const active = keys.filter(({ until }) => until === null || until > now).map(({ key }) => key);
    return active.length === 0 ? 'there is no secret to sign with' : active;
  };
}

function handedOn(outcome: ExchangeOutcome, at: number, retryAfterSecondsMax: number): HandedOn {
  if (outcome.kind === 'failed') {
    return outcome.failure === 'aborted' ? { outcome: 'aborted' } : failed(outcome.failure, outcome.message);
  }
  const { status, fields, snippet } = outcome;
  if (status >= 200 && status <= 299) {
    return { outcome: 'processed', unit: emptyUnit, statusCode: status };
  }
  return {
    ...failed('status', snippet === '' ? `answered ${status}` : `answered ${status}: ${snippet}`),
    statusCode: status,
    notBefore: slowing.has(status) ? retryAfter(fields, at, retryAfterSecondsMax) : null,
  };
}

function failed(error: string, message: string): Extract<HandedOn, { outcome: 'failed' }> {
  return { outcome: 'failed', error, message, statusCode: null, permanent: false, notBefore: null };
}

/*
 * The header fields of a forwarded message, in layers of which none can stand in for one before it:
 * - what describes the body, which is the sender's: `Content-Type` and `Content-Encoding` as they came;
 * - the signatures of the scheme, with the id of the message in `webhook-id` or `X-Service-Delivery`, the same at each attempt;
 * - where it came from: `Comity-Sender`, `Comity-Dedupe-Key`, `Comity-Type`, `Comity-Received-At`, `Comity-Attempt`;
 * - what the configuration adds, and then what the sender's rule keeps of its own fields.
 *
 * Signatures cover the body (and id and time with it), not these fields: who must not be fooled about the sender gives each its own secret.
 */

/** What the names of the fields begin with that say where a message came from, in lower case. */
const originPrefix = 'comity-';

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
function forwardFields(
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
