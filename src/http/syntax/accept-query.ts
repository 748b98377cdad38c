/**
 * Accept-Query: RFC 10008 §3, a List (RFC 9651) of media ranges as Tokens or Strings, which mean the same.
 */
import { formatString, parseStructuredList, textOf } from './structured-field.ts';
import { isTokenCode } from './token.ts';

export type QueryRange = { readonly type: string; readonly parameters?: Readonly<Record<string, string>> };

/**
 * Writes the list. A type becomes a Token if it can (it begins with a letter or `*`), else a String; parameter values are Strings. A
 * parameter whose name is not a key of RFC 9651 is left out.
 */
export function formatAcceptQuery(types: readonly QueryRange[]): string {
  let text = '';
  for (const { type, parameters } of types) {
    if (text !== '') text += ', ';
    text += isStructuredToken(type) ? type : formatString(type);
    for (const [name, value] of Object.entries(parameters ?? {})) {
      const key = name.toLowerCase();
      if (isKey(key)) text += `;${key}=${formatString(value)}`;
    }
  }
  return text;
}

/** Reads the list: types in lower case, parameters that are Tokens or Strings. Undefined if it is not a List, or a member is neither. */
export function parseAcceptQuery(
  value: string,
): readonly { readonly type: string; readonly parameters: ReadonlyMap<string, string> }[] | undefined {
  const list = parseStructuredList(value);
  if (list === undefined) return undefined;
  const ranges: { readonly type: string; readonly parameters: ReadonlyMap<string, string> }[] = [];
  for (const [item, members] of list) {
    const type = Array.isArray(item) ? undefined : textOf(item);
    if (type === undefined) return undefined;
    const parameters = new Map<string, string>();
    for (const [name, bare] of members) {
      const text = textOf(bare);
      if (text === undefined) return undefined;
      parameters.set(name, text);
    }
    ranges.push({ type: type.toLowerCase(), parameters });
  }
  return ranges;
}

/** RFC 9651 §3.3.4: `( ALPHA / "*" ) *( tchar / ":" / "/" )`. */
function isStructuredToken(text: string): boolean {
  const first = text.charCodeAt(0);
  const letter = first | 0x20;
  if (first !== 0x2a && !(letter >= 0x61 && letter <= 0x7a)) return false;
  for (let at = 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (!isTokenCode(code) && code !== 0x3a && code !== 0x2f) return false;
  }
  return true;
}

/** RFC 9651 §3.1.2: `( lcalpha / "*" ) *( lcalpha / DIGIT / "_" / "-" / "." / "*" )`. */
function isKey(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if ((code >= 0x61 && code <= 0x7a) || code === 0x2a) continue;
    const later = (code >= 0x30 && code <= 0x39) || code === 0x5f || code === 0x2d || code === 0x2e;
    if (at === 0 || !later) return false;
  }
  return text.length > 0;
}
