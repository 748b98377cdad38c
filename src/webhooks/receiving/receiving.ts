/**
 * Receiving webhooks (§4.14): the resource at which senders post, the inbox, and the processing of messages, wired together. A message that
 * was received before, or whose type has no handler, is 204 like any other.
 */
import type { Configuration } from '../../config/configuration.ts';
import { moduleSentence } from '../../config/define.ts';
import { ConfigurationError } from '../../config/inspection.ts';
import { refuseSenderSecret } from '../../config/sender-secrets.ts';
import type { DeclaredSender, Source } from '../../config/senders.ts';
import type { Dial } from '../../egress/dial.ts';
import type { Exchange } from '../../egress/exchange.ts';
import { createGuardedFetch, type GuardedFetch } from '../../egress/late-http.ts';
import type { Problem } from '../../http/problem.ts';
import {
  type Content,
  type Item,
  json,
  type OperationDocumentation,
  type Tag,
} from '../../kernel/documentation.ts';
import type {
  Made,
  Operation,
  Proposal,
  Resource,
  Result,
  Standing,
  Understood,
} from '../../kernel/resource.ts';
import { HandlerThreads } from '../../logic/threads/handler-threads.ts';
import type { OpenTransaction } from '../../logic/transaction/resource-call.ts';
import { messageBound, messageOctets } from '../../memory/work-rules.ts';
import type { ServedCollection } from '../../resources/collection/serve-collection.ts';
import type { Serving } from '../../resources/collection/served-collection.ts';
import type { Services } from '../../store/capabilities.ts';
import type { RetentionRule } from '../../store/retention.ts';
import { whenKnown } from '../../store/store.ts';
import type { DueWork } from '../../work/work-engine.ts';
import { type ChallengeContent, isOpen } from '../receive/challenge.ts';
import type { Challenge } from '../sender-rule.ts';
import { type Accept, createAccept, refusalOf, type Verdict } from './accept-message.ts';
import { createForward, type HandOn, handlersOn } from './hand-on.ts';
import { HandingOn } from './handing-on-engine.ts';
import { receivedResources } from './received/received-routes.ts';
import { receivingRetention } from './received-tables.ts';
import { senderResources } from './sender-routes.ts';
import { loadSenderSecrets, type MadeSecret, type SenderSecrets } from './sender-secrets.ts';

export type ReceivedOptions = Services & {
  readonly configuration: Configuration;
  readonly senderSecrets: ReadonlyMap<string, readonly string[]>;
  /** URL of the configuration as a module, which the threads of handlers import; undefined: there is none. */
  readonly module: string | undefined;
  readonly exchange: Exchange;
  readonly dial: Dial;
  readonly work: DueWork;
  /** For the functions of handlers; called when the first message is handled. */
  readonly openTransaction: OpenTransaction;
};

export type Receiving = {
  readonly made: readonly MadeSecret[];
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly resources: readonly Resource[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  /** Wakes a source: this process stored a message of it. */
  wake(source: string): void;
  start(): Promise<void>;
  /** Starts no further attempts and waits at most `ms` milliseconds for those under way. */
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
};

/** @throws ConfigurationError if a handler is declared without a module to import it from */
export async function createReceiving(options: ReceivedOptions): Promise<Receiving> {
  const { configuration, settings } = options;
  const { senders } = configuration;
  const { secrets, made } = await loadSenderSecrets({ ...options, senders, given: options.senderSecrets });
  const threads = threadsOf(options);
  const engine = engineOf(options, secrets, threads);
  const keys = createGuardedFetch(options.dial, settings.egressHeadBytesMax);
  return {
    made,
    builtIn: (serving) => [receivedResources(options, sourcesOf(configuration), serving)],
    resources: resourcesOf(options, secrets, keys, engine, threads),
    retention: receivingRetention(settings),
    gauges: gaugesOf(engine),
    wake: (source) => engine.wake(source),
    start: () => engine.start(),
    drain: (ms) => engine.drain(ms),
    async close() {
      await engine.close();
      await threads?.close();
      await keys.close();
      await secrets.close();
    },
  };
}

function threadsOf(options: ReceivedOptions): HandlerThreads | undefined {
  const { configuration, settings, module } = options;
  const handled = [...sourcesOf(configuration).values()].filter(
    ({ handOn, rule }) => isFunction(handOn) || rule?.signature.kind === 'function',
  );
  if (handled.length === 0) return undefined;
  if (module === undefined) {
    const names = handled.map(({ name }) => name).join(', ');
    throw new ConfigurationError([`functions of senders, subscribers and jobs (${names}) ${moduleSentence}`]);
  }
  const monotonic = (): number => performance.now();
  return new HandlerThreads({ ...options, module, settings, monotonic });
}

function isFunction({ kind }: Source['handOn']): boolean {
  return kind === 'handler' || kind === 'subscriber' || kind === 'job';
}

/** By their names in the inbox. */
function sourcesOf({ senders, subscribers, jobs }: Configuration): ReadonlyMap<string, Source> {
  const functions = [...subscribers.values(), ...jobs.values()].map(({ source }) => source);
  return new Map([...senders.values(), ...functions].map((source) => [source.name, source]));
}

function engineOf(
  options: ReceivedOptions,
  secrets: SenderSecrets,
  threads: HandlerThreads | undefined,
): HandingOn {
  const { configuration, settings, tracing } = options;
  const forward = createForward(options, options.exchange, secrets);
  const handlers =
    threads === undefined ? undefined : handlersOn(threads, settings.subscriberDepthMax, tracing);
  const handOnOf = ({ handOn }: Source): HandOn | undefined => {
    if (handOn.kind === 'forward') return forward;
    return isFunction(handOn) ? handlers : undefined;
  };
  return new HandingOn(options, options.work, sourcesOf(configuration).values(), handOnOf);
}

function resourcesOf(
  options: ReceivedOptions,
  secrets: SenderSecrets,
  { fetch: fetchKeys }: GuardedFetch,
  engine: HandingOn,
  threads: HandlerThreads | undefined,
): readonly Resource[] {
  const { configuration } = options;
  const accept = createAccept(options, configuration, secrets, {
    ...{ fetchKeys, threads, accepted: (sender) => engine.wake(sender) },
  });
  return [
    ...receiveResources(options, configuration, accept, secrets),
    ...senderResources(options, configuration, secrets),
  ];
}

function gaugesOf(engine: HandingOn): Receiving['gauges'] {
  return [
    [
      'comity_received_in_flight',
      'Received messages that are being handed on.',
      () => engine.counts().inFlight,
    ],
    [
      'comity_senders_paused',
      'Senders whose messages wait because handing them on failed.',
      () => engine.counts().paused,
    ],
  ];
}

/*
 * The paths where senders post (§4.14): POST verifies a message and stores it; accept-message.ts does both.
 */

export function receiveResources(
  services: Services,
  { base, senders }: Pick<Configuration, 'base' | 'senders'>,
  accept: Accept,
  secrets: AdoptedSecrets,
): readonly Resource[] {
  return [...senders.values()].map((sender) => ({
    pattern: `${base}/webhooks/${sender.name}`,
    documentation: {
      name: `Webhook${pascal(sender.name)}`,
      tag,
    },
    operations: new Map([
      ['POST', postOperation(services, { accept, secrets }, sender) as Operation],
      ...(asksByGet(sender) ? [['GET', challengeOperation(accept, sender) as Operation] as const] : []),
    ]),
    constantFields: [],
    offers: ['application/json'],
    ignoresCredentials: true,
    unlimited: true,
    judgedBySignature: true,
  }));
}

const tag: Tag = {
  name: 'webhooks',
  description: 'The paths where senders post webhooks, one for each sender.',
  audience: 'operator',
};

/** Describes what the sender posts, how it signs, and the responses. */
function documentationOf(sender: DeclaredSender, bytesMax: number): OperationDocumentation {
  const { name, description, rule } = sender;
  const { challenge } = rule;
  const asks =
    challenge === undefined ? '' : ' A challenge is answered 200 with the requested value and not stored.';
  return {
    id: `receive${pascal(name)}`,
    summary: `Post a webhook as ${name}`,
    description: `${description === '' ? '' : `${description} `}Only for the sender ${name}, which signs its messages. Answered 204 when the message is stored, also for a repeated message and for types that no handler processes; processing follows.${asks} At most ${bytesMax} octets, of any media type.`,
    parameters: signatureFields(sender),
    takes: { '*/*': {} },
    // Only senders with a challenge get content, and those that want 200.
    ...(challenge === undefined && rule.answers?.accepted === undefined
      ? {}
      : { silence: 'sometimes', gives: { changed: givenContent(challenge) } }),
    codes: ['signature_invalid', 'signature_stale', 'unavailable'],
  };
}

function givenContent(challenge: Challenge | undefined): Content {
  const { answer, proof } = challenge ?? {};
  const names = [answer, proof?.name].filter((name) => name !== undefined);
  if (names.length === 0) return { 'text/plain': {} };
  const value = '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P';
  return json(
    { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])), required: names },
    Object.fromEntries(names.map((name) => [name, value])),
  );
}

function signatureFields({ rule: { signature } }: DeclaredSender): readonly Item[] {
  if (signature.kind === 'function') return [];
  if (signature.kind === 'token') return inFields([[signature.header, 'The secret.']]);
  if (signature.kind === 'jwt')
    return inFields([[signature.header, `A JWT that is signed by ${signature.algorithm}.`]]);
  const { kind, header, encoding, prefix, signed, timestamp, id } = signature;
  const before = prefix === '' ? '' : ` behind \`${prefix}\``;
  const made = kind === 'hmac' ? `HMAC ${signature.hash}` : `Signature by ${kind}`;
  const places: [string, string][] = [[header, `${made} of \`${signed}\` as ${encoding}${before}.`]];
  if (timestamp !== undefined && 'header' in timestamp) {
    const { unit = 's' } = timestamp;
    const form = unit === 'rfc3339' ? 'RFC 3339' : `Unix time in ${unit}`;
    places.push([timestamp.header, `Time of the signature: ${form}.`]);
  }
  if (id !== undefined) places.push([id, 'Id of the message, the same for every attempt.']);
  return inFields(places);
}

/** Members of the body are no parameters. */
function inFields(places: readonly (readonly [string, string])[]): readonly Item[] {
  return places.flatMap(([place, description]) => (place.startsWith('/') ? [] : [field(place, description)]));
}

function field(name: string, description: string): Item {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}

/** `acme-eu` becomes `AcmeEu`. Different names stay different: before a digit or nothing, a hyphen becomes `_`. */
function pascal(name: string): string {
  const [first = '', ...rest] = name.split('-');
  return (
    capital(first) + rest.map((word) => (startsWithLetter.test(word) ? capital(word) : `_${word}`)).join('')
  );
}

const startsWithLetter = /^[a-z]/;

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** A verified message to store, or a challenge to answer. */
type Judged = Extract<Verdict, { ok: true }>;
type AdoptedSecrets = Pick<SenderSecrets, 'adopt'>;
type Taking = { readonly accept: Accept; readonly secrets: AdoptedSecrets };
type Proposed = Proposal & { readonly judged: Judged | undefined };

const open: Standing = { exists: true, visible: true, permitted: true };

function postOperation(
  { settings: { receivedBytesMax }, memory }: Services,
  { accept, secrets }: Taking,
  sender: DeclaredSender,
): Operation<Standing, Judged, Proposed> {
  return {
    documentation: documentationOf(sender, receivedBytesMax),
    permission: () => 'granted',
    raw: true,
    ...messageBound({ most: receivedBytesMax, memoryBytes: memory.budget.bytesMax }),
    makes: (bytes) => messageOctets(bytes?.length ?? 0),
    reports: true,
    understand({ request }, bytes) {
      const verdict = accept.answerOpen(sender, request) ?? accept.verify(sender, request, bytes);
      return verdict instanceof Promise ? verdict.then(understood) : understood(verdict);
    },
    standing: () => open,
    propose: (_ask, _standing, judged) => ({ problem: null, judged }),
    async act(_ask, _standing, proposal) {
      if (proposal?.judged === undefined) throw new Error('a stored message requires its verdict');
      return take({ accept, secrets }, sender, proposal.judged);
    },
  };
}

function understood(verdict: Verdict): Understood<Judged> {
  return verdict.ok ? { ok: true, value: verdict } : verdict;
}

/** Anyone can send a handshake: what follows the first one must not replace its secret. */
async function shakeHands(
  sender: DeclaredSender,
  { field, secret }: { readonly field: string; readonly secret: string },
  secrets: AdoptedSecrets,
): Promise<Result> {
  const isSound = refuseSenderSecret(sender, 'receive', secret) === undefined;
  if (!isSound || !(await secrets.adopt({ sender: sender.name, use: 'receive' }, secret)))
    return { refused: refusalOf(sender.rule, 'no-match') };
  return { made: { ...silent, doc: '', media: { type: 'text/plain' }, fields: [field, secret] }, rev: 0 };
}

async function take({ accept, secrets }: Taking, sender: DeclaredSender, judged: Judged): Promise<Result> {
  if ('challenge' in judged) {
    const { mediaType, text } = judged.challenge;
    return { made: { ...silent, doc: text, media: { type: mediaType } }, rev: 0 };
  }
  if ('handshake' in judged) return shakeHands(sender, judged.handshake, secrets);
  await accept.keep(sender, judged.verified);
  return sender.rule.answers?.accepted === 200 ? takenWithText : taken;
}

/** Challenges without a signature (GET, and HEAD as it), before the sender posts anything. */
function challengeOperation(
  accept: Accept,
  sender: DeclaredSender,
): Operation<Standing, never, Proposal & { readonly challenge?: ChallengeContent }> {
  const { challenge } = sender.rule;
  return {
    documentation: {
      id: `challenge${pascal(sender.name)}`,
      summary: `Ask as ${sender.name} whether this is a receiver`,
      description: `The question of ${sender.name} before it posts webhooks here, answered with what it asks for.`,
      gives: { representation: givenContent(challenge) },
      codes: ['query_parameter_invalid'],
    },
    permission: () => 'granted',
    standing: () => open,
    propose({ request }) {
      // HEAD is answered as GET, whichever of the two the sender sends.
      const method = isOpen(challenge) ? (challenge.method ?? 'GET') : request.method;
      const found = accept.answerOpen(sender, { ...request, method, target: request.target });
      if (found === undefined) return { problem: challengeMissing };
      return whenKnown(found, (verdict) => {
        if (!verdict.ok) return { problem: verdict.problem };
        return 'challenge' in verdict
          ? { problem: null, challenge: verdict.challenge }
          : { problem: challengeMissing };
      });
    },
    represent: (_ask, _standing, proposal) => ({
      content: proposal?.challenge?.text ?? '',
      mediaType: proposal?.challenge?.mediaType ?? 'text/plain',
      validators: { tag: null, modifiedAt: null },
      cacheControl: 'no-store',
    }),
  };
}

const challengeMissing: Problem = {
  code: 'query_parameter_invalid',
  message: 'the request lacks the challenge that this sender sends, or it is longer than 4096 characters',
};

function asksByGet({ rule: { challenge } }: DeclaredSender): boolean {
  return isOpen(challenge) && challenge.method !== 'POST';
}

/** Without a Location: senders may not read the inbox. */
const silent: Made = {
  outcome: 'made',
  created: false,
  location: null,
  doc: null,
  modifiedAt: null,
  validated: false,
};
const taken: Result = { made: silent, rev: 0 };
/** 200, for senders that take 204 for a failure. */
const takenWithText: Result = { made: { ...silent, doc: '', media: { type: 'text/plain' } }, rev: 0 };
