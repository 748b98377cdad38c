/**
 * A `like` pattern as a GLOB pattern: SQLite's LIKE folds ASCII case whatever the connection, unless a
 * pragma changes it for everyone; GLOB never does. A backslash at the very end stands for itself.
 */

export function globOf(pattern: string): string {
  let glob = '';
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern.charAt(index);
    if (character === '%') glob += '*';
    else if (character === '_') glob += '?';
    else if (character === '\\' && index + 1 < pattern.length) {
      index += 1;
      glob += literal(pattern.charAt(index));
    } else glob += literal(character);
  }
  return glob;
}

function literal(character: string): string {
  return character === '*' || character === '?' || character === '[' ? `[${character}]` : character;
}
