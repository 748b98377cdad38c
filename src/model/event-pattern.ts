/**
 * Patterns of event types: `products.created` matches that type, `products.*` every type with further segments after
 * `products`, `*` everything. A star replaces whole segments at the end only, so that the endpoints for a type are
 * found by one lookup for each of its segments (`patternsOfType`).
 */

/** Applies to a type, and to the text before the star. */
export const eventTypeCharactersMax = 200;

/** Returns the fault of a pattern as a predicate (`must be ...`); undefined if it is valid. */
export function eventPatternFault(text: string): string | undefined {
  if (text === '*') return undefined;
  let isSegmentEmpty = true;
  const end = text.endsWith('.*') ? text.length - 2 : text.length;
  if (end > eventTypeCharactersMax) return `must have at most ${eventTypeCharactersMax} characters`;
  for (let at = 0; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code === dot && isSegmentEmpty) return wrong;
    if (code !== dot && !isSegmentCode(code)) return code === star ? misplaced : wrong;
    isSegmentEmpty = code === dot;
  }
  return isSegmentEmpty ? wrong : undefined;
}

export function matchesEventPattern(pattern: string, type: string): boolean {
  if (pattern === '*') return true;
  if (!pattern.endsWith('.*')) return pattern === type;
  // The dot before the star has to be in the type, and something after it.
  const prefix = pattern.length - 1;
  return type.length > prefix && type.startsWith(pattern.slice(0, prefix));
}

/** Every pattern that matches the type: for `a.b.c`, `*`, `a.*`, `a.b.*` and the type itself. */
export function patternsOfType(type: string): readonly string[] {
  const patterns = ['*', type];
  for (let at = type.indexOf('.'); at !== -1; at = type.indexOf('.', at + 1)) {
    if (at + 1 < type.length) patterns.push(`${type.slice(0, at)}.*`);
  }
  return patterns;
}

const star = 0x2a;
const dot = 0x2e;
const wrong =
  'must be segments of letters, digits, _ and -, joined by dots, and may end with .* or be only *';
const misplaced = 'may have a * only after the last dot, as in products.*, or as the whole pattern';

function isSegmentCode(code: number): boolean {
  const letter = code | 0x20;
  return (
    (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x5f || code === 0x2d
  );
}
