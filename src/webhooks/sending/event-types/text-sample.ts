/** Texts that a string schema may allow: by its format, its pattern or its length. */

type TextSchema = Readonly<Record<string, unknown>>;

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-08-01T09:30:00.000Z',
  date: '2026-08-01',
  time: '09:30:00Z',
  duration: 'P1D',
  email: 'ada@shop.example',
  'idn-email': 'ada@shop.example',
  hostname: 'shop.example',
  'idn-hostname': 'shop.example',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://shop.example/',
  url: 'https://shop.example/',
  iri: 'https://shop.example/',
  'uri-reference': '/orders/1',
  'iri-reference': '/orders/1',
  'uri-template': 'https://shop.example/orders/{id}',
  uuid: '01890a5d-ac96-774b-bcce-b302099a8057',
  'json-pointer': '/orders/0',
  'json-pointer-uri-fragment': '#/orders/0',
  'relative-json-pointer': '0',
  regex: '^a+$',
};

/** Greatest length of a sample; a schema that requires more has none. */
const charactersMax = 65_536;
/** Different texts for one schema: an array may want them unique. */
const variantsMax = 100;

export function* textCandidates(schema: TextSchema): Generator<string> {
  const least = Math.min(Number(schema.minLength ?? 0), charactersMax);
  const most = Math.min(Number(schema.maxLength ?? charactersMax), charactersMax);
  const format = typeof schema.format === 'string' ? formats[schema.format] : undefined;
  if (format !== undefined) yield format;
  if (typeof schema.pattern === 'string') {
    for (const repeats of new Set([1, 0, 2, 3, least, Math.ceil(least / 2)])) {
      const text = patternSample(schema.pattern, repeats);
      if (text !== undefined) yield text;
    }
  }
  yield ofLength('text', least, most);
  for (let number = 1; number <= variantsMax; number += 1) {
    yield ofLength(`${number}`, least, most);
    yield ofLength(`text ${number}`, least, most);
  }
}

function ofLength(text: string, least: number, most: number): string {
  return text.padEnd(least, 'x').slice(0, Math.max(0, most));
}

/*
 * Makes a short text that a regular expression of JSON Schema matches: literals, classes, groups, alternatives and
 * quantifiers. It ignores assertions and does not follow backreferences, so the caller checks the text against the
 * expression.
 */

type Reader = { readonly source: string; at: number; readonly repeats: number };

/** Candidates for a negated class and for `.`, in the order of preference. */
const characters = 'a0A-_. /b1B:@#xyzXYZ23456789';
const nestingMax = 50;

/**
 * @param repeats repetitions of an optional part beyond its minimum, for longer texts
 * @returns undefined if the pattern has an unsupported part
 */
export function patternSample(source: string, repeats: number): string | undefined {
  const reader: Reader = { source, at: 0, repeats };
  const text = alternatives(reader, 0);
  return reader.at === source.length ? text : undefined;
}

/** Uses the first alternative and skips the others. */
function alternatives(reader: Reader, depth: number): string | undefined {
  if (depth > nestingMax) return undefined;
  const first = sequence(reader, depth);
  while (first !== undefined && reader.source[reader.at] === '|') {
    reader.at += 1;
    if (sequence(reader, depth) === undefined) return undefined;
  }
  return first;
}

function sequence(reader: Reader, depth: number): string | undefined {
  let text = '';
  while (reader.at < reader.source.length) {
    const next = reader.source[reader.at];
    if (next === '|' || next === ')') break;
    const atom = readAtom(reader, depth);
    if (atom === undefined) return undefined;
    text += atom.repeat(readQuantifier(reader));
  }
  return text;
}

function readAtom(reader: Reader, depth: number): string | undefined {
  const character = reader.source[reader.at] ?? '';
  if (character === '(') return readGroup(reader, depth);
  if (character === '[') return readClass(reader);
  if (character === '\\') return readEscape(reader)?.[0];
  reader.at += 1;
  if (character === '^' || character === '$') return '';
  return character === '.' ? 'a' : character;
}

const groupOpening = /\((?:\?(?::|<[A-Za-z_$][\w$]*>|(?<assertion><?[=!])))?/y;

function readGroup(reader: Reader, depth: number): string | undefined {
  groupOpening.lastIndex = reader.at;
  const opening = groupOpening.exec(reader.source);
  if (opening === null) return undefined;
  reader.at += opening[0].length;
  const inner = alternatives(reader, depth + 1);
  if (inner === undefined || reader.source[reader.at] !== ')') return undefined;
  reader.at += 1;
  return opening.groups?.assertion === undefined ? inner : '';
}

/** Tries candidates against the class as a regular expression. */
function readClass(reader: Reader): string | undefined {
  const start = reader.at;
  let end = start + 1;
  while (end < reader.source.length && reader.source[end] !== ']') end += reader.source[end] === '\\' ? 2 : 1;
  const text = reader.source.slice(start, end + 1);
  reader.at = end + 1;
  const literal = [...text].filter((character) => !'[]^-\\'.includes(character));
  return [...characters, ...literal].find((character) => isMatch(text, character));
}

function isMatch(text: string, character: string): boolean {
  try {
    return new RegExp(`^${text}$`, 'u').test(character);
  } catch {
    // Invalid by itself: then there is no sample.
    return false;
  }
}

const escaped = /\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|.)/y;

const backreference = /^\\[1-9k]/;
const letterOrDigit = /[A-Za-z0-9]/;
const codePoint = /^\\[ux]\{?([0-9a-fA-F]+)\}?$/;

/** The text of an escape; empty for the assertions `\b` and `\B`. */
function readEscape(reader: Reader): readonly [text: string] | undefined {
  escaped.lastIndex = reader.at;
  const found = escaped.exec(reader.source)?.[0];
  if (found === undefined) return undefined;
  reader.at += found.length;
  if (found === '\\b' || found === '\\B') return [''];
  if (backreference.test(found)) return undefined;
  const literal = found.slice(1);
  if (literal.length === 1 && !letterOrDigit.test(literal)) return [literal];
  const candidates = [...characters, '\n', '\t', '\r', '\0', ...codePointOf(found)];
  const match = candidates.find((character) => isMatch(found, character));
  return match === undefined ? undefined : [match];
}

function codePointOf(text: string): readonly string[] {
  const digits = codePoint.exec(text)?.[1];
  const code = digits === undefined ? Number.NaN : Number.parseInt(digits, 16);
  return code <= 0x10ffff ? [String.fromCodePoint(code)] : [];
}

const quantifier = /(?:(?<sign>[?*+])|\{(?<least>\d+)(?:,(?<most>\d*))?\})\??/y;

/** Repetitions of the preceding atom: the minimum plus `repeats`, up to the maximum. */
function readQuantifier(reader: Reader): number {
  quantifier.lastIndex = reader.at;
  const found = quantifier.exec(reader.source);
  if (found === null) return 1;
  reader.at += found[0].length;
  const { sign, least, most } = found.groups ?? {};
  const from = sign === '+' ? 1 : Number(least ?? 0);
  const to = sign === '?' ? 1 : least === undefined || most === '' ? Infinity : Number(most ?? least);
  return Math.min(from + reader.repeats, to, repeatsMax);
}

const repeatsMax = 10_000;
