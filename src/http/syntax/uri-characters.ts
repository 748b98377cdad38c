/** The character classes of URIs (RFC 3986 §2 and §3) as one table of bits, and a scanner over it. */

/** `unreserved / sub-delims`: a registered name without percent-encodings. */
export const NAME_CHARACTERS = 1;
/** `NAME_CHARACTERS / ":"`: the tail of an IPvFuture address. */
export const ADDRESS_CHARACTERS = 2;
/** `pchar / "/"`: a path. */
export const PATH_CHARACTERS = 4;
/**
 * `pchar / "/" / "?"`, and `[` and `]`, which RFC 3986 does not allow in a query but every browser and most clients send unescaped; without
 * them `?price[gte]=10` would be malformed.
 */
export const QUERY_CHARACTERS = 8;

const CLASSES: Uint8Array = classTable();

/** The index of the first character at or after `from` that is neither in the class nor the start of a valid percent-encoding. */
export function uriEnd(text: string, from: number, characterClass: number): number {
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code < 128 && ((CLASSES[code] ?? 0) & characterClass) !== 0) at += 1;
    else if (code === 0x25 && isHexCode(text.charCodeAt(at + 1)) && isHexCode(text.charCodeAt(at + 2)))
      at += 3;
    else return at;
  }
  return at;
}

/** Whether the code is a hexadecimal digit; false for NaN, which lies past the end of a text. */
export function isHexCode(code: number): boolean {
  const letter = code | 0x20;
  return isDigitCode(code) || (letter >= 0x61 && letter <= 0x66);
}

export function isDigitCode(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function classTable(): Uint8Array {
  const table = new Uint8Array(128);
  const all = NAME_CHARACTERS | ADDRESS_CHARACTERS | PATH_CHARACTERS | QUERY_CHARACTERS;
  const put = (characters: string, classes: number): void => {
    for (let at = 0; at < characters.length; at += 1) table[characters.charCodeAt(at)] = classes;
  };
  put('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', all);
  put("-._~!$&'()*+,;=", all);
  put(':', ADDRESS_CHARACTERS | PATH_CHARACTERS | QUERY_CHARACTERS);
  put('@/', PATH_CHARACTERS | QUERY_CHARACTERS);
  put('?[]', QUERY_CHARACTERS);
  return table;
}
