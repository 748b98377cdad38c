/**
 * Proactive negotiation of the media type: RFC 9110 §12.5.1. The `negotiator` package is not used: on our vectors it accepts `q=2` as a
 * weight, counts two matching parameters like one, breaks ties by the order of the header (which has no meaning) before that of the offers,
 * and finds nothing acceptable in a malformed field and in `application/json; charset=utf-8`.
 */
import { mediaTypeEnd, parseMediaType } from './media-type.ts';
import { parseWeight, readParameters, WEIGHT_MAX } from './parameters.ts';
import { skipWhitespace } from './token.ts';

/** One media range with its weight; either half of `type` may be `*`, and `q` is not among the parameters. */
export type MediaRange = {
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
 * Whether a browser sent the form: `text/html` is listed by name, with a weight above 0 and not below that of `application/json`. Programs
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
export function parseAccept(value: string): readonly MediaRange[] | undefined {
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

/** Whether every parameter of the range is in the offer; values are compared without case. */
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
