/**
 * One call that receives a webhook (§4.14) in any framework: the octets as they travelled, their signature before anything is parsed, one
 * insert that finds repetitions, and the answer, which an adapter can send as it stands. What is done with a message comes after the answer.
 */
import { encodeBase64Url } from '../signature/base64.ts';
import { octetsOf } from '../signature/octets.ts';
import { webPrimitives } from '../signature/web-primitives.ts';
import { type Challenged, challengeAnswer, type RefusedMessage, refusedAnswer } from './answer.ts';
import { type HeaderSource, readingHeaders } from './header-reading.ts';
import { likelyCause } from './likely-cause.ts';
import type { Message } from './message.ts';
import { contentFieldOf, digestKey, factsOf, keptFields, type MessageFacts } from './message-facts.ts';
import type { InsertOutcome, MessageStore, VerifiedMessage } from './message-store.ts';
import { givenAs, type RawBody, readRawBody } from './raw-body.ts';
import { nameOf, ruleOf, type Sender } from './sender.ts';
import { type TrustedKeys, verifyMessage } from './verify-message.ts';

export type ReceiveOptions = TrustedKeys & {
  /** Whose messages these are: `'stripe'`, `{ preset: 'stripe', toleranceSeconds: 600 }`, or a rule. */
  readonly sender: Sender;
  readonly store: MessageStore;
  /** What the sender is called in the store; needed where two have one preset and one store. The name of the preset if not said. */
  readonly name?: string | undefined;
  /** The whole URL that the sender called, as it knows it; needed where the sender signs it, as Twilio does. */
  readonly url?: string | undefined;
  /** The longest body that is taken. 25 MiB if not said. */
  readonly bodyBytesMax?: number | undefined;
  /** Milliseconds since the epoch; the runtime's clock if not said. */
  readonly nowMs?: number | undefined;
};

/** What came of it, with the answer. `body` is null where there is none. */
export type Received = Accepted | Challenged | RefusedMessage;

export type Accepted = {
  /** `duplicate`: it came before; it is answered as it was then, and nothing is left to do. */
  readonly outcome: 'accepted' | 'duplicate';
  readonly status: 204;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: null;
  readonly message: VerifiedMessage;
};

declare const TextDecoder: {
  new (label: 'utf-8', options: { readonly fatal: true }): { decode(octets: Uint8Array): string };
};

/** It keeps nothing from one body to the next. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

const bodyBytesMaxDefault = 25 * 1024 * 1024;

/**
 * Whatever a sender sends, it does not throw. It rejects, so that the framework answers 5xx and the sender tries again, for a store that
 * rejects, and for keys that cannot be had (KeyDiscoveryError).
 * @param rawBody the octets, or the request itself
 * @throws TypeError for mistakes of the program: a body that was parsed (with the remedy), secrets or a sender that are none
 */
export async function receive(
  rawBody: RawBody,
  headers: HeaderSource,
  options: ReceiveOptions,
): Promise<Received> {
  const { sender, bodyBytesMax = bodyBytesMaxDefault, nowMs = Date.now() } = options;
  const rule = ruleOf(sender);
  const header = readingHeaders(headers);
  const body = await readRawBody(rawBody, header, bodyBytesMax);
  if (body === undefined) return refusedAnswer('too-large', undefined);
  const message: Message = { body, header };
  const given = { as: givenAs(rawBody), text: typeof rawBody === 'string' ? rawBody : '' };
  // Its octets would be others than its characters.
  const verdict = given.text.isWellFormed()
    ? await verifyMessage(rule.signature, message, { ...options, nowMs })
    : ({ ok: false, reason: 'no-match' } as const);
  if (!verdict.ok) {
    const hint = verdict.reason === 'no-match' ? likelyCause(message, given) : undefined;
    return refusedAnswer(verdict.reason, hint);
  }
  const facts = factsOf(rule, message);
  if (facts.challenge !== undefined) return challengeAnswer(facts.challenge);
  const verified = verifiedMessage(message, {
    sender: options.name ?? nameOf(sender),
    dedupeKey: await keyOf(facts, body),
    type: facts.type,
    timestamp: verdict.timestamp,
    receivedAt: new Date(nowMs).toISOString(),
    headers: keptFields(rule, message),
  });
  const outcome = outcomeOf(await options.store.insert(verified));
  return { outcome, status: 204, headers: {}, body: null, message: verified };
}

async function keyOf(facts: MessageFacts, body: Uint8Array): Promise<string> {
  if (facts.key !== undefined) return facts.key;
  const octets = facts.oversizedKey === undefined ? body : octetsOf(facts.oversizedKey);
  return digestKey(encodeBase64Url(await webPrimitives.sha256(octets)));
}

function verifiedMessage(
  message: Message,
  facts: Pick<VerifiedMessage, 'sender' | 'dedupeKey' | 'type' | 'timestamp' | 'receivedAt' | 'headers'>,
): VerifiedMessage {
  const text = (): string => utf8.decode(message.body);
  return {
    ...facts,
    contentType: contentFieldOf(message, 'content-type'),
    contentEncoding: contentFieldOf(message, 'content-encoding'),
    body: message.body,
    text,
    json: () => JSON.parse(text()),
  };
}

/** A store that says neither may have stored nothing: answering 204 then would lose the message. */
function outcomeOf(inserted: InsertOutcome): Accepted['outcome'] {
  if (inserted === 'stored') return 'accepted';
  if (inserted === 'duplicate') return 'duplicate';
  throw new TypeError("insert() of the store must return 'stored' or 'duplicate'");
}
