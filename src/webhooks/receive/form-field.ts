/**
 * One field of application/x-www-form-urlencoded content. Stricter than the form parsers of browsers: what is no percent-encoded UTF-8 is no
 * text, where they put U+FFFD, which would make one id of different ones.
 */

/** The first value of that name; undefined where none is, or where it cannot be read. */
export function formField(content: string, name: string): string | undefined {
  let at = 0;
  while (at <= content.length) {
    const end = content.indexOf('&', at);
    const pair = content.slice(at, end < 0 ? content.length : end);
    const equals = pair.indexOf('=');
    if (equals >= 0 && decoded(pair.slice(0, equals)) === name) return decoded(pair.slice(equals + 1));
    if (end < 0) return undefined;
    at = end + 1;
  }
  return undefined;
}

function decoded(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    // A stray percent sign, or octets that are no UTF-8.
    return undefined;
  }
}
