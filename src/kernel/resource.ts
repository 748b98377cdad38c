/**
 * What a resource is to the walk: a pattern, and for each method one operation.
 * An operation answers the walk's questions in stages; each stage gets the typed values of those before it
 * and returns its own, so that an operation can be read and tested from top to bottom.
 */

import type { Allowance, ContentStream, Conversation, Request } from '../http/message.ts';

import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { MediaType } from '../http/syntax/media-type.ts';
import { parsePrefer } from '../http/syntax/prefer.ts';
import type { Permission } from '../model/access.ts';
import type { Anonymous, Known, Principal } from '../model/principal.ts';
import type { Change, MaybePromise, Overtaken, RowName } from '../store/store.ts';
import type { CollectionDocumentation, OperationDocumentation, PathDocumentation } from './documentation.ts';

/** The request as operations see it, once the principal is known. */
export type Ask = {
  readonly request: Request;
  /** What the path captured, decoded: the id of a member, the token of a stored query. */
  readonly captures: readonly string[];
  /** The query component, undecoded, without `?`. */
  readonly query: string | undefined;
  readonly preferences: Preferences;
  readonly principal: Principal;
  /** Whom work is done for, where parties take turns: the principal, or the address of who is not known. */
  readonly party: string;
  /** The credential that it was known by; undefined for a stored request, which outlives its own. */
  readonly known: Known | undefined;
  /** Arrival, milliseconds since the epoch. */
  readonly now: number;
  /** Changes that must commit with the result: the record of an Idempotency-Key, the end of an operation. */
  readonly companions: readonly Companion[];
};

export type Companion = (result: Made) => Change;

/** What stands at the target before anything is done. */
export type Standing = {
  readonly exists: boolean;
  readonly visible: boolean;
  readonly permitted: boolean;
  /** Where the result lies instead (§4.12). */
  readonly elsewhere?: string | undefined;
};

/** What the content or the query component asks for; `problem` says why it cannot be had. */
export type Proposal = {
  readonly problem: Problem | null;
  /** Where the answer to a read lies instead (§4.12), as far as only the proposal can tell. */
  readonly elsewhere?: string | undefined;
  /** Fields of that answer: Set-Cookie. */
  readonly elsewhereFields?: readonly string[];
};

export type Validators = {
  /** Opaque part of the strong entity tag without a content coding; null: no tag. */
  readonly tag: string | null;
  /** Milliseconds since the epoch; null: no Last-Modified. */
  readonly modifiedAt: number | null;
  /** What a 304 must repeat of the 200 besides validators (RFC 9110 §15.4.5). */
  readonly cacheControl?: string;
  readonly fields?: readonly string[];
};

export type Made = {
  readonly outcome: 'made';
  readonly created: boolean;
  /** What was asked for is kept, and done after the answer: 202 with Location. Default false. */
  readonly queued?: boolean;
  /** Of what was made or changed; null when it is gone or has no URI. */
  readonly location: string | null;
  /** The representation after the change (of a deletion: before it); null where there is none. */
  readonly doc: string | null;
  readonly modifiedAt: number | null;
  /** Revision of what stands, where the change left it as it was; otherwise that of the unit that made the change. */
  readonly rev?: number;
  /** False for PUT: the server adds members, so the answer must not carry validators (RFC 9110 §9.3.4). */
  readonly validated: boolean;
  /** Further fields of the answer: Set-Cookie. Never of a result that is kept for replay. */
  readonly fields?: readonly string[];
};

export type Result =
  | { readonly made: Made; readonly rev: number }
  /** Another change came first; the walk waits for its turn and looks anew. */
  | Overtaken
  /** `allowance`: of a limit narrower than that of the request, which the answer then tells of instead. */
  | { readonly refused: Problem; readonly allowance?: Allowance };

export type Representation = {
  readonly content: string | Uint8Array;
  readonly mediaType: string;
  readonly validators: Validators;
  readonly cacheControl: string;
  /** Further fields: Link, Location, Content-Location, X-Total-Count ... */
  readonly fields?: readonly string[];
  readonly preferencesApplied?: readonly (readonly [name: string, value: string])[];
};

/** Content as the operation understood it, or why it could not. */
export type Understood<C> =
  | { readonly ok: true; readonly value: C }
  | { readonly ok: false; readonly problem: Problem };

/**
 * Stages in order of the walk. Methods, not properties, so that an operation over its own types
 * fits where any operation is expected; the walk hands each stage only what the same operation returned.
 */
export type Operation<S extends Standing = Standing, C = unknown, P extends Proposal = Proposal> = {
  /** Absent: the OpenAPI document describes it as any of a collection, or not at all. */
  readonly documentation?: OperationDocumentation;
  /** Whether the principal may do this whatever stands here. */
  permission(principal: Principal): Permission;
  /** Media types of content that has a meaning here; absent: content has none. */
  readonly contentTypes?: readonly string[];
  /**
   * Content is taken as it came, of any type or none, with its codings on, and may be empty; `understand` gets these octets, and
   * application/octet-stream where no media type came or none that can be read (RFC 9110 §8.3). For senders that sign what they transmit
   * (§4.14.1).
   */
  readonly raw?: boolean;
  /** Octets of content that are taken here, in place of the setting `actionBytesMax`. */
  readonly contentBytesMax?: number;
  /** Content may be as long as `bodyBytesMax` and `decodedBytesMax` allow: long content is not worked on by the event loop. */
  readonly longContent?: boolean;
  /** Content has a meaning and may be left out. */
  readonly contentOptional?: boolean;
  /** Its answer tells what was done, such as a login: it is no representation, and return=minimal cannot leave it out. */
  readonly reports?: boolean;
  /** Whether the principal's form may be answered 303 (§4.12). */
  readonly answersForms?: boolean;
  /** Idempotency-Key is honoured (POST and PATCH). `sealed`: the result holds a secret, and is kept encrypted. */
  readonly idempotent?: boolean | 'sealed';
  /** respond-async is honoured. */
  readonly asynchronous?: boolean;
  /** Where PUT creates. */
  readonly createsHere?: boolean;
  /** 428 without If-Match. */
  readonly matchRequired?: boolean;
  /** Understands decoded content. */
  understand?(ask: Ask, bytes: Uint8Array, mediaType: MediaType): MaybePromise<Understood<C>>;
  standing(ask: Ask): MaybePromise<S>;
  propose?(ask: Ask, standing: S, content: C | undefined): MaybePromise<P>;
  validators?(ask: Ask, standing: S, proposal: P | undefined): MaybePromise<Validators>;
  /** The row that it changes, where the request alone tells: changes of one row are made in turn. */
  changes?(ask: Ask): RowName | undefined;
  /** Makes the change, in one store unit with the companions of the ask. */
  act?(ask: Ask, standing: S, proposal: P | undefined): Promise<Result>;
  represent?(ask: Ask, standing: S, proposal: P | undefined): MaybePromise<Representation>;
  /** Streams instead of representing, where `streams`. */
  stream?(ask: Ask, standing: S): MaybePromise<EventStream>;
  /** Is spoken to instead: whoever asks without the handshake of a WebSocket is told to bring one (§4.13). */
  converse?(ask: Ask, standing: S): MaybePromise<Conversation>;
};

export type EventStream = ContentStream;

export type Resource = {
  /** `/api/v1/products/{id}`: names the resource in metrics, logs and the OpenAPI document. */
  readonly pattern: string;
  /** Absent: the OpenAPI document does not describe it. */
  readonly documentation?: PathDocumentation | CollectionDocumentation;
  /** HEAD is answered by GET, OPTIONS by the kernel; neither is listed here. */
  readonly operations: ReadonlyMap<string, Operation>;
  /** Fields of every answer of this resource: Deprecation, Sunset, Link. */
  readonly constantFields: readonly string[];
  /** Media types of its representations, preferred first. */
  readonly offers: readonly string[];
  /**
   * Whoever asks is nobody here: a credential that came besides is not looked at, so that one which is over stands in nobody's way
   * to a new one.
   */
  readonly ignoresCredentials?: boolean;
  /** Anyone is answered by a connection of the reserve, which others get only administrators to (`connectionsReservedMax`). */
  readonly inReserve?: boolean;
  /** Requests count against no rate limit, unless they bring a bad credential. */
  readonly unlimited?: boolean;
  /**
   * A program posts here what it signed, and that alone decides: what a request may say besides for the sake of a browser, a cache or a
   * person has no effect. That is Accept (but for the form of a refusal), Origin and CORS, and conditional fields, since nothing is selected
   * here that they could be about (RFC 9110 §13.2.1).
   */
  readonly judgedBySignature?: boolean;
  /** Takes the place of the limit on requests: what it says of this one, which counts whether it is good or not. */
  readonly admit?: (request: Request, principal: Principal, nowMs: number) => Allowance | undefined;
  /** Takes the place of how a caller is known everywhere else, which it is handed as `authenticate`. */
  readonly identify?: (
    request: Request,
    query: string | undefined,
    authenticate: Authenticate,
  ) => MaybePromise<Identified>;
};

/** Who asks: somebody known, nobody, or the bearer of a credential that is not good. */
export type Identified =
  | Known
  | { readonly principal: Anonymous }
  | { readonly problem: ProblemCode; readonly allowance?: Allowance };

/** @param query of the request target, undecoded */
export type Authenticate = (request: Request, query: string | undefined) => MaybePromise<Identified>;

/** Where a path leads. */
export type Route = { readonly resource: Resource; readonly captures: readonly string[] };

export type Preferences = {
  readonly return: 'minimal' | 'representation' | undefined;
  readonly respondAsync: boolean;
  readonly countExact: boolean;
};

/** The preferences of RFC 7240 that this server knows. Unknown ones are ignored, as RFC 7240 §2 asks. */
export const noPreferences: Preferences = { return: undefined, respondAsync: false, countExact: false };

export function readPreferences(field: string | undefined): Preferences {
  if (field === undefined) return noPreferences;
  const preferences = parsePrefer(field);
  const wanted = preferences.get('return')?.value;
  return {
    return: wanted === 'minimal' || wanted === 'representation' ? wanted : undefined,
    respondAsync: preferences.has('respond-async'),
    countExact: preferences.get('count')?.value === 'exact',
  };
}
