/**
 * Patterns and search terms for PostgreSQL. Its LIKE means the same as `like` but for one thing: a backslash at the very end, which
 * stands for itself here, is an error there.
 *
 * LIKE and strpos cost the text times the pattern, and nothing interrupts them: one row of 1 MB held a backend 20 s, whatever its
 * `statement_timeout`. Regular expressions of PostgreSQL cost the text alone once they are compiled, and can be
 * interrupted, but take longer to begin. So they search where text and pattern are long.
 */

export function likePattern(pattern: string): string {
  let backslashes = 0;
  while (pattern.charAt(pattern.length - 1 - backslashes) === '\\') backslashes += 1;
  return backslashes % 2 === 0 ? pattern : `${pattern}\\`;
}

/** Characters of the text times those of the pattern that LIKE and strpos may look at in one call: about 1 ms. */
const stepsMax = 500_000;

/** Octets of a document from which on a regular expression looks for the pattern. */
export function octetsByLike(pattern: string): number {
  return Math.ceil(stepsMax / (pattern.length + 1));
}

/** The regular expression that matches what the `like` pattern does. */
export function likeExpression(pattern: string): string {
  let expression = '';
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern.charAt(index);
    if (character === '%') expression += '.*';
    else if (character === '_') expression += '.';
    else if (character === '\\' && index + 1 < pattern.length) {
      index += 1;
      expression += literal(pattern.charAt(index));
    } else expression += literal(character);
  }
  return `^${expression}$`;
}

/** The regular expression that finds the term. */
export function termExpression(term: string): string {
  return [...term].map(literal).join('');
}

const special = /^[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]$/;

/** A backslash before a sign of ASCII makes it stand for itself. */
function literal(character: string): string {
  return special.test(character) ? `\\${character}` : character;
}
