/**
 * Receives a webhook (§4.14) in any framework with one call: reads the octets as they travelled, verifies the signature
 * before it parses anything, makes one insert that detects repetitions, and returns the response, which an adapter can
 * send unchanged. The message is processed after the response.
 */

import { type JsonOptions, jsonTextOf, parseExactly } from '../exact-json.ts';
import { type PresetName, presetNames, presets } from '../presets.ts';
import type { Answers, SenderRule } from '../sender-rule.ts';
import { type PublicJwk, publicKeyOf } from '../signature/key-pair.ts';
import { prepareKeys, webPrimitives } from '../signature/mac-keys.ts';
import { encodeBase64Url, octetsOf } from '../signature/octets.ts';
import {
  type HmacRule,
  type JwtRule,
  type KeyPairRule,
  keyAlgorithmOf,
  type RefusalReason,
  type RuleVerdict,
  type SignatureRule,
  type TokenRule,
} from '../signature/signature-rule.ts';
import { type KeyDiscovery, verifyingBy } from '../signature/trusted-keys.ts';
import { verifyByRule } from '../signature/verify-by-rule.ts';
import {
  type ChallengeAnswer,
  challengeContent,
  isOneOf,
  type Opening,
  openChallenge,
  provenOctets,
} from './challenge.ts';
import {
  fieldText,
  type Given,
  givenAs,
  type HeaderSource,
  type Message,
  type RawBody,
  readingHeaders,
  readRawBody,
} from './message.ts';
import {
  contentFieldOf,
  digestKey,
  factsOf,
  keptFields,
  type MessageFacts,
  memberReader,
} from './message-facts.ts';

export type ReceiveOptions = TrustedKeys & {
  /** The sender of the messages: `'stripe'`, `{ preset: 'stripe', toleranceSeconds: 600 }`, or a rule. */
  readonly sender: Sender;
  readonly store: MessageStore;
  /**
   * The sender's name in the store; needed if two senders share a preset and a store. Default: the name of the preset.
   */
  readonly name?: string | undefined;
  /** The complete URL as the sender called it; needed if the sender signs it, as Twilio does, or asks a question in it, as Meta does. */
  readonly url?: string | undefined;
  /** The method of the request; needed for questions that a sender asks by GET or HEAD. Default POST. */
  readonly method?: string | undefined;
  /** Any of them is the token of the sender's challenge, such as Meta's verify token. Default: the secrets. */
  readonly challengeTokens?: readonly string[] | undefined;
  /** The longest body that is accepted. Default 25 MiB. */
  readonly bodyBytesMax?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: number | undefined;
};

/** The outcome, with the response. `body` is null if there is none. */
export type Received = Accepted | Challenged | RefusedMessage;

export type Accepted = {
  /** `duplicate`: the message came before; it gets the same response, and needs no further work. */
  readonly outcome: 'accepted' | 'duplicate';
  /** 204, unless the sender wants 200. */
  readonly status: 200 | 204;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: null;
  readonly message: VerifiedMessage;
};

declare const TextDecoder: {
  new (label: 'utf-8', options: { readonly fatal: true }): { decode(octets: Uint8Array): string };
};

/** Shared: it keeps no state between bodies. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

const bodyBytesMaxDefault = 25 * 1024 * 1024;

/**
 * Receives a message. Never throws because of what a sender sends. It rejects if the store rejects, and if keys are
 * unavailable (KeyDiscoveryError), so that the framework responds with 5xx and the sender retries.
 *
 * @param rawBody the octets, or the request itself
 * @throws TypeError for mistakes of the program: a parsed body (with the remedy), invalid secrets, or an invalid sender
 */
export async function receive(
  rawBody: RawBody,
  headers: HeaderSource,
  options: ReceiveOptions,
): Promise<Received> {
  const { sender, bodyBytesMax = bodyBytesMaxDefault, nowMs = Date.now() } = options;
  const rule = ruleOf(sender);
  const header = readingHeaders(headers);
  const opened = openChallenge(rule.challenge, { ...questionOf(options), header });
  if (opened === 'forbidden') return { ...refusedAnswer('no-match', undefined), status: 403 };
  if (opened?.secretField !== undefined)
    return handshakeAnswer(opened, options.secrets, rule.answers?.refused);
  if (opened !== undefined) return challengeAnswer(opened, rule.signature, options.secrets);
  const body = await readRawBody(rawBody, header, bodyBytesMax);
  if (body === undefined) return refusedAnswer('too-large', undefined);
  const message: Message = { body, header };
  const given = { as: givenAs(rawBody), text: typeof rawBody === 'string' ? rawBody : '' };
  // An ill-formed text has no octets that could have been signed.
  const verdict = given.text.isWellFormed()
    ? await verifyMessage(rule.signature, message, { ...options, nowMs })
    : ({ ok: false, reason: 'no-match' } as const);
  if (!verdict.ok) {
    const hint = verdict.reason === 'no-match' ? likelyCause(message, given) : undefined;
    return refusedAnswer(verdict.reason, hint, rule.answers?.refused);
  }
  const facts = factsOf(rule, message);
  if (facts.challenge !== undefined) return challengeAnswer(facts.challenge, rule.signature, options.secrets);
  const verified = verifiedMessage(message, rule.jsonInForm, {
    sender: options.name ?? nameOf(sender),
    dedupeKey: await keyOf(facts, body),
    type: facts.type,
    timestamp: verdict.timestamp,
    receivedAt: new Date(nowMs).toISOString(),
    headers: keptFields(rule, message),
  });
  const outcome = outcomeOf(await options.store.insert(verified));
  return { outcome, status: rule.answers?.accepted ?? 204, headers: {}, body: null, message: verified };
}

function questionOf({ method = 'POST', url, ...keys }: ReceiveOptions): Omit<Opening, 'header'> {
  const query = url?.split('#', 1)[0]?.split('?').slice(1).join('?');
  const tokens = () => keys.challengeTokens ?? keys.secrets ?? [];
  return { method, query: query === '' ? undefined : query, tokens };
}

async function keyOf(facts: MessageFacts, body: Uint8Array): Promise<string> {
  if (facts.key !== undefined) return facts.key;
  const octets = facts.oversizedKey === undefined ? body : octetsOf(facts.oversizedKey);
  return digestKey(encodeBase64Url(await webPrimitives.sha256(octets)));
}

function verifiedMessage(
  message: Message,
  jsonInForm: string | undefined,
  facts: Pick<VerifiedMessage, 'sender' | 'dedupeKey' | 'type' | 'timestamp' | 'receivedAt' | 'headers'>,
): VerifiedMessage {
  const text = (): string => utf8.decode(message.body);
  const contentType = contentFieldOf(message, 'content-type');
  return {
    ...facts,
    contentType,
    contentEncoding: contentFieldOf(message, 'content-encoding'),
    body: message.body,
    text,
    json: (options) => parseExactly(jsonTextOf(text(), contentType, jsonInForm) ?? '', options),
  };
}

/** With any other result the message may not be stored: a 204 would then lose it. */
function outcomeOf(inserted: InsertOutcome): Accepted['outcome'] {
  if (inserted === 'stored') return 'accepted';
  if (inserted === 'duplicate') return 'duplicate';
  throw new TypeError("insert() of the store must return 'stored' or 'duplicate'");
}

/*
 * Verifies a message by its sender's rule with Web Crypto: connects the options of `receive` with verify-by-rule.ts.
 */

type TrustedKeys = {
  /** One matching secret is enough. Optional only if there are keys. */
  readonly secrets?: readonly string[] | undefined;
  /** Public keys of a sender that signs by a key pair, or beside its secrets: `whpk_` and base64, or JWKs. */
  readonly publicKeys?: readonly (string | PublicJwk)[] | undefined;
  /** Keys that the sender publishes, accepted too. */
  readonly discovery?: KeyDiscovery | undefined;
};

export type VerifyMessage = TrustedKeys & {
  /** The complete URL as the sender called it; needed if the sender signs it, as Twilio does. */
  readonly url?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
};

/**
 * @throws TypeError for an invalid secret, key or tolerance, without any secret or key, and without a URL if one is
 * signed
 */
async function verifyMessage(
  rule: SignatureRule,
  message: Message,
  { secrets, publicKeys = [], discovery, url, nowMs }: VerifyMessage,
): Promise<RuleVerdict> {
  const algorithm = keyAlgorithmOf(rule) ?? 'ed25519';
  const byKeys = verifyingBy(
    publicKeys.map((key) => publicKeyOf(key, algorithm)),
    discovery,
    algorithm,
  );
  if (secrets === undefined && byKeys === undefined) {
    throw new TypeError('secrets must be an array of at least one secret, unless publicKeys are given');
  }
  const keys = prepareKeys(rule, secrets ?? [], webPrimitives);
  const signed = { ...message, url, member: memberReader(message) };
  return verifyByRule(rule, signed, keys, { primitives: webPrimitives, nowMs, byKeys });
}

/* Responses other than 204, as the server gives them (§2.2, §4.14). */

/** The response to a challenge; nothing is stored. */
export type Challenged = {
  readonly outcome: 'challenge';
  readonly status: 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type RefusedMessage = {
  readonly outcome: 'refused';
  /** 413, else 400 unless the sender wants another one. */
  readonly status: 400 | 401 | 403 | 406 | 413;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly reason: RefusalReason | 'too-large';
  /** The likely fault of the receiver, for its log; undefined: none was found. */
  readonly hint: string | undefined;
};

const json = { 'content-type': 'application/json' } as const;

async function challengeAnswer(
  answer: ChallengeAnswer,
  rule: SignatureRule,
  secrets: readonly string[] | undefined,
): Promise<Challenged> {
  const { mediaType, text } = challengeContent(answer, await proofOf(answer, rule, secrets));
  return { outcome: 'challenge', status: 200, headers: { 'content-type': mediaType }, body: text };
}

/** A program that calls `receive` keeps the secrets itself, so the secret must be among them already. */
function handshakeAnswer(
  { value, secretField = '' }: ChallengeAnswer,
  secrets: readonly string[] | undefined,
  status: Answers['refused'],
): Challenged | RefusedMessage {
  const hint = `${secretField} has a secret that is not among the given ones`;
  if (!isOneOf(String(value), secrets ?? [])) return refusedAnswer('no-match', hint, status);
  return { outcome: 'challenge', status: 200, headers: { [secretField]: String(value) }, body: '' };
}

async function proofOf(
  answer: ChallengeAnswer,
  rule: SignatureRule,
  secrets: readonly string[] | undefined,
): Promise<Uint8Array | undefined> {
  if (answer.proof === undefined || rule.kind !== 'hmac') return undefined;
  const keys = prepareKeys(rule, secrets ?? [], webPrimitives);
  const [key] = keys.kind === 'signed' ? keys.keys : [];
  return key === undefined ? undefined : webPrimitives.mac(key, 'sha256', [provenOctets(answer)]);
}

function refusedAnswer(
  reason: RefusedMessage['reason'],
  hint: string | undefined,
  status: Exclude<RefusedMessage['status'], 413> = 400,
): RefusedMessage {
  const isLarge = reason === 'too-large';
  return {
    outcome: 'refused',
    status: isLarge ? 413 : status,
    headers: json,
    body: JSON.stringify(isLarge ? largeBody : { ...refusalOf(reason), reason }),
    reason,
    hint,
  };
}

const largeBody = { error: 'request content is too large', code: 'content_too_large' };

function refusalOf(reason: RefusalReason): { readonly error: string; readonly code: string } {
  return reason === 'stale' || reason === 'ahead'
    ? { error: 'the signed time is too far from now', code: 'signature_stale' }
    : { error: 'invalid signature', code: 'signature_invalid' };
}

/*
 * Guesses why a signature may not match although the sender is genuine: the body is not the one that travelled. For the
 * operator's log, only for refused messages; the sender does not get it.
 */

/** Longer texts are not parsed for a guess. */
const jsonCharactersMax = 1024 * 1024;

/**
 * @param given the form in which the body was given, with its `text` if it is one
 * @returns a sentence or two; undefined: the body looks right
 */
function likelyCause(
  message: Message,
  given: { readonly as: Given; readonly text: string },
): string | undefined {
  if (given.as === 'nothing')
    return 'receive() got no body, but the signature covers one: pass the raw body.';
  return (
    causeInLength(message, given.text) ?? (given.as === 'text' ? causeInText(message, given.text) : undefined)
  );
}

function causeInLength(message: Message, text: string): string | undefined {
  const declared = fieldText(message, 'content-length');
  const length = message.body.length;
  if (declared === undefined || Number(declared) === length) return undefined;
  const lengths = `The body passed to receive() has ${length} octets, but the Content-Length of the request is ${declared}`;
  if (fieldText(message, 'content-encoding') !== undefined) {
    return `${lengths}: it was decompressed, but the signature covers the compressed body. With express.raw, set inflate: false.`;
  }
  if (isBase64Of(text, Number(declared))) {
    return `${lengths}: it is in base64, as some serverless platforms pass it (isBase64Encoded). Decode it first.`;
  }
  return `${lengths}: a body parser parsed it, and it was serialized again. The signature covers the raw body: pass that.`;
}

function causeInText(message: Message, text: string): string | undefined {
  if (!text.isWellFormed()) {
    return 'The body is a text with lone surrogates, which cannot be encoded. Pass the octets.';
  }
  if (text.includes('\ufffd')) {
    return 'The body is a text with replacement characters (U+FFFD): octets that are not UTF-8 were lost. Pass the octets.';
  }
  if (fieldText(message, 'content-length') !== undefined || !isWrittenAnew(text)) return undefined;
  return 'The body is a text exactly as JSON.stringify writes it: if a body parser read the request, these may not be the octets that were sent. Pass the raw body.';
}

function isBase64Of(text: string, length: number): boolean {
  const digits = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return text.length > 0 && text.length % 4 === 0 && (text.length / 4) * 3 - digits === length;
}

function isWrittenAnew(text: string): boolean {
  if (text.length > jsonCharactersMax) return false;
  try {
    return JSON.stringify(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

export type Sender = PresetName | SenderRule | AdjustedPreset;

export type AdjustedPreset = {
  readonly preset: PresetName;
  /** Parts of the preset's signature, or a whole one. */
  readonly signature?: Partial<HmacRule> | Partial<KeyPairRule> | Partial<JwtRule> | TokenRule | undefined;
  /** Greatest difference of the signed time from now, in seconds; 0: any time. */
  readonly toleranceSeconds?: number | undefined;
  readonly dedupe?: SenderRule['dedupe'] | undefined;
  readonly type?: SenderRule['type'] | undefined;
  readonly challenge?: SenderRule['challenge'] | undefined;
  readonly answers?: SenderRule['answers'] | undefined;
  readonly jsonInForm?: string | undefined;
  readonly keep?: SenderRule['keep'] | undefined;
};

/** @throws TypeError for neither a preset nor a rule */
function ruleOf(sender: Sender): SenderRule {
  if (typeof sender === 'string') return presetOf(sender);
  if ('preset' in sender) return adjusted(presetOf(sender.preset), sender);
  if (typeof sender !== 'object' || sender === null || typeof sender.signature !== 'object') {
    throw new TypeError(`sender must be a rule or a preset; the presets are ${presetNames.join(', ')}`);
  }
  return sender;
}

/** Returns the default name of a sender. */
function nameOf(sender: Sender): string {
  if (typeof sender === 'string') return sender;
  return 'preset' in sender ? sender.preset : 'sender';
}

function presetOf(name: string): SenderRule {
  const known = presetNames.find((each) => each === name);
  if (known === undefined) throw new TypeError(`unknown preset; the presets are ${presetNames.join(', ')}`);
  return presets[known];
}

function adjusted(preset: SenderRule, adjustment: AdjustedPreset): SenderRule {
  return {
    signature: adjustedSignature(preset.signature, adjustment),
    dedupe: adjustment.dedupe ?? preset.dedupe,
    type: adjustment.type ?? preset.type,
    challenge: adjustment.challenge ?? preset.challenge,
    answers: adjustment.answers ?? preset.answers,
    jsonInForm: adjustment.jsonInForm ?? preset.jsonInForm,
    keep: adjustment.keep ?? preset.keep,
  };
}

function adjustedSignature(preset: SignatureRule, adjustment: AdjustedPreset): SignatureRule {
  const { signature = {}, toleranceSeconds } = adjustment;
  if (signature.kind === 'token') return signature;
  const tolerance = toleranceSeconds === undefined ? {} : { toleranceSeconds };
  if (preset.kind !== 'token') return { ...preset, ...signature, ...tolerance } as SignatureRule;
  if (signature.kind === undefined && toleranceSeconds === undefined) return preset;
  throw new TypeError(
    'the preset uses a token, so the members of a signature have no effect: pass a rule instead',
  );
}

export type VerifiedMessage = {
  /** The name of the sender: `name` of the options, or else that of the preset. */
  readonly sender: string;
  /** Identifies the message among those of its sender: at most 256 printable ASCII characters. */
  readonly dedupeKey: string;
  /** At most 200 printable ASCII characters; null: the message has no type. */
  readonly type: string | null;
  /** The signed Unix seconds; null: the sender signs none. */
  readonly timestamp: number | null;
  /** ISO 8601. */
  readonly receivedAt: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** Header fields that the sender's rule keeps, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The octets as received. */
  readonly body: Uint8Array;
  /** Returns the body as UTF-8. @throws TypeError if it is not UTF-8 */
  text(): string;
  /**
   * Returns the body as JSON, or the JSON in the form field that the sender names. @throws SyntaxError or TypeError if it is not JSON, and
   * RangeError for an integer beyond 2^53 that `integers` says nothing of
   */
  json(options?: JsonOptions): unknown;
};

export type MessageStore = {
  /**
   * Stores the message unless one with the same `sender` and `dedupeKey` exists, in one atomic step: with a lookup
   * before the insert, two concurrent requests would both pass. `stored` means that the message is durable, because the
   * sender learns it.
   */
  insert(message: VerifiedMessage): InsertOutcome | Promise<InsertOutcome>;
};

export type InsertOutcome = 'stored' | 'duplicate';

/*
 * A store in memory: it remembers recent messages of this process by their keys, and stores no message. For tests, and
 * for receivers that may lose a message; others need a table with a unique key.
 */

export type MemoryStoreOptions = {
  /** Greatest number of remembered messages; the oldest is dropped. Default 10,000. */
  readonly max?: number | undefined;
  /** Time for which a message is remembered. Default 259,200 (three days), the time for which common senders retry. */
  readonly seconds?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: (() => number) | undefined;
};

const maxDefault = 10_000;
const secondsDefault = 3 * 24 * 3600;

/** @throws TypeError for bounds that are not positive numbers */
export function memoryStore(options: MemoryStoreOptions = {}): MessageStore {
  const { max = maxDefault, seconds = secondsDefault, nowMs = Date.now } = options;
  if (!(max >= 1) || !(seconds > 0))
    throw new TypeError('max and seconds of memoryStore must be positive numbers');
  /** Time of receipt by key, the oldest first. */
  const known = new Map<string, number>();

  function forget(now: number): void {
    for (const [key, at] of known) {
      if (known.size <= max && now - at < seconds * 1000) return;
      known.delete(key);
    }
  }

  return {
    insert({ sender, dedupeKey }) {
      const now = nowMs();
      forget(now);
      const key = JSON.stringify([sender, dedupeKey]);
      if (known.has(key)) return 'duplicate';
      known.set(key, now);
      forget(now);
      return 'stored';
    },
  };
}
