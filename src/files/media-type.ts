/**
 * Judges the media type of a file: what its client states, by what its content is (docs/decisions/0107). The stated type stays if the content
 * may have it, such as `text/csv` of a text; otherwise the type is the one that was found. A declaration that names types refuses a file if
 * what is stated or what was found is not among them, and HTML, SVG and XML that are stated as something else.
 *
 * Pure: it gets the first octets of the content. Nothing that they hold makes it fail.
 */
import { extensionOf } from '../http/syntax/file-name.ts';
import { parseMediaType } from '../http/syntax/media-type.ts';
import { findBinaryType, loadKnownTypes } from './binary-type.ts';
import {
  areKin,
  mayBeText,
  mayContain,
  mustBeText,
  registeredType,
  typeByExtension,
} from './media-type-names.ts';
import { type FoundText, findMarkupIn, findTextType } from './text-type.ts';

/**
 * How many first octets of a content `judgeType` needs at most: the signature of an ISO image ends at 32,774; the names in a ZIP archive, which
 * tell a document of LibreOffice, come after entries. Fewer are enough for most.
 */
export const headBytesMax = 64 * 1024;

/** RFC 6838 §4.2: each name has at most 127 characters, and these. A longer type would stand in each document. */
const typeForm = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;

export type FileContent = {
  /** The first octets, as many as `headBytesMax` if there are so many. */
  readonly head: Uint8Array;
  /** Length of the whole content. */
  readonly bytes: number;
  /** The Content-Type, as the client sent it. */
  readonly stated?: string | undefined;
  readonly name?: string | undefined;
  /** The declared types: `image/*`, `application/pdf`. Absent: any. */
  readonly types?: readonly string[] | undefined;
};

export type JudgedType =
  /** `type`: in lower case, without parameters. `charset`: of a text, if it is known; for its Content-Type. */
  | { readonly ok: true; readonly type: string; readonly charset?: string }
  /** `message`: what the file must be, and is not; to be read after the name of the field. */
  | { readonly ok: false; readonly message: string };

type Found = {
  readonly type: string;
  readonly text?: FoundText | undefined;
  readonly perhaps?: { readonly type: string; readonly extension: string } | undefined;
};

export type JudgeType = (content: FileContent) => Promise<JudgedType>;

/** The types that are known are listed once, for the first file. */
export function createTypeJudge(): JudgeType {
  let known: Promise<ReadonlySet<string>> | undefined;
  return async (content) => {
    known ??= loadKnownTypes();
    return judge(content, await known);
  };
}

async function judge(content: FileContent, known: ReadonlySet<string>): Promise<JudgedType> {
  const { head, bytes, name = '', types } = content;
  const found = await findType(head.subarray(0, headBytesMax), bytes);
  const extension = extensionOf(name);
  const { type: stated, charset } = readStated(content.stated, found, extension);
  const fits = stated !== undefined && mayHave(stated, found, known);
  const type = stated === undefined ? typeByName(found, extension) : fits ? stated : found.type;
  if (types !== undefined) {
    const message = refuse({ stated, fits, found: type, isEmpty: bytes === 0 }, types);
    if (message !== undefined) return { ok: false, message };
  }
  const shown = found.text === undefined ? undefined : charsetFor(type, found.text, charset);
  return shown === undefined ? { ok: true, type } : { ok: true, type, charset: shown };
}

async function findType(head: Uint8Array, bytes: number): Promise<Found> {
  const text = findTextType(head, head.length >= bytes);
  if (text !== undefined) return { type: text.type, text };
  const markup = findMarkupIn(head);
  return markup === undefined ? findBinaryType(head, bytes) : { type: markup };
}

/** What clients send that do not know the type. The last one is that of curl for `--data-binary`. */
const unstated: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/unknown',
  'application/x-unknown',
  'application/force-download',
  'application/x-download',
  'application/x-www-form-urlencoded',
]);

type Stated = { readonly type: string | undefined; readonly charset?: string | undefined };

function readStated(value: string | undefined, { text }: Found, extension: string): Stated {
  const mediaType = value === undefined ? undefined : parseMediaType(value);
  if (mediaType === undefined || !typeForm.test(mediaType.type) || unstated.has(mediaType.type)) {
    return { type: undefined };
  }
  const type = registeredType(mediaType.type);
  const charset = mediaType.parameters.get('charset');
  // Browsers on Windows have the types of its registry, where Excel has taken this one.
  const isCsv = type === 'application/vnd.ms-excel' && extension === 'csv' && text !== undefined;
  return { type: isCsv ? 'text/csv' : type, charset };
}

function typeByName({ type, text, perhaps }: Found, extension: string): string {
  if (perhaps !== undefined && perhaps.extension === extension) return perhaps.type;
  const isText = text !== undefined && isTextual(type);
  return (
    typeByExtension(type, extension) ?? (isText ? typeByExtension('text', extension) : undefined) ?? type
  );
}

/** True if content that was found to be something may have the stated type. */
function mayHave(stated: string, { type, text, perhaps }: Found, known: ReadonlySet<string>): boolean {
  if (stated === type || stated === perhaps?.type || areKin(stated, type)) return true;
  if (text !== undefined && isTextual(type)) return mayBeText(stated, known);
  if (type === 'application/octet-stream') return !(known.has(stated) || mustBeText(stated));
  return mayContain(type, stated, known);
}

/** Text that may be called so without harm; a PDF of ASCII alone is a PDF. */
function isTextual(type: string): boolean {
  return type.startsWith('text/') || type === 'application/json' || active.has(type);
}

/** What may run code in a browser. */
const active: ReadonlySet<string> = new Set([
  'text/html',
  'image/svg+xml',
  'application/xhtml+xml',
  'application/xml',
]);

type Judged = {
  readonly stated: string | undefined;
  readonly fits: boolean;
  readonly found: string;
  readonly isEmpty: boolean;
};

function refuse({ stated, fits, found, isEmpty }: Judged, types: readonly string[]): string | undefined {
  const told = `must be of the type ${types.join(' or ')}`;
  if (stated !== undefined && !isAmong(stated, types)) return `${told}, not ${stated}`;
  if (isAmong(found, types) && (stated === undefined || fits || !active.has(found))) return undefined;
  const content = isEmpty ? 'it is empty' : `its content is ${nameOf(found)}`;
  return `${told}: ${content}${stated === undefined ? '' : `, and stated to be ${stated}`}`;
}

function nameOf(type: string): string {
  return type === 'application/octet-stream' ? 'of no known type' : type;
}

/** True if the type is one of those that a declaration names. */
export function isAmong(type: string, types: readonly string[]): boolean {
  const range = `${type.slice(0, type.indexOf('/'))}/*`;
  return types.some((each) => each === range || each === '*/*' || registeredType(each) === type);
}

/** Types whose charset stands in themselves or is UTF-8 by definition. */
const selfDescribing: ReadonlySet<string> = new Set(['text/html', 'text/xml', 'text/javascript']);

function charsetFor(type: string, { charset }: FoundText, stated: string | undefined): string | undefined {
  if (!type.startsWith('text/') || selfDescribing.has(type)) return undefined;
  if (charset === 'utf-8' || charset === 'utf-16') return charset;
  return charsetLabel(stated) ?? (charset === 'ascii' ? 'utf-8' : undefined);
}

/** The label of a charset that browsers have, of which ASCII is a part. */
function charsetLabel(label: string | undefined): string | undefined {
  if (label === undefined || label.length > 40) return undefined;
  try {
    const { encoding } = new TextDecoder(label);
    return encoding.startsWith('utf-16') ? undefined : encoding;
  } catch {
    // No charset that a browser has, such as UTF-7.
    return undefined;
  }
}

/** RFC 1428 §3: some charset that agrees with ASCII. */
const someCharset = 'unknown-8bit';

/** The type as documents show it. A text that is not UTF-8 has its charset as a parameter. */
export function typeShown({ type, charset }: Extract<JudgedType, { ok: true }>): string {
  if (!type.startsWith('text/') || selfDescribing.has(type) || charset === 'utf-8') return type;
  return `${type};charset=${charset ?? someCharset}`;
}

/** Content-Type of a file with a type as documents show it. */
export function contentTypeOf(type: string): string {
  const isPlainUtf8 = type.startsWith('text/') && !type.includes(';') && !selfDescribing.has(type);
  return isPlainUtf8 ? `${type}; charset=utf-8` : type;
}
