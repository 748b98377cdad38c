/**
 * Negotiation of the content coding: RFC 9110 §12.5.3. The `negotiator` package is not used: it breaks ties by the order of the header and
 * ranks an unnamed `identity` by the weights of other codings.
 */

import { parseFieldList } from './field-list.ts';
import { parseWeight, WEIGHT_MAX } from './parameters.ts';
import { skipWhitespace, tokenEnd } from './token.ts';

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
 * Whether a response in this coding may be sent, by the rules above: without a valid header, only `identity`. A cache passes a 304 on to
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
export function parseAcceptEncoding(value: string): ReadonlyMap<string, number> | undefined {
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
export function canonicalCoding(coding: string): string {
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
