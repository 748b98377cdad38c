/**
 * Names of files, as clients write them in a message, to names that people see. A name is never a path: what keeps octets names them itself.
 * Reserved names of Windows (`CON`, `aux.txt`), its forbidden characters and dots at the end therefore stay; browsers replace them when they
 * save a file.
 *
 * A name is in NFC, as RFC 5198 §3 asks of texts on the network: a Mac sends names as its file system has them, where `é` is two characters
 * and a Korean syllable three, and other systems show the parts beside each other. So one spelling is one name, in lists and in filters.
 */

/** The longest name in file systems, in octets of UTF-8. */
export const fileNameBytesMax = 255;

/** What a file without a name is called. */
export const fileNameDefault = 'file';

const folders = /^.*[\\/]/s;
/** Controls, invisible characters, those that turn the direction of the text, and separators of lines. */
const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** Two of them are part of how words are written (Persian, Indic scripts) and of emoji: they stay between other characters. */
const joiners: ReadonlySet<string> = new Set(['\u200c', '\u200d']);
const dotsAlone = /^\.*$/;
const extension = /\.[A-Za-z0-9]{1,16}$/;

/** The name for people: no folders, no step such as `..`, nothing invisible, never empty, at most 255 octets. Its extension survives a cut. */
export function fileNameFrom(text: string): string {
  const visible = text.toWellFormed().replaceAll(controls, (found) => (joiners.has(found) ? found : ''));
  const name = trim(visible.normalize('NFC').replace(folders, ''));
  if (dotsAlone.test(name)) return fileNameDefault;
  if (bytesIn(name) <= fileNameBytesMax) return name;
  const end = extension.exec(name)?.[0] ?? '';
  let start = '';
  let room = fileNameBytesMax - end.length;
  for (const character of name.slice(0, name.length - end.length)) {
    room -= bytesIn(character);
    if (room < 0) break;
    start += character;
  }
  return start + end;
}

/** The extension of a name in lower case, without its dot; empty if it has none. */
export function extensionOf(name: string): string {
  return extension.exec(name)?.[0].slice(1).toLowerCase() ?? '';
}

/** Browsers write these three as in a URI and nothing else. */
const escaped: Readonly<Record<string, string>> = { '%22': '"', '%0A': '', '%0D': '' };
const escapes = /%22|%0A|%0D/g;

/** The `filename` of a part of multipart/form-data, from octets as Latin-1 to UTF-8, as browsers mean it; empty if it is not UTF-8. */
export function plainFileName(latin1: string): string {
  return (decodeOctets(latin1) ?? '').replaceAll(escapes, (found) => escaped[found] ?? '');
}

const highOctets = /[%\u0080-\u00ff]/g;

/** Decodes octets as Latin-1, which a parser of messages returns, from UTF-8; undefined if they are not UTF-8. */
export function decodeOctets(latin1: string): string | undefined {
  return decodePercent(
    latin1.replaceAll(highOctets, (octet) => `%${octet.charCodeAt(0).toString(16).padStart(2, '0')}`),
  );
}

/** Decodes percent-encoded UTF-8; undefined if it is malformed. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // It throws only for a malformed escape, and for octets that are not UTF-8.
    return undefined;
  }
}

/** Without whitespace and joiners at both ends. A regular expression would take the square of the time for many spaces within a name. */
function trim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isMargin(text.charAt(start))) start += 1;
  while (end > start && isMargin(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isMargin(character: string): boolean {
  return joiners.has(character) || character.trim() === '';
}

/** Octets of a text in UTF-8. */
function bytesIn(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4;
  }
  return bytes;
}
