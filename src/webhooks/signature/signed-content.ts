/**
 * Reads the fields of a signed message by a rule, and builds its signed content: the pieces of the rule's template with the message's parts,
 * without copying octets. Nothing is verified yet. Each field is bounded before it is parsed, and a repeated field is malformed, because
 * which value was meant is unknown.
 */
import { ed25519SignatureBytes } from './ed25519.ts';
import { signatureBytesOf } from './key-pair.ts';
import { crc32, decodeBase64, decodeBase64Url, decodeHexOfAny, octetsOf } from './octets.ts';
import {
  type Encoding,
  type Hash,
  type HmacRule,
  isKeyPair,
  type KeyPairRule,
  refuseField,
  type SignedParts,
  signaturesMax,
  type TimestampUnit,
} from './signature-rule.ts';
import { signedParameters } from './signed-form.ts';

type SigningRule = HmacRule | KeyPairRule;

/** Returns the value of a field by lower-case name. Undefined: absent; an array: repeated. */
type HeaderReader = (name: string) => string | readonly string[] | undefined;

/** Reads a field by its name, and a member of the body by its JSON Pointer. */
export function placeReader(message: Pick<SignedMessage, 'header' | 'member'>): HeaderReader {
  return (place) => (place.startsWith('/') ? message.member?.(place) : message.header(place));
}

export type SignedFields = {
  readonly signatures: readonly Uint8Array[];
  readonly asymmetric: readonly Uint8Array[];
  /** Unix seconds. */
  readonly timestamp: number | null;
  /** The timestamp as written, which is what was signed. */
  readonly timestampText: string;
  readonly id: string | null;
};

const hashBytes: Readonly<Record<Hash, number>> = { sha1: 20, sha256: 32, sha512: 64 };
const idCharactersMax = 512;
/** Bounds the cost of unauthenticated messages: each is tried with each public key, about 100 µs per try. */
const asymmetricMax = 4;

/** @param idEnd the character that an id must not contain; may be empty */
export function readSignedFields(
  rule: SigningRule,
  header: HeaderReader,
  idEnd: string,
): SignedFields | 'missing' | 'malformed' {
  const signatureText = header(rule.header);
  const { timestamp: place } = rule;
  const timeText = place !== undefined && 'header' in place ? header(place.header) : undefined;
  const id = rule.id === undefined ? undefined : header(rule.id);
  const refusals = [refuseField(signatureText)];
  if (place !== undefined && 'header' in place) refusals.push(refuseField(timeText));
  if (rule.id !== undefined) refusals.push(refuseField(id));
  if (refusals.includes('missing')) return 'missing';
  if (refusals.includes('malformed')) return 'malformed';
  if (typeof id === 'string' && !isSignedId(id, idEnd)) return 'malformed';
  const list = readList(rule, String(signatureText));
  if (list === undefined) return 'malformed';
  const timestampText = list.timestampText ?? (typeof timeText === 'string' ? timeText : '');
  const timestamp = place === undefined ? null : secondsOf(timestampText, place.unit ?? 's');
  if (timestamp === undefined) return 'malformed';
  return { ...list, timestamp, timestampText, id: id === undefined ? null : String(id) };
}

/**
 * Returns true if the text can be the id of a message: visible ASCII without the character that ends it in the signed
 * content.
 */
export function isSignedId(id: string, idEnd: string): boolean {
  if (id.length === 0 || id.length > idCharactersMax) return false;
  for (let at = 0; at < id.length; at += 1) {
    const code = id.charCodeAt(at);
    if (code < 0x21 || code > 0x7e) return false;
  }
  return idEnd === '' || !id.includes(idEnd);
}

type SignatureList = Pick<SignedFields, 'signatures' | 'asymmetric'> & {
  readonly timestampText: string | undefined;
};

/** Undefined for a malformed field. An entry of another version is ignored, but must have a version. */
function readList(rule: SigningRule, field: string): SignatureList | undefined {
  const timePrefix =
    rule.timestamp !== undefined && 'prefix' in rule.timestamp ? rule.timestamp.prefix : undefined;
  const { prefix, encoding } = rule;
  const asymmetricPrefix = rule.kind === 'hmac' ? rule.asymmetricPrefix : undefined;
  const mark = prefix.charAt(prefix.length - 1);
  const signatures: Uint8Array[] = [];
  const asymmetric: Uint8Array[] = [];
  let timestampText: string | undefined;
  const entries = entriesOf(rule, field);
  if (entries.length > signaturesMax) return undefined;
  for (const entry of entries) {
    if (timePrefix !== undefined && entry.startsWith(timePrefix)) {
      if (timestampText !== undefined) return undefined;
      timestampText = entry.slice(timePrefix.length);
    } else if (asymmetricPrefix !== undefined && entry.startsWith(asymmetricPrefix)) {
      const octets = decode(entry.slice(asymmetricPrefix.length), encoding, ed25519SignatureLength);
      if (octets !== undefined) asymmetric.push(octets);
    } else if (entry.startsWith(prefix)) {
      const octets = decode(entry.slice(prefix.length), encoding, lengthsOf(rule));
      if (octets !== undefined) (rule.kind === 'hmac' ? signatures : asymmetric).push(octets);
    } else if (!entry.includes(mark)) {
      return undefined;
    }
  }
  return asymmetric.length > asymmetricMax ? undefined : { signatures, asymmetric, timestampText };
}

type Lengths = { readonly least: number; readonly most: number };

const ed25519SignatureLength: Lengths = { least: ed25519SignatureBytes, most: ed25519SignatureBytes };

function lengthsOf(rule: SigningRule): Lengths {
  if (isKeyPair(rule)) return signatureBytesOf(rule.kind);
  const length = hashBytes[rule.hash];
  return { least: length, most: length };
}

function entriesOf({ separator }: SignedParts, field: string): readonly string[] {
  if (separator === null) return [field];
  if (separator === ' ') return field.split(' ').filter((entry) => entry !== '');
  return field.split(separator).map((entry) => entry.trim());
}

function decode(text: string, encoding: Encoding, { least, most }: Lengths): Uint8Array | undefined {
  if (text.length > 2 * most) return undefined;
  const octets = decodeBy[encoding](text);
  return octets !== undefined && octets.length >= least && octets.length <= most ? octets : undefined;
}

const sha256Bytes = 32;

/** Returns the octets of a SHA-256; undefined for any other text. */
export function decodeDigest(text: string, encoding: Encoding): Uint8Array | undefined {
  return decode(text, encoding, { least: sha256Bytes, most: sha256Bytes });
}

const padding = /={1,2}$/;

const decodeBy: Readonly<Record<Encoding, (text: string) => Uint8Array | undefined>> = {
  hex: decodeHexOfAny,
  base64: decodeBase64,
  // Sanity writes it with padding, others without.
  base64url: (text) => decodeBase64Url(text.replace(padding, '')),
};

/*
 * The signed time of a message, and its greatest difference from now (§5.6, §8), which prevents replay attacks with old
 * messages.
 */

export type TimeWindow = {
  /** Greatest difference of the signed time from now, in seconds; default 300, 0 for any time. */
  readonly toleranceSeconds?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: number | undefined;
};

export const toleranceSecondsDefault = 300;

/** Twelve digits of seconds reach beyond the year 30,000. */
const digitsMax = 12;
const millisecondDigitsMax = digitsMax + 3;

/** RFC 3339 §5.6, with fractions of any length that senders use: Twitch sends nanoseconds. */
const dateTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** Returns Unix seconds; undefined for a text that does not have the form. */
function secondsOf(text: string, unit: TimestampUnit): number | undefined {
  if (unit === 's') return readTimestamp(text);
  const ms =
    unit === 'ms'
      ? readTimestamp(text, millisecondDigitsMax)
      : dateTime.test(text)
        ? Date.parse(text)
        : undefined;
  return ms === undefined || Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

/** Parses decimal digits; undefined for anything else. */
function readTimestamp(text: string, most: number = digitsMax): number | undefined {
  if (text.length === 0 || text.length > most) return undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return undefined;
  }
  return Number(text);
}

/** Checks Unix seconds; default: now. @throws TypeError unless it is a whole number of seconds */
export function timestampOf(seconds: number = Math.floor(Date.now() / 1000)): number {
  if (readTimestamp(String(seconds)) === undefined) {
    throw new TypeError('a timestamp must be a whole number of seconds since the epoch');
  }
  return seconds;
}

export type SignedMessage = {
  /** As received. */
  readonly body: Uint8Array;
  readonly header: HeaderReader;
  /** The complete URL as the sender called it; needed if `{url}` is signed. */
  readonly url?: string | undefined;
  /** Returns the text at a JSON Pointer into the body; needed if the rule names such places. */
  member?(pointer: string): string | undefined;
};

/** Octets, to be concatenated. */
export type SignedContent = readonly Uint8Array[];

/**
 * How the signature covers the body: it is signed itself, its form parameters are, it is empty, or its SHA-256 is in
 * the signed URL in hexadecimal. Any other body beside a signed URL could be forged. The digest takes precedence over
 * the form, as it does at Twilio, because Content-Type, which would select the form, is not signed.
 */
export type BodyCover = 'body' | 'form' | 'empty' | 'nothing' | { readonly sha256: string };

export function bodyCoverOf(rule: SignedParts, template: SignedTemplate, message: SignedMessage): BodyCover {
  if (!template.signsForm) return 'body';
  const { bodyDigestParameter: parameter } = rule;
  const sha256 = parameter === undefined ? undefined : queryParameter(message.url ?? '', parameter);
  if (sha256 !== undefined) return { sha256 };
  if (message.body.length === 0) return 'empty';
  return isForm(message.header) ? 'form' : 'nothing';
}

/**
 * Returns each content that the sender may have signed: several if `{url}` has two spellings, none if nothing covers
 * the body.
 * @throws TypeError if `{url}` is signed and the program did not give it
 */
export function signedContents(
  template: SignedTemplate,
  message: SignedMessage,
  fields: SignedFields,
  cover: BodyCover,
): readonly SignedContent[] | 'malformed' {
  if (template.signsUrl && message.url === undefined) {
    throw new TypeError('this sender signs the URL of its request: pass url');
  }
  if (cover === 'nothing') return [];
  const octets = cover === 'form' ? signedParameters(message.body) : cover === 'body' ? [message.body] : [];
  if (octets === undefined) return 'malformed';
  // No sender of such a checksum has longer messages, and this one is not verified yet.
  if (template.signsChecksum && message.body.length > checksummedBytesMax) return [];
  const signing = { template, message, fields, octets };
  if (!template.signsUrl) return [contentOf(signing, '')];
  return signedUrls(message.url ?? '').map((url) => contentOf(signing, url));
}

const checksummedBytesMax = 1024 * 1024;

type Signing = {
  readonly template: SignedTemplate;
  readonly message: SignedMessage;
  readonly fields: SignedFields;
  /** The octets for `{body}` or `{form}`. */
  readonly octets: readonly Uint8Array[];
};

function contentOf(signing: Signing, url: string): SignedContent {
  const content: Uint8Array[] = [];
  let text = '';
  for (const piece of signing.template.pieces) {
    if ('text' in piece) text += piece.text;
    else if (piece.part !== 'body' && piece.part !== 'form') text += textOf(piece.part, signing, url);
    else {
      if (text !== '') content.push(octetsOf(text));
      text = '';
      content.push(...signing.octets);
    }
  }
  if (text !== '') content.push(octetsOf(text));
  return content;
}

function textOf(
  part: Exclude<SignedPart, 'body' | 'form'> | SignedMember,
  { template, message, fields }: Signing,
  url: string,
): string {
  switch (part) {
    case 'timestamp':
      return fields.timestampText;
    case 'id':
      return String(fields.id);
    case 'url':
      return url;
    case 'receiver':
      return template.receiver;
    case 'crc32':
      return String(crc32(message.body));
    case 'lines':
      return template.lines.map((name) => lineOf(name, message.member?.(`/${name}`))).join('');
    default:
      return message.member?.(part) ?? '';
  }
}

function lineOf(name: string, value: string | undefined): string {
  return value === undefined ? '' : `${name}\n${value}\n`;
}

function isForm(header: HeaderReader): boolean {
  const type = header('content-type');
  if (typeof type !== 'string') return false;
  const end = type.indexOf(';');
  const essence = end < 0 ? type : type.slice(0, end);
  return essence.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}

/*
 * The template of a rule's signed content, such as `{id}.{timestamp}.{body}`, parsed once. An invalid one throws: it is
 * a mistake of the program, not of a sender.
 */

type SignedPart = (typeof placeholders)[number];
/** A JSON Pointer to a member of the body. */
type SignedMember = `/${string}`;

export type SignedTemplate = {
  /** In order: literal texts and parts of the message. */
  readonly pieces: readonly (SignedPiece | SignedText)[];
  /**
   * The character after `{id}`, which an id must not contain: the id could otherwise end elsewhere than where it was
   * signed to end. May be empty.
   */
  readonly idEnd: string;
  readonly signsUrl: boolean;
  /** True if the parameters of a form are signed instead of the body. */
  readonly signsForm: boolean;
  readonly signsChecksum: boolean;
  readonly lines: readonly string[];
  readonly receiver: string;
};

type SignedPiece = { readonly part: SignedPart | SignedMember };
type SignedText = { readonly text: string };

/** The names that `signed` may have in braces, besides pointers. */
export const placeholders = ['body', 'timestamp', 'id', 'url', 'form', 'lines', 'receiver', 'crc32'] as const;

/**
 * @throws TypeError for an unknown part, for a part without a place, for a place of a part that is not signed, and
 * unless exactly one of body, form and lines is signed, or the rule says that none is
 */
export function readTemplate(rule: SignedParts): SignedTemplate {
  const pieces = piecesOf(rule.signed);
  const has = (part: SignedPart) => pieces.some((piece) => 'part' in piece && piece.part === part);
  for (const name of withMember) {
    if (has(name) !== (rule[name] !== undefined))
      throw new TypeError(`a rule must have both {${name}} in signed and the member ${name}, or neither`);
  }
  const contents = (['body', 'form', 'lines'] as const).filter(has);
  if (contents.length > 1) throw new TypeError('a rule must sign one of {body}, {form} and {lines}');
  if (contents.length === 0 && rule.signsContent !== false)
    throw new TypeError('a rule must sign one of {body}, {form} and {lines}, or say signsContent: false');
  if (rule.bodyDigestParameter !== undefined && !(has('url') && has('form'))) {
    throw new TypeError('bodyDigestParameter requires {url} and {form} in signed');
  }
  const { lines = [], receiver = '' } = rule;
  const signs = { signsUrl: has('url'), signsForm: has('form'), signsChecksum: has('crc32') };
  return { pieces, idEnd: idEndOf(pieces), ...signs, lines, receiver };
}

function piecesOf(signed: string): readonly (SignedPiece | SignedText)[] {
  const pieces: (SignedPiece | SignedText)[] = [];
  let from = 0;
  while (from < signed.length) {
    const open = signed.indexOf('{', from);
    const close = signed.indexOf('}', open);
    if (open < 0 || close < 0) break;
    const name = signed.slice(open + 1, close);
    if (!isPart(name)) throw new TypeError(`signed has the unknown placeholder {${name}}`);
    if (open > from) pieces.push({ text: signed.slice(from, open) });
    pieces.push({ part: name });
    from = close + 1;
  }
  if (from < signed.length) pieces.push({ text: signed.slice(from) });
  return pieces;
}

function idEndOf(pieces: readonly (SignedPiece | SignedText)[]): string {
  const at = pieces.findIndex((piece) => 'part' in piece && piece.part === 'id');
  const next = at < 0 ? undefined : pieces[at + 1];
  return next !== undefined && 'text' in next ? next.text.charAt(0) : '';
}

/** Parts that the rule has a member for. */
export const withMember = ['timestamp', 'id', 'lines', 'receiver'] as const;

function isPart(name: string): name is SignedPart | SignedMember {
  return name.startsWith('/') || placeholders.some((part) => part === name);
}

/*
 * The URL as a sender may have signed it. Parsed as text, because its characters were signed, not the result of a URL
 * parser.
 */

/**
 * Returns the URL as it is, and with the default port of its scheme added or its port removed: senders that sign the
 * URL (Twilio) do either, and the message does not show which.
 */
export function signedUrls(url: string): readonly string[] {
  const from = url.indexOf('://') + 3;
  if (from < 3) return [url];
  const end = endOfAuthority(url, from);
  const authority = url.slice(from, end);
  const colon = authority.indexOf(':', authority.lastIndexOf(']') + 1);
  if (colon >= 0) return [url, url.slice(0, from + colon) + url.slice(end)];
  const port = url.startsWith('https:') ? ':443' : ':80';
  return [url, url.slice(0, end) + port + url.slice(end)];
}

/** Returns the value of a query parameter as written; undefined if it is absent or repeated. */
function queryParameter(url: string, name: string): string | undefined {
  const query = url.indexOf('?');
  if (query < 0) return undefined;
  const hash = url.indexOf('#', query);
  const found = url
    .slice(query + 1, hash < 0 ? url.length : hash)
    .split('&')
    .filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? found[0]?.slice(name.length + 1) : undefined;
}

function endOfAuthority(url: string, from: number): number {
  for (let at = from; at < url.length; at += 1) {
    const character = url.charAt(at);
    if (character === '/' || character === '?' || character === '#') return at;
  }
  return url.length;
}
