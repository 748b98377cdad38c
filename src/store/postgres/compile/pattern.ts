/**
 * A `like` pattern for PostgreSQL, whose LIKE means the same but for one thing: a backslash at the very end, which stands for
 * itself here, is an error there.
 */

export function likePattern(pattern: string): string {
  let backslashes = 0;
  while (pattern.charAt(pattern.length - 1 - backslashes) === '\\') backslashes += 1;
  return backslashes % 2 === 0 ? pattern : `${pattern}\\`;
}
