/**
 * `Content-Disposition` (RFC 6266), which suggests a file name. In what is written, `filename` is what every client understands in one way
 * alone; the name itself follows as `filename*` (RFC 8187) where that is another.
 */
import { readParameters, skipWhitespace, tokenEnd } from './field-value.ts';
import { decodeOctets, decodePercent, fileNameFrom } from './file-name.ts';

export type DispositionType = 'inline' | 'attachment';

/**
 * What no name of a file should have: controls, the characters that turn the direction of text and so hide an extension, separators of
 * lines, and those of folders.
 */
const unfit = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069/\\]/gu;

/**
 * What clients read in different ways within quotes: text beyond ASCII; `"`; and `%`, of which Chromium 153 decodes `%20`, as it decodes
 * the words of RFC 2047, which begin with `=?`.
 */
const ambiguous = /[^\x20-\x7e]|["%]|=(?=\?)/gu;

/** @param fileName of any characters; empty: none is suggested */
export function formatContentDisposition(type: DispositionType, fileName = ''): string {
  const name = fileName.toWellFormed().replaceAll(unfit, '_');
  if (name === '') return type;
  const plain = name.replaceAll(ambiguous, '_');
  const extended = plain === name ? '' : `; filename*=UTF-8''${formatExtended(name)}`;
  return `${type}; filename="${plain}"${extended}`;
}

/** `value-chars` of RFC 8187 §3.2.1, which allows fewer characters than a URI does. */
function formatExtended(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

// A request whose content is one file: the field names it. It is not defined for requests; clients of object stores and of PUT write it as
// responses have it.

export type RequestDisposition = {
  /** `attachment`, `inline` or another type, in lower case. */
  readonly type: string;
  /** The name for people; undefined if the field has none. */
  readonly fileName: string | undefined;
};

const extendedForm = /^(utf-8|iso-8859-1)'[A-Za-z0-9-]*'((?:%[0-9A-Fa-f]{2}|[!#$&+.^_`|~0-9A-Za-z-])*)$/i;
const escapedOctet = /%(..)/g;

/**
 * Reads the field, octets as Latin-1; undefined if it is malformed. `filename*` goes before `filename` (RFC 6266 §4.3), unless it is
 * malformed or in a charset that RFC 8187 does not name. The octets of `filename` are UTF-8, which clients write, else Latin-1, which the
 * grammar says.
 */
export function parseRequestDisposition(value: string): RequestDisposition | undefined {
  const start = skipWhitespace(value, 0);
  const end = tokenEnd(value, start);
  const parameters = new Map<string, string>();
  const parametersEnd = end === start ? -1 : readParameters(value, end, parameters);
  if (parametersEnd === -1 || skipWhitespace(value, parametersEnd) !== value.length) return undefined;
  const extended = decodeExtended(parameters.get('filename*') ?? '');
  const plain = parameters.get('filename');
  const name = extended ?? (plain === undefined ? undefined : (decodeOctets(plain) ?? plain));
  const fileName = name === undefined ? undefined : fileNameFrom(name);
  return { type: value.slice(start, end).toLowerCase(), fileName };
}

/** `ext-value` of RFC 8187 §3.2.1, with the second charset of RFC 5987, which old clients send. */
function decodeExtended(value: string): string | undefined {
  const [, charset = '', text] = extendedForm.exec(value) ?? [];
  if (text === undefined) return undefined;
  if (charset.toLowerCase() === 'utf-8') return decodePercent(text);
  return text.replaceAll(escapedOctet, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
