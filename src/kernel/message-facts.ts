/**
 * Reads the first group of facts.ts, which needs the message alone. Runs on every request, so absent fields cost no
 * parsing.
 */

import type { Facts } from '../http/conduct/facts.ts';
import { knownMethods, type Request } from '../http/message.ts';
import { isUnderstoodTransferCoding, type RequestFields } from '../http/request-fields.ts';
import { parseContentCoding, preferredMediaType, prefersHtml } from '../http/syntax/accept.ts';
import { parseEntityTagList } from '../http/syntax/entity-tag.ts';
import { valuesOf } from '../http/syntax/field-value.ts';
import { type MediaType, parseMediaType } from '../http/syntax/media-type.ts';
import { isWholeContentRange } from '../http/syntax/range.ts';
import { parseRequestTarget } from '../http/syntax/request-target.ts';
import { parseIdempotencyKey } from '../http/syntax/structured-field.ts';
import { isHost, isOrigin } from '../http/syntax/uri.ts';
import { readWebSocketHandshake } from '../http/syntax/websocket-handshake.ts';
import type { Overtaken } from '../store/store.ts';
import { foreignCharset } from './content/content-shape.ts';
import { contentCodings } from './content/decode-content.ts';
import { isConditional } from './preconditions.ts';
import type { Selected } from './ranges.ts';
import {
  type Operation,
  type Postponed,
  type Preferences,
  type Result,
  type Route,
  readPreferences,
  type Standing,
} from './resource.ts';
import type { Router } from './router.ts';

export type MessageLimits = {
  readonly targetBytesMax: number;
  readonly bodyBytesMax: number;
  readonly actionBytesMax: number;
  readonly traceEnabled: boolean;
};

export type MessageReading = {
  readonly facts: Facts;
  readonly route: Route | undefined;
  readonly operation: Operation | undefined;
  readonly query: string | undefined;
  readonly preferences: Preferences;
  readonly mediaType: MediaType | undefined;
  readonly codings: readonly string[];
  /** The operation takes the content as it arrives. */
  readonly isReceived: boolean;
  /** The request has conditional fields that apply here. */
  readonly isConditional: boolean;
  /** Explains which field is wrong if `fieldsSound` is false. */
  readonly fieldComplaint: string | undefined;
};

const noCodings: readonly string[] = [];
export const octetStream: MediaType = { type: 'application/octet-stream', parameters: new Map() };
const noParts: TargetParts = { valid: false, serverWide: false, query: undefined, route: undefined };

export function readMessage(request: Request, router: Router, limits: MessageLimits): MessageReading {
  const { fields } = request;
  const target = request.target.length <= limits.targetBytesMax ? readTarget(request, router) : undefined;
  const route = target?.route;
  const operation = route?.resource.operations.get(request.method === 'HEAD' ? 'GET' : request.method);
  const mediaType = fields.contentType === undefined ? undefined : parseMediaType(fields.contentType);
  const parts: Parts = {
    request,
    limits,
    target,
    route,
    operation,
    preferences: readPreferences(fields.prefer),
    mediaType,
    isReceived: isReceived(operation, mediaType),
    codings: fields.contentEncoding === undefined ? noCodings : parseContentCoding(fields.contentEncoding),
    fieldComplaint: complaint(request, route, operation),
  };
  return {
    facts: factsOf(parts),
    route,
    operation,
    query: target?.query,
    preferences: parts.preferences,
    mediaType,
    codings: parts.codings ?? noCodings,
    isReceived: parts.isReceived,
    isConditional: route?.resource.judgedBySignature !== true && isConditional(fields),
    fieldComplaint: parts.fieldComplaint,
  };
}

type Parts = Pick<
  MessageReading,
  'route' | 'operation' | 'preferences' | 'mediaType' | 'isReceived' | 'fieldComplaint'
> & {
  readonly request: Request;
  readonly limits: MessageLimits;
  /** Undefined: longer than the limit. */
  readonly target: TargetParts | undefined;
  /** Undefined: Content-Encoding is malformed. */
  readonly codings: readonly string[] | undefined;
};

/** One literal with every fact: objects whose shape never changes are fastest to read and write. */
function factsOf(parts: Parts): Facts {
  const { request, limits, target, route, operation, preferences, mediaType, codings, isReceived } = parts;
  const { method, fields } = request;
  const raw = operation?.raw === true;
  const form = isForm(mediaType) && operation?.answersForms === true && prefersHtml(fields.accept);
  return {
    method,
    methodKnown: knownMethods.has(method),
    targetFits: target !== undefined,
    targetValid: target?.valid ?? false,
    hostValid: isHostValid(request),
    fieldsSound: parts.fieldComplaint === undefined,
    transferCodingUnderstood: isUnderstoodTransferCoding(fields.transferEncoding ?? 'chunked'),
    expectationMet: fields.expect === undefined || fields.expect.toLowerCase() === '100-continue',
    serverWide: target?.serverWide ?? false,
    traceEnabled: limits.traceEnabled,
    hasContent: hasContent(request),
    routed: route !== undefined,
    methodAllowed: operation !== undefined || (method === 'OPTIONS' && route !== undefined),
    preflight: target?.serverWide !== true && isPreflight(request, route),
    acceptable: form || isAcceptable(fields.accept, route, operation),
    streamAsked: operation?.stream !== undefined && asksForStream(fields.accept),
    rangeAsked: method === 'GET' && fields.range !== undefined && operation?.ranges === true,
    fieldsAsked: method === 'HEAD' && operation?.hasFieldState === true,
    conversing: operation?.converse !== undefined,
    handshake: handshakeOf(request, operation),
    contentDefined:
      raw ||
      (operation?.contentTypes !== undefined && (operation.contentOptional !== true || hasContent(request))),
    contentRaw: raw,
    contentTypeGiven: fields.contentType !== undefined,
    contentTypeSupported: isSupported(mediaType, operation),
    contentCodingSupported:
      (raw && !isReceived) || (codings?.every((coding) => isDecoded(coding, isReceived)) ?? false),
    contentFits:
      fields.contentLength === undefined ||
      Number(fields.contentLength) <= contentBytesMax(operation, limits, isReceived),
    matchRequired: operation?.matchRequired ?? false,
    reports: operation?.reports ?? false,
    redirect: operation?.redirect,
    asyncAsked: isAsyncAsked(parts),
    minimalAsked: preferences.return === 'minimal' && operation?.reports !== true,
    representationAsked: preferences.return === 'representation',
    browserForm: form,
    idempotencyKey: idempotencyKey(fields.idempotencyKey, operation),
    createsHere: operation?.createsHere ?? false,
    credential: undefined,
    credentialProblem: undefined,
    permission: undefined,
    rateProblem: undefined,
    contentProblem: undefined,
    idempotency: undefined,
    exists: undefined,
    visible: undefined,
    permitted: undefined,
    elsewhere: undefined,
    proposalProblem: undefined,
    ifMatch: undefined,
    ifUnmodifiedSince: undefined,
    ifNoneMatch: undefined,
    ifModifiedSince: undefined,
    ranges: undefined,
    result: undefined,
    resultProblem: undefined,
    created: undefined,
    queued: undefined,
    told: undefined,
  };
}

/** A server may ignore a preference: a request with an Idempotency-Key gets its result, and content that arrives is not stored. */
function isAsyncAsked({ request, operation, preferences, isReceived }: Parts): boolean {
  const named = request.fields.idempotencyKey !== undefined;
  return preferences.respondAsync && operation?.asynchronous === true && !named && !isReceived;
}

function isPreflight({ method, fields }: Request, route: Route | undefined): boolean {
  return (
    method === 'OPTIONS' &&
    fields.origin !== undefined &&
    fields.accessControlRequestMethod !== undefined &&
    route?.resource.judgedBySignature !== true
  );
}

type TargetParts = {
  readonly valid: boolean;
  readonly serverWide: boolean;
  readonly query: string | undefined;
  readonly route: Route | undefined;
};

function readTarget(request: Request, router: Router): TargetParts {
  const target = parseRequestTarget(request.method, request.target);
  if (target === undefined) return noParts;
  if (target.form === 'asterisk') return { ...noParts, valid: true, serverWide: true };
  if (target.form === 'authority') return { ...noParts, valid: true };
  if (target.path === '*') return { ...noParts, valid: true, serverWide: true };
  const found = router.find(target.path);
  if (found === undefined) return noParts;
  const route = found === 'missing' ? undefined : found;
  return { valid: true, serverWide: false, query: target.query, route };
}

/** The pattern of the resource that the request is for, if there is one. */
export function patternOf(request: Request, router: Router): string | undefined {
  return readTarget(request, router).route?.resource.pattern;
}

type BytesLimits = Pick<MessageLimits, 'bodyBytesMax' | 'actionBytesMax'>;

function isReceived(operation: Operation | undefined, mediaType = octetStream): boolean {
  if (operation?.receive === undefined) return false;
  return operation.receives?.(mediaType) ?? true;
}

/** Content is not decoded while it arrives. */
function isDecoded(coding: string, isReceived: boolean): boolean {
  return isReceived ? coding === 'identity' : contentCodings.includes(coding);
}

/** Octets of content that the operation accepts, as transferred. @param isReceived as it arrives */
export function contentBytesMax(
  operation: Operation | undefined,
  limits: BytesLimits,
  isReceived: boolean,
): number {
  if (isReceived && operation?.receivedBytesMax !== undefined) return operation.receivedBytesMax;
  return shortBytesMax(operation, limits) ?? limits.bodyBytesMax;
}

/** Octets of content, coded and decoded, of operations that process it on the event loop; undefined for others. */
export function shortBytesMax(operation: Operation | undefined, limits: BytesLimits): number | undefined {
  if (operation?.contentBytesMax !== undefined) return operation.contentBytesMax;
  if (operation?.understand === undefined || operation.longContent === true) return undefined;
  return Math.min(limits.bodyBytesMax, limits.actionBytesMax);
}

/** HTTP/1.0 does not require Host; in every version a Host must be single and valid. */
function isHostValid({ fields, version }: Request): boolean {
  if (fields.host === undefined) return version === '1.0';
  return fields.hostCount === 1 && isHost(fields.host);
}

function hasContent({ fields }: Request): boolean {
  if (fields.transferEncoding !== undefined) return true;
  return fields.contentLength !== undefined && Number(fields.contentLength) > 0;
}

/** A partial PUT must not pass for a whole one (RFC 9110 §14.5); of a file, content may say that it is the whole. */
function isWhole(value: string, operation: Operation | undefined, { contentLength }: RequestFields): boolean {
  return (
    operation?.receive !== undefined &&
    contentLength !== undefined &&
    isWholeContentRange(value, Number(contentLength))
  );
}

function complaint(
  request: Request,
  route: Route | undefined,
  operation: Operation | undefined,
): string | undefined {
  const { method, fields, rawFields } = request;
  if (route?.resource.judgedBySignature === true) return framingComplaint(request);
  if (
    method === 'PUT' &&
    valuesOf(rawFields, 'content-range').some((value) => !isWhole(value, operation, fields))
  ) {
    return 'Content-Range is not supported: a PUT replaces the whole resource';
  }
  if (fields.repeated !== undefined) return `${fields.repeated} may come only once`;
  if (fields.ifMatch !== undefined && parseEntityTagList(fields.ifMatch) === undefined) {
    return 'If-Match must be * or a list of quoted entity tags';
  }
  if (fields.ifNoneMatch !== undefined && parseEntityTagList(fields.ifNoneMatch) === undefined) {
    return 'If-None-Match must be * or a list of quoted entity tags';
  }
  if (fields.origin !== undefined && !isOrigin(fields.origin)) return 'Origin must be a serialized origin';
  return undefined;
}

/** The sender's signature covers the content, so only the two fields that define the content must not be repeated. */
function framingComplaint({ fields, rawFields }: Request): string | undefined {
  if (fields.repeated === undefined) return undefined;
  for (const name of ['content-length', 'content-type']) {
    if (valuesOf(rawFields, name).length > 1) return `${name} may come only once`;
  }
  return undefined;
}

/** Errors can also be application/problem+json, so accepting only that type does not cause 406. */
function isAcceptable(
  accept: string | undefined,
  route: Route | undefined,
  operation: Operation | undefined,
): boolean {
  if (accept === undefined || accept === '*/*' || route === undefined) return true;
  if (route.resource.judgedBySignature === true) return true;
  const offers = operation?.offers ?? route.resource.offers;
  // The type of the representation is known only when it is read.
  if (offers.includes('*/*')) return true;
  // Clients that name one type spell it as in `offers`; parsing the list takes 0.7 µs.
  if (offers.includes(accept)) return true;
  return preferredMediaType(accept, [...offers, 'application/problem+json']) !== undefined;
}

/** True if the request asks for the event stream of a resource that has one. */
export function asksForStream(accept: string | undefined): boolean {
  return preferredMediaType(accept, ['application/json', 'text/event-stream']) === 'text/event-stream';
}

/** A fact of resources with `converse`; others ignore Upgrade (RFC 9110 §7.8). */
function handshakeOf(request: Request, operation: Operation | undefined): Facts['handshake'] {
  if (operation?.converse === undefined) return 'absent';
  const handshake = readWebSocketHandshake(request);
  return handshake.kind;
}

function isForm(mediaType: MediaType | undefined): boolean {
  return mediaType?.type === 'application/x-www-form-urlencoded' || mediaType?.type === 'multipart/form-data';
}

/** Text is UTF-8 everywhere, so a type with another charset is unsupported. */
function isSupported(mediaType: MediaType | undefined, operation: Operation | undefined): boolean {
  if (mediaType === undefined || operation?.contentTypes?.includes(mediaType.type) !== true) return false;
  return foreignCharset(mediaType) === undefined;
}

function idempotencyKey(
  field: string | undefined,
  operation: Operation | undefined,
): Facts['idempotencyKey'] {
  if (field === undefined || (operation?.idempotent ?? false) === false) return 'absent';
  return parseIdempotencyKey(field) === undefined ? 'malformed' : 'given';
}

/** The following functions write one group of facts each (http/conduct/facts.ts), as the walk gathers them. */
export function writeStanding(facts: Facts, standing: Standing): void {
  // After `superseded` the walk has no result yet.
  facts.result = undefined;
  facts.exists = standing.exists;
  facts.visible = standing.visible;
  facts.permitted = standing.permitted;
  facts.elsewhere = standing.elsewhere !== undefined;
}

export function writeResult(facts: Facts, result: Exclude<Result, Overtaken | Postponed>): void {
  if ('made' in result) {
    facts.result = 'made';
    facts.created = result.made.created;
    facts.queued = result.made.queued ?? false;
    facts.told = result.made.doc !== null || result.made.stream !== undefined;
  } else {
    facts.result = 'refused';
    facts.resultProblem = result.refused.code;
  }
}

export function writeRanges(facts: Facts, { extents }: Selected): void {
  if (extents === undefined) facts.ranges = 'whole';
  else facts.ranges = extents.length === 0 ? 'unsatisfiable' : 'partial';
}

/** After `superseded` the graph continues at `exists`: every fact from there on must be gathered again. */
export function writeSuperseded(facts: Facts): void {
  facts.result = 'superseded';
  facts.exists = undefined;
  facts.proposalProblem = undefined;
  facts.ifMatch = undefined;
}
