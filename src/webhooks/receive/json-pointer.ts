/**
 * What stands at a JSON Pointer (RFC 6901) in a JSON value: members that the text itself had, never what every object inherits.
 * A pointer that leads nowhere, or is none, finds nothing.
 */

/** @returns undefined where nothing stands */
export function valueAt(json: unknown, pointer: string): unknown {
  if (pointer === '') return json;
  if (!pointer.startsWith('/')) return undefined;
  let value = json;
  for (const token of pointer.slice(1).split('/')) {
    value = memberOf(value, token.includes('~') ? unescaped(token) : token);
    if (value === undefined) return undefined;
  }
  return value;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  // An array has a length of its own, which is no element.
  if (Array.isArray(value) && name === 'length') return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

/** RFC 6901 §4: `~1` first, so that `~01` is `~1` and no slash. */
function unescaped(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
