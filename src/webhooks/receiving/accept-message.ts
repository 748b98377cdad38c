/**
 * Accepts messages of senders (§4.14), in two steps. `verify` checks the signature over the raw octets before it parses
 * any of them, then reads the message's key and type. `keep` commits the message as one unit, whose first insert
 * detects repetitions, so that of concurrent requests only one can be the first. Handing on is separate: its engine
 * finds the row.
 *
 * No observation contains a body, a signature or a secret.
 */
import {
  createHash,
  createHmac,
  createSecretKey,
  type Hash,
  type Hmac,
  hash,
  type KeyObject,
} from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { DeclaredSender } from '../../config/senders.ts';
import type { Request } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import { parseRequestTarget } from '../../http/syntax/request-target.ts';
import { idFor } from '../../model/id.ts';
import { type Received, receivedDocument } from '../../model/received.ts';
import type { Observe } from '../../observe/observation.ts';
import type { Services } from '../../store/capabilities.ts';
import {
  type Change,
  type Expectation,
  keptRow,
  type MaybePromise,
  type Unit,
  whenKnown,
} from '../../store/store.ts';
import type { Message } from '../receive/message.ts';
import {
  type ChallengeAnswer,
  contentFieldOf,
  digestKey,
  factsInSteps,
  keptFields,
  type MessageFacts,
} from '../receive/message-facts.ts';
import { publicKeyOf } from '../signature/ed25519.ts';
import { type MacPrimitives, type PreparedKeys, prepareKeys } from '../signature/mac-keys.ts';
import type { RefusalReason } from '../signature/signature-rule.ts';
import {
  createKeyDiscovery,
  ed25519By,
  type FetchKeys,
  KeyDiscoveryError,
  type VerifyEd25519,
} from '../signature/trusted-keys.ts';
import { type RuleVerdict, verifyByRule } from '../signature/verify-by-rule.ts';
import { keepParts, partsOf } from './message-rows.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';
import type { SenderSecret, SenderSecrets } from './sender-secrets.ts';

export type AcceptHooks = {
  /** Called after a new message of the sender is stored. */
  readonly accepted?: (sender: string) => void;
  /** Fetches keys that a sender publishes, through the egress guard; undefined: `keysUrl` has no effect. */
  readonly fetchKeys?: FetchKeys | undefined;
};

export type Accept = {
  /** Verifies a message. Synchronous except for Ed25519 signatures and long bodies. */
  verify(sender: DeclaredSender, request: Incoming, body: Uint8Array): MaybePromise<Verdict>;
  /** Stores a new message. Rejects with StoreUnavailable only. */
  keep(sender: DeclaredSender, verified: Verified): Promise<'accepted' | 'duplicate'>;
};

export type Verdict =
  | { readonly ok: true; readonly verified: Verified }
  /** A challenge, to be answered and not stored. */
  | { readonly ok: true; readonly challenge: ChallengeAnswer }
  | { readonly ok: false; readonly problem: Problem };

type Verifier = { readonly keys: SenderKeys; readonly ed25519: VerifyEd25519 | undefined };

export function createAccept(
  { store, clock, newId, observe, settings: { publicUrl } }: Services,
  senders: ReadonlyMap<string, DeclaredSender>,
  secrets: Pick<SenderSecrets, 'of'>,
  { accepted, fetchKeys }: AcceptHooks = {},
): Accept {
  const timeText = createTimeText();
  const primitives = createSlicedMac();
  const verifiers = new Map<string, Verifier>();
  for (const sender of senders.values()) {
    const keys = createSenderKeys(sender, secrets, primitives);
    verifiers.set(sender.name, { keys, ed25519: createSenderEd25519(sender, fetchKeys, clock) });
  }
  return {
    verify(sender, request, body) {
      const verifier = verifiers.get(sender.name);
      if (verifier === undefined) throw new Error(`the sender ${sender.name} is not declared`);
      const message = new IncomingMessage(request, body, publicUrl);
      const verdict = judge(sender, verifier, message, { nowMs: clock(), primitives });
      if (!(verdict instanceof Promise)) return conclude(sender, message, verdict, observe);
      return verdict.then(
        (found) => conclude(sender, message, found, observe),
        (error) => refuseUnjudged(sender, error, observe),
      );
    },
    async keep(sender, verified) {
      const now = clock();
      const id = idFor('message', newId);
      const { body } = verified.message;
      const dedupeKey = await keyOf(verified.facts, body, primitives);
      const unit = unitOf(sender, verified, { id, dedupeKey, ms: now, at: timeText(now) });
      let removals: readonly Change[] = [];
      if (partsOf(body.length) > 0) {
        const known = await store.read(receivedContentsTable, contentId(sender.name, dedupeKey));
        if (known !== undefined) return observed('duplicate');
        removals = await keepParts(store, { id, body, ms: now });
      }
      const commit = await store.commit(unit);
      if (commit.outcome === 'committed') {
        accepted?.(sender.name);
        return observed('accepted');
      }
      // Those that remain if this fails are removed by retention.
      if (removals.length > 0) await store.commit({ changes: removals, events: [] });
      if (commit.outcome === 'superseded' && commit.change === 0) return observed('duplicate');
      throw new Error(`the message could not be stored: ${commit.outcome}`);

      function observed<O extends 'accepted' | 'duplicate'>(outcome: O): O {
        observe({ kind: 'webhook-received', sender: sender.name, outcome, reason: undefined });
        return outcome;
      }
    },
  };
}

function judge(
  { rule }: DeclaredSender,
  { keys, ed25519 }: Verifier,
  message: IncomingMessage,
  { nowMs, primitives }: { readonly nowMs: number; readonly primitives: MacPrimitives<KeyObject> },
): MaybePromise<RuleVerdict> {
  const prepared = keys(nowMs);
  if (prepared === undefined) return noMatch;
  return verifyByRule(rule.signature, message, prepared, { primitives, nowMs, ed25519 });
}

const noMatch: RuleVerdict = { ok: false, reason: 'no-match' };

function conclude(
  sender: DeclaredSender,
  message: IncomingMessage,
  verdict: RuleVerdict,
  observe: Observe,
): MaybePromise<Verdict> {
  if (!verdict.ok) return refuse(sender, verdict.reason, observe);
  return whenKnown(readFacts(sender, message), (facts) => {
    if (facts.challenge === undefined) return { ok: true, verified: { message, facts } };
    observe({ kind: 'webhook-received', sender: sender.name, outcome: 'challenge', reason: undefined });
    return { ok: true, challenge: facts.challenge };
  });
}

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

function refuse({ name }: DeclaredSender, reason: RefusalReason, observe: Observe): Verdict {
  observe({ kind: 'webhook-received', sender: name, outcome: 'refused', reason });
  const code = reason === 'stale' || reason === 'ahead' ? 'signature_stale' : 'signature_invalid';
  return { ok: false, problem: { code, context: { reason } } };
}

/** Unavailable keys are not the message's fault: 503 makes the sender retry (§6.4). */
function refuseUnjudged({ name }: DeclaredSender, error: unknown, observe: Observe): Verdict {
  if (!(error instanceof KeyDiscoveryError)) throw error;
  observe({ kind: 'webhook-received', sender: name, outcome: 'refused', reason: 'keys-unavailable' });
  observe({ kind: 'receiving-failed', what: `the keys of the sender ${name}`, error });
  return { ok: false, problem: { code: 'unavailable' } };
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

/*
 * A request as the rules of senders see it (§4.14.1): raw octets, separate field lines, and the URL that the sender
 * called. Nothing is joined or parsed here: a repeated field is reported as such.
 */

type Incoming = Pick<Request, 'method' | 'target' | 'fields' | 'rawFields'>;

/** A class, because a getter on an object literal would be created for each message (0.5 µs). */
class IncomingMessage implements Message {
  readonly body: Uint8Array;
  readonly header: Message['header'];
  readonly #request: Incoming;
  readonly #publicUrl: string | undefined;

  /** @param publicUrl origin that senders call; undefined: the Host of the request */
  constructor(request: Incoming, body: Uint8Array, publicUrl: string | undefined) {
    this.body = body;
    this.header = (name) => headerOf(request.rawFields, name);
    this.#request = request;
    this.#publicUrl = publicUrl;
  }

  /** The complete URL as called. One vendor of eleven signs it. */
  get url(): string {
    return calledUrl(this.#request, this.#publicUrl);
  }
}

/** Undefined: absent. An array: repeated. Comparing lengths first avoids lower-casing nine fields of ten. */
function headerOf(rawFields: readonly string[], name: string): string | readonly string[] | undefined {
  let first: string | undefined;
  let all: string[] | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const field = rawFields[at] ?? '';
    if (field.length !== name.length || (field !== name && field.toLowerCase() !== name)) continue;
    const value = rawFields[at + 1] ?? '';
    if (first === undefined) first = value;
    else if (all === undefined) all = [first, value];
    else all.push(value);
  }
  return all ?? first;
}

/** Path and query are not normalized, because the sender signed them as they are. */
function calledUrl({ method, target, fields }: Incoming, publicUrl: string | undefined): string {
  const parsed = parseRequestTarget(method, target);
  const path =
    parsed !== undefined && parsed.form !== 'asterisk' && parsed.form !== 'authority'
      ? `${parsed.path}${parsed.query === undefined ? '' : `?${parsed.query}`}`
      : target;
  const origin = publicUrl ?? `http://${fields.host ?? ''}`;
  return `${origin.endsWith('/') ? origin.slice(0, -1) : origin}${path}`;
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
  const takesOthers = signature.kind === 'hmac' && signature.asymmetricPrefix !== undefined;
  const name = { sender: sender.name, use: 'receive' } as const;
  let madeOf: readonly SenderSecret[] | undefined;
  let goodUntil = Number.NEGATIVE_INFINITY;
  let keys: PreparedKeys<KeyObject> | undefined;
  return (now) => {
    const given = secrets.of(name);
    if (given === madeOf && now < goodUntil) return keys;
    const holding = given.filter(({ until }) => until === null || now < until);
    const texts = holding.map(({ secret }) => secret);
    keys = texts.length === 0 && !takesOthers ? undefined : prepareKeys(signature, texts, primitives);
    madeOf = given;
    goodUntil = Math.min(...holding.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    return keys;
  };
}

/*
 * Ed25519 verification for a sender (§5.6, `v1a`): by keys of the configuration, and by keys that the sender publishes.
 */

/** @returns undefined if the sender's rule has no such keys @param fetchKeys fetches through the egress guard */
function createSenderEd25519(
  { rule, publicKeys, keysUrl }: DeclaredSender,
  fetchKeys: FetchKeys | undefined,
  nowMs: () => number,
): VerifyEd25519 | undefined {
  if (rule.signature.kind !== 'hmac' || rule.signature.asymmetricPrefix === undefined) return undefined;
  const discovery =
    keysUrl === undefined || fetchKeys === undefined
      ? undefined
      : createKeyDiscovery({ url: keysUrl.href, fetch: fetchKeys, nowMs });
  return ed25519By(
    publicKeys.map((key) => publicKeyOf(key)),
    discovery,
  );
}

/*
 * HMAC and digests by node:crypto, synchronously: for a message of 1 KiB this takes a fifth of the time of Web Crypto.
 * Long messages are hashed in slices, one per turn of the event loop for all messages together: 25 MiB take 20 to 100
 * ms, and unauthenticated clients can send them.
 */

/** Synchronous, for any length. */
export const nodeMac: MacPrimitives<KeyObject> = {
  importKey: (octets) => createSecretKey(octets),
  mac(key, algorithm, parts) {
    const hmac = createHmac(algorithm, key);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  },
  sha256: (content) => hash('sha256', content, 'buffer'),
};

/** Octets of one slice: one or two milliseconds. */
const sliceBytes = 1024 * 1024;

/** The same, in slices for long content. */
function createSlicedMac(): MacPrimitives<KeyObject> {
  let line: Promise<unknown> = Promise.resolve();

  /** One turn of the event loop for each slice of any message. */
  function nextTurn(): Promise<unknown> {
    line = line.then(() => setImmediate());
    return line;
  }

  async function digestInSlices(made: Hash | Hmac, parts: readonly Uint8Array[]): Promise<Uint8Array> {
    for (const part of parts) {
      for (let at = 0; at < part.length; at += sliceBytes) {
        await nextTurn();
        made.update(part.subarray(at, at + sliceBytes));
      }
    }
    return made.digest();
  }

  return {
    importKey: nodeMac.importKey,
    mac(key, algorithm, parts) {
      if (parts.every(({ length }) => length <= sliceBytes)) return nodeMac.mac(key, algorithm, parts);
      return digestInSlices(createHmac(algorithm, key), parts);
    },
    sha256(content) {
      if (content.length <= sliceBytes) return nodeMac.sha256(content);
      return digestInSlices(createHash('sha256'), [content]);
    },
  };
}
