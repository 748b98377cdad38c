/**
 * Reads the request header fields that conduct depends on, in one pass over the raw list. Repeated list fields are joined with commas (RFC
 * 9110 §5.3); a repeated singleton is reported, because servers that pick different ones enable request smuggling. Also reads
 * Transfer-Encoding and Max-Forwards.
 */
import { trimWhitespace } from './syntax/field-value.ts';
import { isDigitCode } from './syntax/uri.ts';

export type RequestFields = {
  host: string | undefined;
  hostCount: number;
  accept: string | undefined;
  acceptEncoding: string | undefined;
  accessControlRequestHeaders: string | undefined;
  accessControlRequestMethod: string | undefined;
  authorization: string | undefined;
  contentEncoding: string | undefined;
  contentLength: string | undefined;
  contentType: string | undefined;
  cookie: string | undefined;
  expect: string | undefined;
  idempotencyKey: string | undefined;
  ifMatch: string | undefined;
  ifModifiedSince: string | undefined;
  ifNoneMatch: string | undefined;
  ifRange: string | undefined;
  ifUnmodifiedSince: string | undefined;
  lastEventId: string | undefined;
  maxForwards: string | undefined;
  origin: string | undefined;
  prefer: string | undefined;
  proxyAuthorization: string | undefined;
  range: string | undefined;
  secFetchDest: string | undefined;
  secFetchSite: string | undefined;
  transferEncoding: string | undefined;
  wantReprDigest: string | undefined;
  xApiKey: string | undefined;
  xForwardedFor: string | undefined;
  xRequestedWith: string | undefined;
  /** Lower-case name of the first repeated singleton (Host is counted instead). */
  repeated: string | undefined;
};

type Slot = Exclude<keyof RequestFields, 'hostCount' | 'repeated'>;

const named = [
  ['Host', 'host', false],
  ['Accept', 'accept', true],
  ['Accept-Encoding', 'acceptEncoding', true],
  ['Access-Control-Request-Headers', 'accessControlRequestHeaders', true],
  ['Access-Control-Request-Method', 'accessControlRequestMethod', false],
  ['Authorization', 'authorization', false],
  ['Content-Encoding', 'contentEncoding', true],
  ['Content-Length', 'contentLength', false],
  ['Content-Type', 'contentType', false],
  ['Cookie', 'cookie', true],
  ['Expect', 'expect', true],
  ['Idempotency-Key', 'idempotencyKey', false],
  ['If-Match', 'ifMatch', true],
  ['If-Modified-Since', 'ifModifiedSince', false],
  ['If-None-Match', 'ifNoneMatch', true],
  ['If-Range', 'ifRange', false],
  ['If-Unmodified-Since', 'ifUnmodifiedSince', false],
  ['Last-Event-ID', 'lastEventId', false],
  ['Max-Forwards', 'maxForwards', false],
  ['Origin', 'origin', false],
  ['Prefer', 'prefer', true],
  ['Proxy-Authorization', 'proxyAuthorization', false],
  ['Range', 'range', false],
  ['Sec-Fetch-Dest', 'secFetchDest', true],
  ['Sec-Fetch-Site', 'secFetchSite', false],
  ['Transfer-Encoding', 'transferEncoding', true],
  ['Want-Repr-Digest', 'wantReprDigest', true],
  ['X-API-Key', 'xApiKey', false],
  ['X-Forwarded-For', 'xForwardedFor', true],
  ['X-Requested-With', 'xRequestedWith', true],
] as const satisfies readonly (readonly [string, Slot, boolean])[];

const slots: ReadonlyMap<string, { readonly slot: Slot; readonly list: boolean }> = new Map(
  named.flatMap(([name, slot, list]) => [
    // Both common spellings are found without lower-casing.
    [name, { slot, list }] as const,
    [name.toLowerCase(), { slot, list }] as const,
  ]),
);

/**
 * A date precondition that is not exactly one valid date is ignored (RFC 9110 §13.1.3), and so may be a Range (RFC 9110 §14.2); an If-Range
 * that is no validator names no representation.
 */
const ignoredIfRepeated: ReadonlySet<Slot> = new Set<Slot>([
  ...(['ifModifiedSince', 'ifUnmodifiedSince', 'ifRange', 'range'] as const),
]);

/** Set by browsers and proxies alone (Fetch, forbidden request-header). */
const setByOthers =
  /^(?:accept-encoding|access-control-.*|content-length|cookie|expect|host|origin|proxy-.*|sec-.*|transfer-encoding|x-forwarded-.*)$/i;

/** Those that a page may send. */
export const pageFields: readonly string[] = named
  .map(([name]) => name)
  .filter((name) => !setByOthers.test(name));

export function readRequestFields(raw: readonly string[]): RequestFields {
  const fields = noFields();
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const known = slots.get(name) ?? slots.get(name.toLowerCase());
    if (known === undefined) continue;
    const value = raw[index + 1] ?? '';
    const before = fields[known.slot];
    if (known.slot === 'host') fields.hostCount++;
    if (before === undefined) fields[known.slot] = value;
    else if (known.list) fields[known.slot] = `${before}${known.slot === 'cookie' ? '; ' : ', '}${value}`;
    else if (ignoredIfRepeated.has(known.slot)) fields[known.slot] = '';
    else if (known.slot !== 'host') fields.repeated ??= name.toLowerCase();
  }
  return fields;
}

function noFields(): RequestFields {
  return {
    host: undefined,
    hostCount: 0,
    accept: undefined,
    acceptEncoding: undefined,
    accessControlRequestHeaders: undefined,
    accessControlRequestMethod: undefined,
    authorization: undefined,
    contentEncoding: undefined,
    contentLength: undefined,
    contentType: undefined,
    cookie: undefined,
    expect: undefined,
    idempotencyKey: undefined,
    ifMatch: undefined,
    ifModifiedSince: undefined,
    ifNoneMatch: undefined,
    ifRange: undefined,
    ifUnmodifiedSince: undefined,
    lastEventId: undefined,
    maxForwards: undefined,
    origin: undefined,
    prefer: undefined,
    proxyAuthorization: undefined,
    range: undefined,
    secFetchDest: undefined,
    secFetchSite: undefined,
    transferEncoding: undefined,
    wantReprDigest: undefined,
    xApiKey: undefined,
    xForwardedFor: undefined,
    xRequestedWith: undefined,
    repeated: undefined,
  };
}

/**
 * `Transfer-Encoding`: RFC 9112 §6.1 and §7. `chunked` is the only supported coding; all else is 501. Empty list elements and parameters,
 * legal in the grammar, are refused here: this field decides where a message ends, and two readers that disagree on it enable request
 * smuggling (RFC 9112 §11.2).
 */
export function isUnderstoodTransferCoding(value: string): boolean {
  return value === 'chunked' || trimWhitespace(value).toLowerCase() === 'chunked';
}

export const maxForwardsMax = 2 ** 31 - 1;

/** The count of `Max-Forwards` (RFC 9110 §7.6.2), larger ones cut to `maxForwardsMax`; undefined if it is not `1*DIGIT`. */
export function parseMaxForwards(value: string): number | undefined {
  const text = trimWhitespace(value);
  if (text === '') return undefined;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (!isDigitCode(code)) return undefined;
    count = Math.min(count * 10 + code - 0x30, maxForwardsMax);
  }
  return count;
}
