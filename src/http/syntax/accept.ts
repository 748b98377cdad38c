/**
 * The fields of content negotiation: Accept (RFC 9110 §12.5.1), Accept-Encoding (RFC 9110 §12.5.3) and Accept-Query (RFC 10008 §3).
 *
 * The `negotiator` package is not used: on our vectors it accepts `q=2` as a weight, counts two matching parameters like one, breaks ties by
 * the order of the header (which has no meaning) before that of the offers, finds nothing acceptable in a malformed field and in
 * `application/json; charset=utf-8`, and ranks an unnamed `identity` by the weights of other codings.
 */

import {
  isTokenCode,
  parseFieldList,
  parseWeight,
  readParameters,
  skipWhitespace,
  tokenEnd,
  WEIGHT_MAX,
} from './field-value.ts';
import { mediaTypeEnd, parseMediaType } from './media-type.ts';
import { formatString, parseStructuredList, textOf } from './structured-field.ts';

/** One media range with its weight; either half of `type` may be `*`, and `q` is not among the parameters. */
type MediaRange = {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly weight: number;
};

/** How well a range fits: its weight, and its specificity (0 for no fit). */
type Fit = { readonly weight: number; readonly specificity: number };

const NO_FIT: Fit = { weight: 0, specificity: 0 };
const ANY_SPECIFICITY = 1;
const TYPE_SPECIFICITY = 2;
const EXACT_SPECIFICITY = 3;

/**
 * The offer that the client prefers; undefined if it accepts none (406). `offers` are in the server's order of preference and may carry
 * parameters. A missing, empty or malformed header accepts everything: the first offer.
 *
 * The most specific range that fits an offer gives its weight, and the greatest weight wins. Of equal weights, an offer that a more specific
 * range named wins (`text/csv, *\/*` asks for CSV), then the server's order.
 */
export function preferredMediaType(
  accept: string | undefined,
  offers: readonly string[],
): string | undefined {
  if (accept === undefined || accept === '' || accept === '*/*') return offers[0];
  // A bare type among the offers is the answer itself, unless an offer before it has parameters.
  if (offers[0] === accept) return accept;
  const ranges = parseAccept(accept);
  if (ranges === undefined || ranges.length === 0) return offers[0];
  let best: string | undefined;
  let bestFit = NO_FIT;
  for (const offer of offers) {
    const fit = offerFit(offer, ranges);
    if (fit.weight === 0 || fit.weight < bestFit.weight) continue;
    if (fit.weight > bestFit.weight || fit.specificity > bestFit.specificity) {
      best = offer;
      bestFit = fit;
    }
  }
  return best;
}

/**
 * True if a browser sent the form: `text/html` is listed by name, with a weight above 0 and not below that of `application/json`. Programs
 * send a wildcard alone and want JSON.
 */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined || !accept.toLowerCase().includes('text/html')) return false;
  const ranges = parseAccept(accept);
  if (ranges === undefined) return false;
  const html = offerFit('text/html', ranges);
  if (html.specificity < EXACT_SPECIFICITY || html.weight === 0) return false;
  return html.weight >= offerFit('application/json', ranges).weight;
}

/** Reads `#( media-range [ weight ] )`; undefined if malformed. */
function parseAccept(value: string): readonly MediaRange[] | undefined {
  const ranges: MediaRange[] = [];
  let at = skipWhitespace(value, 0);
  while (at < value.length) {
    if (value.charCodeAt(at) !== 0x2c) {
      const end = mediaTypeEnd(value, at);
      if (end === -1) return undefined;
      const type = value.slice(at, end).toLowerCase();
      if (type.startsWith('*/') && type !== '*/*') return undefined;
      const parameters = new Map<string, string>();
      const parametersEnd = readParameters(value, end, parameters);
      if (parametersEnd === -1) return undefined;
      // A recipient should take any parameter named q for the weight, wherever it stands.
      const q = parameters.get('q');
      const weight = q === undefined ? WEIGHT_MAX : parseWeight(q);
      if (weight === undefined) return undefined;
      parameters.delete('q');
      ranges.push({ type, parameters, weight });
      at = skipWhitespace(value, parametersEnd);
      if (at < value.length && value.charCodeAt(at) !== 0x2c) return undefined;
    }
    at = skipWhitespace(value, at + 1);
  }
  return ranges;
}

function offerFit(offer: string, ranges: readonly MediaRange[]): Fit {
  const mediaType = parseMediaType(offer);
  if (mediaType === undefined) return NO_FIT;
  const slash = mediaType.type.indexOf('/');
  let best = NO_FIT;
  for (const range of ranges) {
    let specificity = 0;
    if (range.type === mediaType.type) specificity = EXACT_SPECIFICITY;
    else if (range.type === '*/*') specificity = ANY_SPECIFICITY;
    else if (range.type.endsWith('/*') && range.type.startsWith(mediaType.type.slice(0, slash + 1))) {
      specificity = TYPE_SPECIFICITY;
    }
    if (specificity === 0 || !parametersFit(range.parameters, mediaType.parameters)) continue;
    specificity += range.parameters.size * EXACT_SPECIFICITY;
    if (specificity > best.specificity || (specificity === best.specificity && range.weight > best.weight)) {
      best = { weight: range.weight, specificity };
    }
  }
  return best;
}

/** True if every parameter of the range is in the offer; values are compared without case. */
function parametersFit(wanted: ReadonlyMap<string, string>, offered: ReadonlyMap<string, string>): boolean {
  for (const [name, value] of wanted) {
    const lower = value.toLowerCase();
    const own = offered.get(name);
    if (own === undefined) {
      // Clients add charset=utf-8 to types that define no such parameter; responses are UTF-8 anyway.
      if (name === 'charset' && lower === 'utf-8') continue;
      return false;
    }
    if (own.toLowerCase() !== lower) return false;
  }
  return true;
}

// Accept-Encoding: negotiation of the content coding.

const IDENTITY = 'identity';

/** An unnamed `identity` is acceptable, but ranks below every named coding, even one with q=0.001. */
const UNNAMED_IDENTITY_WEIGHT = 0.5;

/**
 * The coding of the response; undefined if the client refuses even `identity`. `offers` are in the server's order of preference, in lower
 * case, and ties go to the earlier one; `identity` is offered last if it is not among them.
 *
 * A missing header permits every coding but shows no ability to decode one, so it gets `identity`; a malformed one counts as missing.
 * `x-gzip` and `x-compress` name `gzip` and `compress` (RFC 9110 §8.4.1).
 */
export function preferredCoding(value: string | undefined, offers: readonly string[]): string | undefined {
  if (value === undefined || value === '') return IDENTITY;
  const weights = parseAcceptEncoding(value);
  if (weights === undefined) return IDENTITY;
  let best: string | undefined;
  let bestWeight = 0;
  for (const offer of offers) {
    const weight = codingWeight(offer, weights);
    if (weight > bestWeight) {
      best = offer;
      bestWeight = weight;
    }
  }
  if (!offers.includes(IDENTITY) && codingWeight(IDENTITY, weights) > bestWeight) return IDENTITY;
  return best;
}

/**
 * True if a response in this coding may be sent, by the rules above: without a valid header, only `identity`. A cache passes a 304 on to
 * clients that sent no header and may not be able to decode anything.
 */
export function acceptsCoding(value: string | undefined, coding: string): boolean {
  const weights = value === undefined || value === '' ? undefined : parseAcceptEncoding(value);
  return weights === undefined ? coding === IDENTITY : codingWeight(coding, weights) > 0;
}

/**
 * Reads `#( codings [ weight ] )` into weights by coding (thousandths); of a repeated coding the greater weight counts. Undefined if
 * malformed.
 */
function parseAcceptEncoding(value: string): ReadonlyMap<string, number> | undefined {
  const weights = new Map<string, number>();
  let at = skipWhitespace(value, 0);
  while (at < value.length) {
    if (value.charCodeAt(at) !== 0x2c) {
      const end = tokenEnd(value, at);
      if (end === at) return undefined;
      const coding = canonicalCoding(value.slice(at, end).toLowerCase());
      let weight: number | undefined = WEIGHT_MAX;
      at = skipWhitespace(value, end);
      if (value.charCodeAt(at) === 0x3b) {
        at = skipWhitespace(value, at + 1);
        if ((value.charCodeAt(at) | 0x20) !== 0x71 || value.charCodeAt(at + 1) !== 0x3d) return undefined;
        const weightEnd = tokenEnd(value, at + 2);
        weight = parseWeight(value.slice(at + 2, weightEnd));
        at = skipWhitespace(value, weightEnd);
      }
      if (weight === undefined) return undefined;
      weights.set(coding, Math.max(weight, weights.get(coding) ?? 0));
      if (at < value.length && value.charCodeAt(at) !== 0x2c) return undefined;
    }
    at = skipWhitespace(value, at + 1);
  }
  return weights;
}

/** The registered name of a coding with an `x-` alias, given in lower case. */
function canonicalCoding(coding: string): string {
  if (coding === 'x-gzip') return 'gzip';
  return coding === 'x-compress' ? 'compress' : coding;
}

function codingWeight(coding: string, weights: ReadonlyMap<string, number>): number {
  const named = weights.get(canonicalCoding(coding)) ?? weights.get('*');
  if (named !== undefined) return named;
  return coding === IDENTITY ? UNNAMED_IDENTITY_WEIGHT : 0;
}

/**
 * Reads `Content-Encoding` (RFC 9110 §8.4): the codings in the order of their application, in lower case, `x-gzip` as `gzip`; undefined if
 * malformed.
 */
export function parseContentCoding(value: string): readonly string[] | undefined {
  return parseFieldList(value)?.map(canonicalCoding);
}

// Accept-Query: a List (RFC 9651) of media ranges as Tokens or Strings, which mean the same.

type QueryRange = { readonly type: string; readonly parameters?: Readonly<Record<string, string>> };

/**
 * Writes the list. A type becomes a Token if it can (it begins with a letter or `*`), else a String; parameter values are Strings. A
 * parameter whose name is not a key of RFC 9651 is left out.
 */
export function formatAcceptQuery(types: readonly QueryRange[]): string {
  let text = '';
  for (const { type, parameters } of types) {
    if (text !== '') text += ', ';
    text += isStructuredToken(type) ? type : formatString(type);
    for (const [name, value] of Object.entries(parameters ?? {})) {
      const key = name.toLowerCase();
      if (isKey(key)) text += `;${key}=${formatString(value)}`;
    }
  }
  return text;
}

/** Reads the list: types in lower case, parameters that are Tokens or Strings. Undefined if it is not a List, or a member is neither. */
export function parseAcceptQuery(
  value: string,
): readonly { readonly type: string; readonly parameters: ReadonlyMap<string, string> }[] | undefined {
  const list = parseStructuredList(value);
  if (list === undefined) return undefined;
  const ranges: { readonly type: string; readonly parameters: ReadonlyMap<string, string> }[] = [];
  for (const [item, members] of list) {
    const type = Array.isArray(item) ? undefined : textOf(item);
    if (type === undefined) return undefined;
    const parameters = new Map<string, string>();
    for (const [name, bare] of members) {
      const text = textOf(bare);
      if (text === undefined) return undefined;
      parameters.set(name, text);
    }
    ranges.push({ type: type.toLowerCase(), parameters });
  }
  return ranges;
}

/** RFC 9651 §3.3.4: `( ALPHA / "*" ) *( tchar / ":" / "/" )`. */
function isStructuredToken(text: string): boolean {
  const first = text.charCodeAt(0);
  const letter = first | 0x20;
  if (first !== 0x2a && !(letter >= 0x61 && letter <= 0x7a)) return false;
  for (let at = 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (!isTokenCode(code) && code !== 0x3a && code !== 0x2f) return false;
  }
  return true;
}

/** RFC 9651 §3.1.2: `( lcalpha / "*" ) *( lcalpha / DIGIT / "_" / "-" / "." / "*" )`. */
function isKey(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if ((code >= 0x61 && code <= 0x7a) || code === 0x2a) continue;
    const later = (code >= 0x30 && code <= 0x39) || code === 0x5f || code === 0x2d || code === 0x2e;
    if (at === 0 || !later) return false;
  }
  return text.length > 0;
}
