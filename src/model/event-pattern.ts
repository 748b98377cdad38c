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

/** Finds the values with a pattern for a type, without visiting the others. */
export class PatternIndex<Value> {
  readonly #byPattern = new Map<string, Set<Value>>();

  add(value: Value, patterns: readonly string[]): void {
    for (const pattern of patterns) {
      const values = this.#byPattern.get(pattern);
      if (values === undefined) this.#byPattern.set(pattern, new Set([value]));
      else values.add(value);
    }
  }

  remove(value: Value, patterns: readonly string[]): void {
    for (const pattern of patterns) {
      const values = this.#byPattern.get(pattern);
      values?.delete(value);
      if (values?.size === 0) this.#byPattern.delete(pattern);
    }
  }

  /** Returns each value that has a matching pattern once. */
  find(type: string): readonly Value[] {
    const found = new Set<Value>();
    for (const pattern of patternsOfType(type)) {
      for (const value of this.#byPattern.get(pattern) ?? []) found.add(value);
    }
    return [...found];
  }
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
