/**
 * Accepts messages of senders (§4.14), in two steps. `verify` checks the signature over the raw octets before it parses
 * any of them, then reads the message's key and type. `keep` commits the message as one unit, whose first insert
 * detects repetitions, so that of concurrent requests only one can be the first. Handing on is separate: its engine
 * finds the row.
 *
 * No observation contains a body, a signature or a secret.
 */
import type { KeyObject } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Configuration } from '../../config/configuration.ts';
import type { DeclaredSender } from '../../config/senders.ts';
import type { Problem } from '../../http/problem.ts';
import { idFor } from '../../model/id.ts';
import { type Received, receivedDocument } from '../../model/received.ts';
import type { Observe } from '../../observe/observation.ts';
import { timeAfter } from '../../resources/collection/row.ts';
import type { Services } from '../../store/capabilities.ts';
import { tryCommit } from '../../store/lines.ts';
import {
  type Change,
  type Expectation,
  keptRow,
  type MaybePromise,
  Overtaken,
  type Unit,
  whenKnown,
} from '../../store/store.ts';
import {
  type ChallengeAnswer,
  type ChallengeContent,
  challengeContent,
  isOpen,
  openChallenge,
  provenOctets,
} from '../receive/challenge.ts';
import type { Message } from '../receive/message.ts';
import {
  contentFieldOf,
  digestKey,
  factsInSteps,
  keptFields,
  type MessageFacts,
} from '../receive/message-facts.ts';
import { publicKeyOf } from '../signature/key-pair.ts';
import { type MacPrimitives, type PreparedKeys, prepareKeys } from '../signature/mac-keys.ts';
import { keyAlgorithmOf, type RefusalReason, type RuleVerdict } from '../signature/signature-rule.ts';
import {
  createKeyDiscovery,
  type FetchKeys,
  KeyDiscoveryError,
  type VerifyByKeys,
  verifyingBy,
} from '../signature/trusted-keys.ts';
import { verifyByRule } from '../signature/verify-by-rule.ts';
import { type Incoming, IncomingMessage, openingOf } from './incoming-message.ts';
import { keepParts, partsOf } from './message-rows.ts';
import { createSlicedMac } from './node-mac.ts';
import { putBackChange } from './received/replay-by-query.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';
import { verifyingByCertificates } from './sender-certificates.ts';
import { type SenderSecret, type SenderSecrets, validAt } from './sender-secrets.ts';
import {
  type FunctionThreads,
  Unjudged,
  type VerifyByFunction,
  verifyingByFunction,
} from './verify-by-function.ts';

export type AcceptHooks = {
  /** Called after a new message of the sender is stored. */
  readonly accepted?: (sender: string) => void;
  /** Fetches keys that a sender publishes, through the egress guard; undefined: `keysUrl` has no effect. */
  readonly fetchKeys?: FetchKeys | undefined;
  /** Run the `verify` of senders; undefined: none has one. */
  readonly threads?: FunctionThreads | undefined;
};

export type Accept = {
  /** Answers a challenge that has no signature; undefined: the request is none. */
  answerOpen(sender: DeclaredSender, request: Incoming): MaybePromise<Verdict> | undefined;
  /** Verifies a message. Synchronous except for Ed25519 signatures and long bodies. */
  verify(sender: DeclaredSender, request: Incoming, body: Uint8Array): MaybePromise<Verdict>;
  /** Stores a new message. Rejects with StoreUnavailable only. */
  keep(sender: DeclaredSender, verified: Verified): Promise<'accepted' | 'duplicate'>;
};

export type Verdict =
  | { readonly ok: true; readonly verified: Verified }
  /** A challenge, to be answered and not stored. */
  | { readonly ok: true; readonly challenge: ChallengeContent }
  /** A handshake that brings the sender's secret, which is returned in the same field. */
  | { readonly ok: true; readonly handshake: { readonly field: string; readonly secret: string } }
  | { readonly ok: false; readonly problem: Problem };

type Verifier = {
  readonly keys: SenderKeys;
  readonly byKeys: VerifyByKeys | undefined;
  readonly byFunction: VerifyByFunction;
};

export function createAccept(
  services: Services,
  { base, senders }: Pick<Configuration, 'base' | 'senders'>,
  secrets: Pick<SenderSecrets, 'of' | 'tokensOf'>,
  { accepted, fetchKeys, threads }: AcceptHooks = {},
): Accept {
  const { clock, observe } = services;
  const seen = { publicUrl: services.settings.publicUrl, base };
  const primitives = createSlicedMac();
  const verifiers = new Map<string, Verifier>();
  for (const sender of senders.values()) {
    verifiers.set(sender.name, {
      keys: createSenderKeys(sender, secrets, primitives),
      byKeys: verifyingSender(sender, fetchKeys, clock),
      byFunction: verifyingByFunction(sender, secrets, threads, services),
    });
  }
  const answered = answering(services, (sender) => verifiers.get(sender.name)?.keys, primitives);
  const conclude = (
    sender: DeclaredSender,
    message: IncomingMessage,
    verdict: RuleVerdict,
  ): MaybePromise<Verdict> => {
    if (!verdict.ok) return refuse(sender, verdict.reason, observe);
    return whenKnown(readFacts(sender, message), (facts): MaybePromise<Verdict> => {
      if (facts.challenge !== undefined) return answered(sender, facts.challenge);
      return { ok: true, verified: { message, facts } };
    });
  };
  return {
    answerOpen(sender, request) {
      // Few senders ask: no target is parsed for the messages of the others.
      if (!isOpen(sender.rule.challenge)) return undefined;
      const answer = openChallenge(sender.rule.challenge, {
        ...openingOf(request),
        tokens: () => secrets.tokensOf(sender.name, clock()),
      });
      if (answer === 'forbidden') return { ok: false, problem: { code: 'forbidden' } };
      if (answer?.secretField !== undefined)
        return { ok: true, handshake: { field: answer.secretField, secret: String(answer.value) } };
      return answer === undefined ? undefined : answered(sender, answer);
    },
    verify(sender, request, body) {
      const verifier = verifiers.get(sender.name);
      if (verifier === undefined) throw new Error(`the sender ${sender.name} is not declared`);
      const message = new IncomingMessage(request, body, seen);
      const verdict = judge(sender, verifier, message, { nowMs: clock(), primitives });
      if (!(verdict instanceof Promise)) return conclude(sender, message, verdict);
      return verdict.then(
        (found) => conclude(sender, message, found),
        (error) => refuseUnjudged(sender, error, observe),
      );
    },
    keep: keeping(services, primitives, accepted),
  };
}

/** Stores messages, each as one unit whose first insert detects repetitions. */
function keeping(
  { store, clock, newId, observe }: Services,
  primitives: MacPrimitives<KeyObject>,
  accepted: AcceptHooks['accepted'],
): Accept['keep'] {
  const timeText = createTimeText();
  return async (sender, verified) => {
    const now = clock();
    const id = idFor('message', newId);
    const { body } = verified.message;
    const dedupeKey = await keyOf(verified.facts, body, primitives);
    const unit = unitOf(sender, verified, { id, dedupeKey, ms: now, at: timeText(now) });
    let removals: readonly Change[] = [];
    if (partsOf(body.length) > 0) {
      const known = await store.read(receivedContentsTable, contentId(sender.name, dedupeKey));
      if (known !== undefined) return repeated();
      removals = await keepParts(store, { id, body, ms: now });
    }
    const commit = await store.commit(unit);
    if (commit.outcome === 'committed') {
      accepted?.(sender.name);
      return observed('accepted');
    }
    // Those that remain if this fails are removed by retention.
    if (removals.length > 0) await store.commit({ changes: removals, events: [] });
    if (commit.outcome === 'superseded' && commit.change === 0) return repeated();
    throw new Error(`the message could not be stored: ${commit.outcome}`);

    async function repeated(): Promise<'duplicate'> {
      if (await queueAgain({ store, clock }, sender, dedupeKey)) accepted?.(sender.name);
      return observed('duplicate');
    }

    function observed<O extends 'accepted' | 'duplicate'>(outcome: O): O {
      observe({ kind: 'webhook-received', sender: sender.name, outcome, reason: undefined });
      return outcome;
    }
  };
}

/** Answers challenges, with a proof by the current secret of the sender where one is asked for. */
function answering(
  { clock, observe }: Pick<Services, 'clock' | 'observe'>,
  keysOf: (sender: DeclaredSender) => SenderKeys | undefined,
  primitives: MacPrimitives<KeyObject>,
): (sender: DeclaredSender, answer: ChallengeAnswer) => MaybePromise<Verdict> {
  return (sender, answer) => {
    observe({ kind: 'webhook-received', sender: sender.name, outcome: 'challenge', reason: undefined });
    if (answer.proof === undefined) return { ok: true, challenge: challengeContent(answer, undefined) };
    const keys = keysOf(sender)?.(clock());
    const [key] = keys?.kind === 'signed' ? keys.keys : [];
    if (key === undefined) return { ok: false, problem: { code: 'unavailable' } };
    return whenKnown(primitives.mac(key, 'sha256', [provenOctets(answer)]), (mac) => ({
      ok: true,
      challenge: challengeContent(answer, mac),
    }));
  };
}

function judge(
  { rule }: DeclaredSender,
  { keys, byKeys, byFunction }: Verifier,
  message: IncomingMessage,
  { nowMs, primitives }: { readonly nowMs: number; readonly primitives: MacPrimitives<KeyObject> },
): MaybePromise<RuleVerdict> {
  const { signature } = rule;
  if (signature.kind === 'function') return byFunction(message, nowMs);
  const prepared = keys(nowMs);
  if (prepared === undefined) return noMatch;
  return verifyByRule(signature, message, prepared, { primitives, nowMs, byKeys });
}

const noMatch: RuleVerdict = { ok: false, reason: 'no-match' };

/** In several turns of the event loop if the body is long: 25 MB of `{}` take half a second. */
function readFacts({ rule }: DeclaredSender, message: IncomingMessage): MaybePromise<MessageFacts> {
  const steps = factsInSteps(rule, message);
  const { done, value } = steps.next();
  return done === true ? value : readOn(steps);
}

async function readOn(steps: ReturnType<typeof factsInSteps>): Promise<MessageFacts> {
  for (;;) {
    await setImmediate();
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

function refuse({ name, rule }: DeclaredSender, reason: RefusalReason, observe: Observe): Verdict {
  observe({ kind: 'webhook-received', sender: name, outcome: 'refused', reason });
  return { ok: false, problem: refusalOf(rule, reason) };
}

/** The problem of a message that is not the sender's, with the status that the sender wants. */
export function refusalOf(
  { answers }: Pick<DeclaredSender['rule'], 'answers'>,
  reason: RefusalReason,
): Problem {
  const code = reason === 'stale' || reason === 'ahead' ? 'signature_stale' : 'signature_invalid';
  const status = answers?.refused;
  return { code, context: { reason }, ...(status === undefined ? {} : { own: { code, status } }) };
}

const keysUnavailable = { reason: 'keys-unavailable', what: 'the keys' };

/** Unavailable keys are not the message's fault, nor is a function that came to no verdict: 503 makes the sender retry (§6.4). */
function refuseUnjudged({ name }: DeclaredSender, error: unknown, observe: Observe): Verdict {
  if (!(error instanceof KeyDiscoveryError || error instanceof Unjudged)) throw error;
  const { reason, what } = error instanceof Unjudged ? error : keysUnavailable;
  observe({ kind: 'webhook-received', sender: name, outcome: 'refused', reason });
  observe({ kind: 'receiving-failed', what: `${what} of the sender ${name}`, error });
  return { ok: false, problem: { code: 'unavailable' } };
}

/**
 * A message that failed for good is due again when its sender repeats it: people redeliver what was not processed.
 * @returns whether it is
 */
async function queueAgain(
  { store, clock }: Pick<Services, 'store' | 'clock'>,
  sender: DeclaredSender,
  dedupeKey: string,
): Promise<boolean> {
  const content = await store.read(receivedContentsTable, contentId(sender.name, dedupeKey));
  if (content === undefined) return false;
  const table = receivedCollection.name;
  const { id } = JSON.parse(content.doc) as ReceivedContent;
  return store.lines.change({ table, id }, async () => {
    const row = await store.read(table, id);
    if (row === undefined || (JSON.parse(row.doc) as Received).status !== 'failed') return false;
    const { change } = putBackChange(table, row, sender, timeAfter(clock, row.updatedAt));
    const commit = await tryCommit(store, { changes: [change], events: [] });
    return commit instanceof Overtaken ? commit : true;
  });
}

/* The rows of an accepted message (§4.14.4), as one unit. */

/** A message with a valid signature, and what its rule reads from it. */
type Verified = { readonly message: Message; readonly facts: MessageFacts };

const absent: Expectation = { absent: true };

type Kept = { readonly id: string; readonly dedupeKey: string; readonly ms: number; readonly at: string };

/** @param kept `ms` and `at`: now, as milliseconds since the epoch and in ISO 8601 */
export function unitOf(
  { name, rule, handOn }: DeclaredSender,
  { message, facts }: Verified,
  { id, dedupeKey, ms, at }: Kept,
): Unit {
  const { body } = message;
  const contentType = contentFieldOf(message, 'content-type');
  const received: Received = {
    id,
    sender: name,
    dedupeKey,
    type: facts.type,
    receivedAt: at,
    status: 'pending',
    attempts: 0,
    scheduledAttempts: 0,
    dueAt: handOn.kind === 'inbox' ? null : at,
    lastError: null,
    contentType,
    contentLength: body.length,
    createdAt: at,
    updatedAt: at,
  };
  const content = contentDocument({
    id,
    contentType,
    contentEncoding: contentFieldOf(message, 'content-encoding'),
    headers: keptFields(rule, message),
    ...bodyOrParts(body),
  });
  return {
    changes: [
      {
        table: receivedContentsTable,
        id: contentId(name, dedupeKey),
        expect: absent,
        next: keptRow(content, null, ms, ms),
      },
      {
        table: receivedCollection.name,
        id,
        expect: absent,
        next: keptRow(receivedDocument(received), null, ms, ms),
      },
    ],
    events: [],
  };
}

function keyOf(
  { key, oversizedKey }: MessageFacts,
  body: Uint8Array,
  { sha256 }: Pick<MacPrimitives<KeyObject>, 'sha256'>,
): MaybePromise<string> {
  if (key !== undefined) return key;
  const text = (digest: Uint8Array): string =>
    digestKey(Buffer.from(digest.buffer, digest.byteOffset, digest.length).toString('base64url'));
  return whenKnown(sha256(oversizedKey === undefined ? body : Buffer.from(oversizedKey)), text);
}

function bodyOrParts(body: Uint8Array): Pick<ReceivedContent, 'body' | 'parts'> {
  const parts = partsOf(body.length);
  if (parts > 0) return { parts };
  return { body: Buffer.from(body.buffer, body.byteOffset, body.length).toString('base64') };
}

/** Concatenates the JSON, because base64 needs no escaping and may have four million characters. */
function contentDocument({
  id,
  contentType,
  contentEncoding,
  headers,
  body,
  parts,
}: ReceivedContent): string {
  return (
    `{"id":"${id}","contentType":${JSON.stringify(contentType)},"contentEncoding":${JSON.stringify(contentEncoding)},` +
    `"headers":${JSON.stringify(headers)},${body === undefined ? `"parts":${parts}` : `"body":"${body}"`}}`
  );
}

/**
 * Returns a function that formats milliseconds since the epoch as ISO 8601. It caches the last text: at full speed
 * twenty messages share a millisecond, and formatting takes 1 µs of about 20 per message.
 */
function createTimeText(): (ms: number) => string {
  let lastMs = Number.NaN;
  let lastText = '';
  return (ms) => {
    if (ms !== lastMs) {
      lastText = new Date(ms).toISOString();
      lastMs = ms;
    }
    return lastText;
  };
}

/** Returns the keys that are valid at a time (ms since the epoch); undefined: no signature is valid. */
type SenderKeys = (now: number) => PreparedKeys<KeyObject> | undefined;

function createSenderKeys(
  sender: DeclaredSender,
  secrets: Pick<SenderSecrets, 'of'>,
  primitives: MacPrimitives<KeyObject>,
): SenderKeys {
  const { signature } = sender.rule;
  if (signature.kind === 'function') return () => undefined;
  const takesOthers = keyAlgorithmOf(signature) !== undefined;
  const name = { sender: sender.name, use: 'receive' } as const;
  let madeOf: readonly SenderSecret[] | undefined;
  let goodUntil = Number.NEGATIVE_INFINITY;
  let keys: PreparedKeys<KeyObject> | undefined;
  return (now) => {
    const given = secrets.of(name);
    if (given === madeOf && now < goodUntil) return keys;
    const holding = validAt(given, now);
    const texts = holding.map(({ secret }) => secret);
    keys = texts.length === 0 && !takesOthers ? undefined : prepareKeys(signature, texts, primitives);
    madeOf = given;
    goodUntil = Math.min(...holding.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    return keys;
  };
}

/*
 * Verification by public keys of a sender (§5.6): those of the configuration, and keys that the sender publishes.
 */

/** @returns undefined if the sender's rule has no such keys @param fetchKeys fetches through the egress guard */
function verifyingSender(
  { rule: { signature }, publicKeys, keysUrl }: DeclaredSender,
  fetchKeys: FetchKeys | undefined,
  nowMs: () => number,
): VerifyByKeys | undefined {
  const algorithm = keyAlgorithmOf(signature);
  if (algorithm === undefined) return undefined;
  if (signature.kind === 'rsa' && signature.certificateHosts !== undefined)
    return verifyingByCertificates(signature.certificateHosts, fetchKeys, nowMs);
  const discovery =
    keysUrl === undefined || fetchKeys === undefined
      ? undefined
      : createKeyDiscovery({ url: keysUrl.href, algorithm, fetch: fetchKeys, nowMs });
  return verifyingBy(
    publicKeys.map((key) => publicKeyOf(key, algorithm)),
    discovery,
    algorithm,
  );
}
