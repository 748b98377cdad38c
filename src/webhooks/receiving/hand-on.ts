/**
 * The contract between the receiving engine and what it hands messages to (`HandOn`), and the two that there are: functions of the
 * application on threads, and forwarding to a URL. A `HandOn` does not commit: it returns its writes, and the engine commits them with the
 * new state of the message.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { reservedHeaderNames } from '../../config/reserved-names.ts';
import type { HandOnTo, Source } from '../../config/senders.ts';
import { type Exchange, type ExchangeOutcome, exchanged } from '../../egress/exchange.ts';
import { isToken } from '../../http/syntax/field-value.ts';
import type { Task } from '../../logic/threads/handler-protocol.ts';
import { failure, type HandedOn } from '../../logic/threads/handler-protocol.ts';
import type { HandlerThreads } from '../../logic/threads/handler-threads.ts';
import { traceparentOf } from '../../model/actor.ts';
import type { Scheme } from '../../model/endpoint.ts';
import type { Received } from '../../model/received.ts';
import type { Tracing } from '../../observe/tracing.ts';
import { packageVersion } from '../../package-version.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Change, Unit } from '../../store/store.ts';
import { retryAfter } from '../../work/retries.ts';
import { ownFields, signedFields } from '../sent-headers.ts';
import { standardKey, textKey } from '../signature/mac-keys.ts';
import type { ReceivedContent } from './received-tables.ts';
import { type SenderSecret, type SenderSecrets, validAt } from './sender-secrets.ts';

/** The octets of a body that is kept in parts; otherwise its base64, as a row has it. */
export type ClaimedContent = Omit<ReceivedContent, 'body' | 'parts'> & {
  readonly body: string | Uint8Array<ArrayBuffer>;
};

export type Claimed = {
  readonly sender: Source;
  readonly received: Received;
  /** Revision of its row. */
  readonly rev: number;
  readonly content: ClaimedContent;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Leaves the line in which the message is the first, with its conclusion; undefined: it is in none. */
  readonly leave?: Change | undefined;
  /** Counts what its function reads and writes; absent: nothing does. */
  readonly memory?: Task['memory'];
};

/** The writes of what writes nothing. */
export const emptyUnit: Unit = { changes: [], events: [] };

/** Rejects only with StoreUnavailable. */
export type HandOn = (claimed: Claimed, signal: AbortSignal) => Promise<HandedOn>;

/** Hands messages to the functions of their sources, which run on threads. */
export function handlersOn(
  threads: Pick<HandlerThreads, 'run'>,
  subscriberDepthMax: number,
  tracing?: Tracing,
): HandOn {
  return async (claimed, signal) => {
    const { depth = 0 } = claimed.content;
    const run = (): Promise<HandedOn> => threads.run(taskOf(claimed), signal);
    if (depth <= subscriberDepthMax) return tracing === undefined ? run() : traced(tracing, claimed, run);
    const message = `subscribers caused the event, ${depth} one after the other: more than ${subscriberDepthMax} are taken for a loop`;
    return failure('loop', message, true);
  };
}

/** The span goes on from the one that caused the event, and what the function causes goes on from it. */
async function traced(
  tracing: Tracing,
  { sender: { handOn, name }, received, content: { body }, attempt }: Claimed,
  run: () => Promise<HandedOn>,
): Promise<HandedOn> {
  const { kind } = handOn;
  const isOfEvent = kind === 'subscriber' && typeof body === 'string';
  const span = tracing.begin({
    name: `the ${kind} ${kind === 'subscriber' || kind === 'job' ? handOn.of : name}`,
    kind: 'consumer',
    attributes: { 'messaging.message.id': received.id, 'comity.attempt': attempt },
    parent: isOfEvent ? traceparentOf(Buffer.from(body, 'base64').toString()) : undefined,
  });
  const handedOn = await run();
  span.end(undefined, handedOn.outcome === 'failed' ? handedOn.error : undefined);
  if (handedOn.outcome !== 'processed') return handedOn;
  return { ...handedOn, traceparent: span.traceparent };
}

function taskOf({ sender: source, received, content, attempt, memory }: Claimed): Task {
  const { id, sender, dedupeKey, type, receivedAt } = received;
  const { contentType, contentEncoding, headers, body } = content;
  const { handOn } = source;
  if (handOn.kind === 'subscriber' || handOn.kind === 'job') {
    const { kind, of, timeoutMs } = handOn;
    // Messages of the program itself have no parts.
    const base64 = typeof body === 'string' ? body : Buffer.from(body).toString('base64');
    return { id, source: sender, given: { kind, of, attempt, body: base64 }, timeoutMs, memory };
  }
  const message = {
    id,
    sender,
    dedupeKey,
    type,
    receivedAt,
    attempt,
    contentType,
    contentEncoding,
    headers,
    body,
    jsonInForm: source.rule?.jsonInForm,
  };
  return { id, source: sender, given: { kind: 'message', message }, memory };
}

type ForwardTo = Extract<HandOnTo, { readonly kind: 'forward' }>;

type TimedKey = { readonly key: KeyObject; readonly until: number | null };

/** Statuses with which Retry-After is read, as for sending. */
const slowing: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Serves all senders that forward. @throws TypeError for a message of any other sender */
export function createForward(
  { clock, settings }: Services,
  exchange: Exchange,
  secrets: Pick<SenderSecrets, 'of'>,
): HandOn {
  const version = packageVersion();
  const keysOf = createKeys(secrets);
  return async (claimed, signal) => {
    const { handOn: to, name } = claimed.sender;
    if (to.kind !== 'forward') throw new TypeError(`the sender ${name} has no forward`);
    const keys = keysOf(claimed.sender, to, clock());
    if (typeof keys === 'string') return failure('refused', keys);
    const { body: kept } = claimed.content;
    const body = typeof kept === 'string' ? Buffer.from(kept, 'base64') : kept;
    const timestamp = Math.floor(clock() / 1000);
    const fields = forwardFields(claimed, to, { body, keys, timestamp, version });
    const outcome = await exchanged(exchange, {
      ...{ url: to.url, method: 'POST', fields, body, timeoutMs: settings.webhookTimeoutMs, signal },
      share: `sender/${name}`,
    });
    return handedOn(outcome, clock(), settings.webhookRetryAfterSecondsMax);
  };
}

/** Returns the keys of active secrets, made once for each list of secrets; a text explains why there are none. */
function createKeys(
  secrets: Pick<SenderSecrets, 'of'>,
): (sender: Pick<Source, 'name'>, to: ForwardTo, now: number) => readonly KeyObject[] | string {
  const made = new WeakMap<readonly SenderSecret[], readonly TimedKey[]>();
  return ({ name }, { scheme }, now) => {
    const all = secrets.of({ sender: name, use: 'forward' });
    let keys = made.get(all);
    if (keys === undefined) {
      const keyOf = scheme === 'standard' ? standardKey : textKey;
      try {
        keys = all.map(({ secret, until }) => ({ key: createSecretKey(keyOf(secret)), until }));
      } catch (error) {
        return error instanceof Error ? error.message : 'the forward secret is not valid for the scheme';
      }
      made.set(all, keys);
    }
    const active = validAt(keys, now).map(({ key }) => key);
    return active.length === 0 ? 'the sender has no secret to sign with' : active;
  };
}

function handedOn(outcome: ExchangeOutcome, at: number, retryAfterSecondsMax: number): HandedOn {
  if (outcome.kind === 'failed') {
    return outcome.failure === 'aborted' ? { outcome: 'aborted' } : failure(outcome.failure, outcome.message);
  }
  const { status, fields, snippet } = outcome;
  if (status >= 200 && status <= 299) {
    return { outcome: 'processed', unit: emptyUnit, statusCode: status };
  }
  return {
    ...failure('status', snippet === '' ? `answered ${status}` : `answered ${status}: ${snippet}`),
    statusCode: status,
    notBefore: slowing.has(status) ? retryAfter(fields, at, retryAfterSecondsMax) : null,
  };
}

/*
 * The header fields of a forwarded message, in layers; a layer cannot replace a field of an earlier one:
 * - the description of the body, from the sender: `Content-Type` and `Content-Encoding` as received;
 * - the signatures of the scheme, with the id of the message in `webhook-id` or `X-Service-Delivery`, the same for each
 *   attempt;
 * - the origin: `Comity-Sender`, `Comity-Dedupe-Key`, `Comity-Type`, `Comity-Received-At`, `Comity-Attempt`;
 * - fields of the configuration, then the sender's own fields that its rule keeps.
 *
 * Signatures cover the body (with id and time), not these fields: a receiver that must authenticate the sender needs a
 * separate secret for each.
 */

/** Prefix of the fields of the origin, in lower case. */
const originPrefix = 'comity-';

export type Signing = {
  readonly body: Uint8Array;
  /** The current one first. */
  readonly keys: readonly KeyObject[];
  readonly timestamp: number;
  readonly version: string;
};

type ForwardHeaders = {
  readonly scheme: Scheme;
  readonly headers: Readonly<Record<string, string>>;
};

/** Alternating names and values. */
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
    ...withoutEmpty(signedFields[scheme]({ ...signing, delivery }, delivery.id)),
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

/** Returns true if a configuration may add the field to forwarded messages; does not check its value. */
export function isForwardable(name: string): boolean {
  const folded = name.toLowerCase();
  return isToken(name) && !reservedHeaderNames.has(folded) && !folded.startsWith(originPrefix);
}

function withoutEmpty(fields: readonly string[]): readonly string[] {
  return fields.filter((_, at) => fields[at % 2 === 0 ? at + 1 : at] !== '');
}

/** Adds fields that no earlier layer has, by case-insensitive name. */
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

/** Omitted if it is not a valid field value. */
function asItCame(name: string, value: string | null): readonly string[] {
  return value !== null && fieldValue.test(value) ? [name, value] : [];
}

/** Alternating names and values. Percent-encodes a value that no field can hold. */
function field(name: string, value: string | null): readonly string[] {
  if (value === null || value === '') return [];
  return [name, fieldValue.test(value) ? value : encodeURIComponent(value.toWellFormed())];
}
