/**
 * The contract between the walk and a resource: a path pattern, and one operation for each method. An operation works
 * in stages. Each stage receives the typed values of the stages before it and returns its own, so that an operation can
 * be read and tested from top to bottom.
 */
import type {
  Allowance,
  ArrivingContent,
  ContentFile,
  ContentStream,
  Conversation,
  Request,
} from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { MediaType } from '../http/syntax/media-type.ts';
import { parsePrefer } from '../http/syntax/prefer.ts';
import type { Permission } from '../model/access.ts';
import { type Actor, actorOf, type Cause, causeText, type Used, withCause } from '../model/actor.ts';
import type { Anonymous, Known, Principal } from '../model/principal.ts';
import { UnitTooLarge } from '../store/group-commit.ts';
import type { Change, EventEntry, MaybePromise, Overtaken, Row, RowName } from '../store/store.ts';
import type { CollectionDocumentation, OperationDocumentation, PathDocumentation } from './documentation.ts';
import type { RunningOperation } from './operations/deletion-marks.ts';

/** The request as operations see it, after authentication. */
export type Ask = {
  readonly request: Request;
  /** Decoded captures of the path: the id of a member, the token of a stored query. */
  readonly captures: readonly string[];
  readonly query: string | undefined;
  readonly preferences: Preferences;
  readonly principal: Principal;
  /** The party for which work takes turns: the principal, or the address of an anonymous client. */
  readonly party: string;
  /** The credential of the caller; undefined if anonymous, and for a stored request, which may outlive its credential. */
  readonly known: Known | undefined;
  /** The credential that was used, also by a stored request; absent: none, or a program vouches for the principal. */
  readonly used?: Used | undefined;
  /** Time of arrival, milliseconds since the epoch. */
  readonly now: number;
  /** Changes to commit with the result: the record of an Idempotency-Key, the end of an operation. */
  readonly companions: readonly Companion[];
  /** The asynchronous operation that carries it out; absent: the caller waits. */
  readonly operation?: RunningOperation | undefined;
  /** True for a change that may be computed from one of its row that is not committed yet (`Store.readNewest`). */
  readonly isChained?: boolean;
  /** True for a change that was overtaken, or found its row busy, and now has its turn. */
  readonly hasTurn?: boolean;
};

/** Who asks (§2.9). */
export function actorOfAsk({ principal, used }: Pick<Ask, 'principal' | 'used'>): Actor {
  return actorOf(principal, used);
}

/** Who asks, in which request. */
export function causeOfAsk(ask: Ask): Cause {
  const { id, traceparent } = ask.request;
  return {
    actor: actorOfAsk(ask),
    ...(id === '' ? {} : { requestId: id }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** Names the caller and the request in the events of a unit. A function's call has no request of its own, and leaves that to its unit. */
export function caused(events: readonly EventEntry[], ask: Ask): readonly EventEntry[] {
  const { id, traceparent } = ask.request;
  if (events.length === 0 || id === '') return events;
  const cause = causeText(actorOfAsk(ask), id, traceparent);
  return events.map((event) => ({ ...event, doc: withCause(event.doc, cause) }));
}

export type Companion = (result: Made) => Change;

/** Content of a request that its operation takes as it arrives. */
export type Receiving = {
  /**
   * Opens it, once. 100 (Continue) is sent only now, and content that is never opened stays unread.
   * @throws ContentFailed if it is refused before any of it is read
   */
  open(): Promise<ArrivingContent>;
  /** The request has an Idempotency-Key, which names all of the content: `receive` must read it to its end. */
  readonly isDueNow: boolean;
};

/** What exists at the target before the operation. */
export type Standing = {
  readonly exists: boolean;
  readonly visible: boolean;
  readonly permitted: boolean;
  /** The URI of the result if it is elsewhere (§4.12). */
  readonly elsewhere?: string | undefined;
  /** True if an earlier change of the row, not committed yet, left it like this: nothing is answered from it. */
  readonly isProvisional?: boolean;
};

/** What the content or the query string asks for; `problem` explains why it is refused. */
export type Proposal = {
  readonly problem: Problem | null;
  /** The URI of the result of a read if the proposal shows that it is elsewhere (§4.12). */
  readonly elsewhere?: string | undefined;
  /** Fields of that 303: Set-Cookie. */
  readonly elsewhereFields?: readonly string[];
};

export type Validators = {
  /** Opaque part of the strong entity tag without a content coding; null: no tag. */
  readonly tag: string | null;
  /** Milliseconds since the epoch; null: no Last-Modified. */
  readonly modifiedAt: number | null;
  /** Fields of the 200 that a 304 repeats, besides validators (RFC 9110 §15.4.5). */
  readonly cacheControl?: string;
  readonly fields?: readonly string[];
};

export type Made = {
  readonly outcome: 'made';
  readonly created: boolean;
  /** The request is stored and performed after the response: 202 with Location. Default false. */
  readonly queued?: boolean;
  /** The path of the created or changed resource; null if it is deleted or has no URI. */
  readonly location: string | null;
  /** The representation after the change (of a deletion: before it); null if there is none. */
  readonly doc: string | null;
  readonly modifiedAt: number | null;
  /** The current revision, if the change left the resource as it was; absent: the revision of the unit. */
  readonly rev?: number;
  /** The media type of `doc`, if it is not JSON; `isBase64`: `doc` has the octets in base64. */
  readonly media?: { readonly type: string; readonly isBase64?: boolean };
  /** Content that is produced while it is sent, in place of `doc`; never part of a result that is stored for replay. */
  readonly stream?: ContentStream;
  /** False if the response must not carry validators, as for PUT: the server adds members (RFC 9110 §9.3.4). */
  readonly validated: boolean;
  /** Further response fields, such as Set-Cookie. Never part of a result that is stored for replay. */
  readonly fields?: readonly string[];
};

export type Result =
  | { readonly made: Made; readonly rev: number }
  /** Another change came first: the walk waits for its turn and continues at `exists`. */
  | Overtaken
  /** `allowance`: of a narrower limit, which the response then shows instead of that of the request. */
  | { readonly refused: Problem; readonly allowance?: Allowance }
  | Postponed;

/** The change is more than one unit takes: the request is stored, and carried out as an operation (202). */
export type Postponed = { readonly postponed: true };

/** Makes a change; one that is longer than a unit may be is refused. */
export async function orTooLarge(make: () => MaybePromise<Result>): Promise<Result> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof UnitTooLarge)) throw error;
    return { refused: { code: 'content_too_large', message: error.message } };
  }
}

export type Representation = {
  readonly content: string | Uint8Array | ContentStream | ContentFile;
  readonly mediaType: string;
  readonly validators: Validators;
  readonly cacheControl: string;
  /** Octets that are served in ranges, as a file always is, and so never with a content coding. */
  readonly ranges?: boolean;
  /** Value of Repr-Digest for clients that want one, with sha-256 (RFC 9530). */
  readonly digest?: string | undefined;
  readonly fields?: readonly string[];
  readonly preferencesApplied?: readonly (readonly [name: string, value: string])[];
};

export type Understood<C> =
  | { readonly ok: true; readonly value: C }
  | { readonly ok: false; readonly problem: Problem };

/**
 * Stages in the order of the walk. They are methods, not properties, so that an operation over its own types fits where
 * any operation is expected; the walk passes to each stage only what the same operation returned.
 */
export type Operation<S extends Standing = Standing, C = unknown, P extends Proposal = Proposal> = {
  /** Absent: the OpenAPI document derives the description from the collection, or omits the operation. */
  readonly documentation?: OperationDocumentation;
  /** Decides without regard to the target, before it is read. */
  permission(principal: Principal): Permission;
  /** Media types of accepted content; absent: content has no meaning here. */
  readonly contentTypes?: readonly string[];
  /**
   * Accepts content as received: of any type or none, still coded, possibly empty. `understand` gets these octets, and
   * application/octet-stream if Content-Type is absent or malformed (RFC 9110 §8.3). For senders that sign what they
   * transmit (§4.14.1).
   */
  readonly raw?: boolean;
  /** Maximum octets of content; replaces the setting `actionBytesMax`. */
  readonly contentBytesMax?: number;
  /** Content may be as long as `bodyBytesMax` and `decodedBytesMax` allow: the event loop does not process it. */
  readonly longContent?: boolean;
  readonly contentOptional?: boolean;
  /** The response reports what was done, such as a login: it is not a representation, and ignores return=minimal. */
  readonly reports?: boolean;
  /** Media types of its responses, where they differ from those of the resource. */
  readonly offers?: readonly string[];
  /** Its representation may be served in ranges: a file, or octets that say so. */
  readonly ranges?: boolean;
  /** Fields of its representation are the state of the resource: HEAD asks for them alone (204). */
  readonly hasFieldState?: boolean;
  /** Its result is at another URI: `elsewhere` of the proposal, `location` of what was made. */
  readonly redirect?: 'see_other' | 'temporary' | 'permanent';
  /** A successful browser form gets 303 (§4.12). */
  readonly answersForms?: boolean;
  /** Idempotency-Key is supported (POST, PUT, PATCH and DELETE). `sealed`: the result contains a secret and is stored encrypted. */
  readonly idempotent?: boolean | 'sealed';
  /** respond-async is supported. */
  readonly asynchronous?: boolean;
  /** PUT creates a missing resource. */
  readonly createsHere?: boolean;
  /** Without If-Match: 428. */
  readonly matchRequired?: boolean;
  /** Says the limit of its content and the setting that raises it, for the refusal. */
  readonly contentBound?: string;
  /**
   * Octets that its rows, events, words and answer take at most, where they are more than its content (memory/work-rules.ts).
   * @param bytes the content; undefined: it has none, or it is coded
   */
  makes?(bytes: Uint8Array | undefined): number;
  /** The same of what `standing` found, where it may be much. `standing` is asked again after a wait for that much memory. */
  makesOf?(standing: S): number;
  /**
   * Takes the content as it arrives, in place of `understand`, where `receives` says so. It may return before it has opened the content, so that
   * `propose` does once the state has been judged, and a refusal costs no octets; `propose` may be called again then. `ContentFailed`, of either,
   * is the refusal of the request. Content codings are refused.
   */
  receive?(ask: Ask, content: Receiving, mediaType: MediaType): MaybePromise<Understood<C>>;
  /** The content of this type is for `receive`; absent: all is. */
  receives?(mediaType: MediaType): boolean;
  /** Maximum octets of content for `receive`. */
  readonly receivedBytesMax?: number;
  /** Called when the walk ends without a change that was made of what `receive` returned. */
  discard?(content: C): void;
  /** Parses decoded content; with `raw`, content as received. */
  understand?(ask: Ask, bytes: Uint8Array, mediaType: MediaType): MaybePromise<Understood<C>>;
  standing(ask: Ask): MaybePromise<S>;
  propose?(ask: Ask, standing: S, content: C | undefined): MaybePromise<P>;
  validators?(ask: Ask, standing: S, proposal: P | undefined): MaybePromise<Validators>;
  /** The row that it changes, if the request alone determines it: changes of one row take turns. */
  changes?(ask: Ask): RowName | undefined;
  /** True if `standing` reads that row by `readNewest` when `Ask.isChained`, and `act` names no other revision of it. */
  readonly chains?: boolean;
  /** Makes the change, in one unit with the companions of the ask. */
  act?(ask: Ask, standing: S, proposal: P | undefined): MaybePromise<Result>;
  represent?(ask: Ask, standing: S, proposal: P | undefined): MaybePromise<Representation>;
  /**
   * The row on whose revision, besides the request and the audience of its caller, the representation depends alone: its answer is then
   * given again (handler.ts). Undefined: it depends on more.
   */
  restsOn?(
    standing: S,
    proposal: P | undefined,
  ): { readonly table: string; readonly row: Row | undefined } | undefined;
  /** Responds with a stream instead of a representation, if Accept prefers text/event-stream. */
  stream?(ask: Ask, standing: S): MaybePromise<EventStream>;
  /** Opens a conversation instead; a request without a WebSocket handshake gets 426 (§4.13). */
  converse?(ask: Ask, standing: S): MaybePromise<Conversation>;
};

export type EventStream = ContentStream;

export type Resource = {
  /** `/api/v1/products/{id}`: names the resource in metrics, logs and the OpenAPI document. */
  readonly pattern: string;
  /** Absent: the OpenAPI document does not describe it. */
  readonly documentation?: PathDocumentation | CollectionDocumentation;
  /** HEAD uses GET, and the kernel answers OPTIONS; neither is listed. */
  readonly operations: ReadonlyMap<string, Operation>;
  /** Fields of every response of this resource: Deprecation, Sunset, Link. */
  readonly constantFields: readonly string[];
  readonly offers: readonly string[];
  /** Every caller is anonymous here and credentials are not read, so that an expired one does not prevent a login. */
  readonly ignoresCredentials?: boolean;
  /** Serves all callers on connections of the reserve (`connectionsReservedMax`), not administrators only, and before requests that wait. */
  readonly inReserve?: boolean;
  /** No rate limit counts its requests, except those with an invalid credential. */
  readonly unlimited?: boolean;
  /** The refusal of a request over a rate limit, for clients that take 429 for an end. Default `rate_limited`. */
  readonly rateProblem?: (request: Request) => ProblemCode;
  /**
   * Programs post signed content here, and only the signature decides. Fields meant for browsers, caches and people
   * have no effect: Accept (except for the form of a refusal), Origin and CORS, and conditional fields, because no
   * representation is selected to which they could apply (RFC 9110 §13.2.1).
   */
  readonly judgedBySignature?: boolean;
  /** Replaces the rate limits, and counts every request, whether valid or not. */
  readonly admit?: (request: Request, principal: Principal, nowMs: number) => Allowance | undefined;
  /** Replaces the usual authentication, which it receives as `authenticate`. */
  readonly identify?: (
    request: Request,
    query: string | undefined,
    authenticate: Authenticate,
  ) => MaybePromise<Identified>;
};

/** The caller: a known principal, anonymous, or a problem with its credential. */
export type Identified =
  | Known
  | { readonly principal: Anonymous }
  | { readonly problem: ProblemCode; readonly allowance?: Allowance };

export type Authenticate = (request: Request, query: string | undefined) => MaybePromise<Identified>;

export type Route = { readonly resource: Resource; readonly captures: readonly string[] };

export type Preferences = {
  readonly return: 'minimal' | 'representation' | undefined;
  readonly respondAsync: boolean;
  readonly countExact: boolean;
  /** The answer says how a list was read. */
  readonly plan: boolean;
  /** Seconds for which an empty page of the feed may be held; 0: none. */
  readonly waitSeconds: number;
};

/** The default of the known preferences of RFC 7240; unknown preferences are ignored (§2). */
export const noPreferences: Preferences = {
  return: undefined,
  respondAsync: false,
  countExact: false,
  plan: false,
  waitSeconds: 0,
};

export function readPreferences(field: string | undefined): Preferences {
  if (field === undefined) return noPreferences;
  const preferences = parsePrefer(field);
  const wanted = preferences.get('return')?.value;
  return {
    return: wanted === 'minimal' || wanted === 'representation' ? wanted : undefined,
    respondAsync: preferences.has('respond-async'),
    countExact: preferences.get('count')?.value === 'exact',
    plan: preferences.has('plan'),
    waitSeconds: secondsOf(preferences.get('wait')?.value),
  };
}

/** `delta-seconds` of RFC 7240 §4.3, of any length: Infinity too, which is above every bound. A wish that is none has no effect. */
function secondsOf(text = ''): number {
  return deltaSeconds.test(text) ? Number(text) : 0;
}

const deltaSeconds = /^\d+$/;
