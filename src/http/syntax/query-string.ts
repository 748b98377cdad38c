/**
 * `application/x-www-form-urlencoded`: the URL Standard §5, but strict. Where a browser would put U+FFFD for a bad escape or invalid UTF-8,
 * this refuses the whole text.
 */

export const queryPairsMaxDefault = 10_000;

const ESCAPES: Readonly<Record<string, string>> = {
  '!': '%21',
  "'": '%27',
  '(': '%28',
  ')': '%29',
  '~': '%7E',
};

/**
 * The pairs in order, with repeated names; `a` alone is `a` with an empty value, and empty pieces between ampersands are skipped. Undefined
 * if an escape is malformed or not UTF-8, or there are more than `pairsMax` pairs.
 */
export function parseQueryString(
  text: string,
  pairsMax: number = queryPairsMaxDefault,
): readonly (readonly [name: string, value: string])[] | undefined {
  const pairs: (readonly [string, string])[] = [];
  let start = 0;
  while (start < text.length) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    if (end > start) {
      if (pairs.length >= pairsMax) return undefined;
      const piece = text.slice(start, end);
      const equals = piece.indexOf('=');
      const name = decodePiece(equals === -1 ? piece : piece.slice(0, equals));
      const value = equals === -1 ? '' : decodePiece(piece.slice(equals + 1));
      if (name === undefined || value === undefined) return undefined;
      pairs.push([name, value]);
    }
    start = end + 1;
  }
  return pairs;
}

/** Writes the pairs. A lone surrogate, which has no UTF-8, becomes U+FFFD as in the URL Standard. */
export function formatQueryString(pairs: Iterable<readonly [name: string, value: string]>): string {
  let text = '';
  for (const [name, value] of pairs) {
    text += `${text === '' ? '' : '&'}${encodePiece(name)}=${encodePiece(value)}`;
  }
  return text;
}

function decodePiece(piece: string): string | undefined {
  const spaced = piece.includes('+') ? piece.replaceAll('+', ' ') : piece;
  if (!spaced.isWellFormed()) return undefined;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    // ECMA-262 throws exactly for a malformed escape and for bytes that are not UTF-8.
    return undefined;
  }
}

function encodePiece(piece: string): string {
  const encoded = encodeURIComponent(piece.toWellFormed());
  return encoded.replace(/%20|[!'()~]/g, (found) => (found === '%20' ? '+' : (ESCAPES[found] ?? found)));
}
