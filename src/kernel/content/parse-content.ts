/**
 * Parses content by its media type (§4.4, §4.6, §4.9): JSON and the patch formats, forms, text, SQL. The graph has
 * already refused a type that the target does not accept (415); the check here only ensures that content is never
 * parsed as another type.
 */
import type { FieldError, Problem } from '../../http/problem.ts';
import { checkNumber, type Json, malformedNumber, parseJson } from '../../http/syntax/json.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { MaybePromise } from '../../store/store.ts';
import {
  type ContentFormat,
  type ContentLimits,
  type ContentShape,
  decodeText,
  type FormEntry,
  type FormPlace,
  foreignCharset,
  type Parsed,
  type ParsedPatch,
  type PatchFormat,
} from './content-shape.ts';
import { readMultipart } from './multipart.ts';
import { errorsMaxDefault } from './validator.ts';

const formatsByType: ReadonlyMap<string, ContentFormat> = new Map([
  ['application/json', 'json'],
  ['application/merge-patch+json', 'merge-patch'],
  ['application/json-patch+json', 'json-patch'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['text/plain', 'text'],
  ['application/sql', 'sql'],
]);

/**
 * Parses decoded content. With a shape, forms and text become a document of that collection; without one (a QUERY), a
 * form becomes the list of its pairs and the others are refused. Only multipart is asynchronous. Empty content is an
 * empty text, and `content_missing` in every other format.
 */
export function parseContent(
  bytes: Uint8Array,
  mediaType: MediaType,
  shape: ContentShape | undefined,
  limits: ContentLimits,
): MaybePromise<Parsed> {
  const format = formatsByType.get(mediaType.type);
  if (format === undefined) return refuse({ code: 'media_type_unsupported' });
  if (bytes.length === 0 && format !== 'text') return refuse({ code: 'content_missing' });
  if (format === 'multipart') return parseMultipart(bytes, mediaType, shape, limits);
  const charset = foreignCharset(mediaType);
  if (charset !== undefined) return refuse(charsetProblem(charset));
  const text = decodeText(bytes);
  if (text === undefined) return refuse({ code: 'content_malformed', message: 'content must be UTF-8' });
  if (format === 'form') return parseForm(text, shape, limits);
  if (format === 'text') return parseText(text, shape);
  if (format === 'sql') return { ok: true, format, value: text };
  return parseJsonText(text, format, limits);
}

/** Parses the content of a PATCH, which accepts only the three JSON types. */
export function parsePatch(bytes: Uint8Array, mediaType: MediaType, limits: ContentLimits): ParsedPatch {
  const format = formatsByType.get(mediaType.type);
  if (format !== 'json' && format !== 'merge-patch' && format !== 'json-patch') {
    return refuse({ code: 'media_type_unsupported' });
  }
  const parsed = parseContent(bytes, mediaType, undefined, limits);
  if (parsed instanceof Promise) throw new Error('parseContent returned a promise for JSON');
  return parsed.ok ? { ok: true, value: { format, value: parsed.value } } : parsed;
}

function parseJsonText(text: string, format: PatchFormat, limits: ContentLimits): Parsed {
  const result = parseJson(text, { depthMax: limits.jsonDepthMax, keysMax: limits.jsonMembersMax });
  if (result.ok) return { ok: true, format, value: result.value };
  const { message, offset } = result;
  return refuse({ code: 'content_malformed', message: `malformed JSON: ${message}`, context: { offset } });
}

function parseForm(text: string, shape: ContentShape | undefined, limits: ContentLimits): Parsed {
  const pairs = parseQueryString(text, limits.formFieldsMax);
  if (pairs === undefined) {
    const pieces = text.split('&', limits.formFieldsMax + 1);
    const isLong = pieces.length > limits.formFieldsMax;
    const fault = isLong
      ? `more than ${limits.formFieldsMax} fields`
      : 'a % without two hexadecimal digits, or octets that are not UTF-8';
    const message = `malformed form: it has ${fault}`;
    return refuse({ code: 'content_malformed', message });
  }
  return documentOf(pairs, 'form', shape);
}

async function parseMultipart(
  bytes: Uint8Array,
  mediaType: MediaType,
  shape: ContentShape | undefined,
  limits: ContentLimits,
): Promise<Parsed> {
  const read = await readMultipart(bytes, mediaType, limits, shape?.files);
  if (!read.ok) return read;
  const parsed = documentOf(read.entries, 'multipart', shape);
  return parsed.ok && shape?.files !== undefined ? { ...parsed, files: read.files } : parsed;
}

function documentOf(
  pairs: readonly FormEntry[],
  format: 'form' | 'multipart',
  shape: ContentShape | undefined,
): Parsed {
  if (shape === undefined && format === 'form') {
    return { ok: true, format, value: pairs.map(([name, value]) => [name, value]) };
  }
  if (shape === undefined || !shape.formats.has(format)) return refuse({ code: 'media_type_unsupported' });
  const document = formDocument(pairs, shape);
  return document.ok ? { ok: true, format, value: document.value } : document;
}

function parseText(text: string, shape: ContentShape | undefined): Parsed {
  const field = shape?.textField;
  if (field === undefined || shape?.formats.has('text') !== true)
    return refuse({ code: 'media_type_unsupported' });
  // Some editors start every text file with a byte order mark, which is not part of the text.
  const value = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  return { ok: true, format: 'text', value: { [field]: value } };
}

function charsetProblem(charset: string): Problem {
  const shown = JSON.stringify(charset.slice(0, 64));
  return { code: 'media_type_unsupported', message: `unsupported charset ${shown}; send UTF-8` };
}

function refuse(problem: Problem): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem };
}

// Converts the names and texts of a form to a document, typed by the collection's schema (content-shape.ts). A text
// becomes a number by the grammar of JSON, or a boolean from `true` or `false`; one that fits no type of its field
// stays a text, so that validation refuses it with a pointer. Undeclared names become members as well, for validation
// to refuse. `__proto__`, and numbers that a double cannot hold, are refused here, as in JSON.
//

type FormDocument =
  | { readonly ok: true; readonly value: Members }
  | { readonly ok: false; readonly problem: Problem };

type Members = { [name: string]: Json };

/** Builds the document. A repeated name is refused unless its field is an array. */
export function formDocument(entries: readonly FormEntry[], shape: ContentShape): FormDocument {
  const root: Members = {};
  const arrays = new Set<FormPlace>();
  const errors: FieldError[] = [];
  for (const [name, value] of entries) {
    if (name === '__proto__') return unknownName(name);
    const place = shape.places.get(name) ?? unknownPlace(name);
    const message = numberFault(value, place);
    if (message !== undefined) errors.push({ pointer: formatJsonPointer(place.path), message });
    const parent = makeParent(root, place.path);
    const member = place.path.at(-1) ?? name;
    if (parent === undefined) return repeated(name);
    const standing = Object.hasOwn(parent, member) ? parent[member] : undefined;
    if (place.repeats && Array.isArray(standing)) standing.push(convert(value, place));
    else if (standing !== undefined) return repeated(name);
    else if (place.repeats) {
      parent[member] = [convert(value, place)];
      arrays.add(place);
    } else if (value !== '' || !place.emptyIsAbsent) parent[member] = convert(value, place);
  }
  if (errors.length > 0)
    return { ok: false, problem: { code: 'validation_failed', errors: errors.slice(0, errorsMaxDefault) } };
  for (const place of arrays) resolveEmpty(root, place);
  return { ok: true, value: root };
}

/** The fault of a number that a double cannot hold. Left as a text, it would be refused as no number at all. */
function numberFault(text: string | number, { kinds }: FormPlace): string | undefined {
  if (typeof text === 'number' || kinds.has('string') || !kinds.has('number')) return undefined;
  const fault = checkNumber(text, 0);
  if (typeof fault === 'number' || fault === malformedNumber || Number.isNaN(Number(text))) return undefined;
  return 'is beyond the range that a double holds exactly';
}

/** Converts the text to a type of its field; returns the text itself if none fits. */
function convert(text: string | number, place: FormPlace): Json {
  if (typeof text === 'number') return text;
  if (place.kinds.has('string')) return text;
  if (place.kinds.has('number') && text !== '' && checkNumber(text, 0) === text.length) return Number(text);
  if (place.kinds.has('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  if (place.kinds.has('null') && text === '') return null;
  return text;
}

const text: ReadonlySet<'string'> = new Set(['string']);

function unknownPlace(name: string): FormPlace {
  return { path: [name], kinds: text, repeats: false, emptyIsAbsent: false };
}

/**
 * Returns the object that holds the last member of the path, created if missing; undefined if another field put a text
 * in its way. Only the schema declares longer paths, so no name from a client is followed here.
 */
function makeParent(root: Members, path: readonly string[]): Members | undefined {
  let parent = root;
  for (let index = 0; index < path.length - 1; index += 1) {
    const name = path[index] ?? '';
    let next = Object.hasOwn(parent, name) ? parent[name] : undefined;
    if (next === undefined) {
      next = {};
      parent[name] = next;
    }
    if (typeof next !== 'object' || next === null || Array.isArray(next)) return undefined;
    parent = next;
  }
  return parent;
}

/** `tags=` alone means no array if it is optional, and an empty array if it is required. */
function resolveEmpty(root: Members, place: FormPlace): void {
  const parent = makeParent(root, place.path);
  const name = place.path.at(-1) ?? '';
  const items = parent?.[name];
  if (parent === undefined || !Array.isArray(items) || items.length !== 1 || items[0] !== '') return;
  if (place.emptyIsAbsent) delete parent[name];
  else items.pop();
}

function repeated(name: string): FormDocument {
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}...` : name);
  return {
    ok: false,
    problem: { code: 'content_malformed', message: `field ${shown} is given more than once` },
  };
}

function unknownName(name: string): FormDocument {
  const errors = [{ pointer: `/${name}`, message: 'unknown property' }];
  return { ok: false, problem: { code: 'validation_failed', errors } };
}
