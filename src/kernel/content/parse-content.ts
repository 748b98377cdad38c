/**
 * Parses content by its media type (§4.4, §4.6, §4.9): JSON and the patch formats, forms, text, SQL. The graph has
 * already refused a type that the target does not accept (415); the check here only ensures that content is never
 * parsed as another type.
 */
import type { Problem } from '../../http/problem.ts';
import { parseJson } from '../../http/syntax/json.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { ContentLimits } from './content-limits.ts';
import { type FormEntry, formDocument } from './form-content.ts';
import type { ContentShape } from './form-shape.ts';
import { readMultipart } from './multipart.ts';
import {
  type ContentFormat,
  decodeText,
  foreignCharset,
  type Parsed,
  type ParsedPatch,
  type PatchFormat,
} from './parsed.ts';

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
