/**
 * Reads multipart/form-data (RFC 7578) as names and texts. Files are refused: collections hold none. Dicer, the parser
 * inside `@fastify/busboy`, cuts the parts. Busboy itself skips parts that it does not understand and turns bad UTF-8
 * into U+FFFD; here both refuse the whole content.
 */
import { Dicer } from '@fastify/busboy';
import type { FieldError, Problem } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type MediaType, parseMediaType } from '../../http/syntax/media-type.ts';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import type { ContentLimits } from './content-limits.ts';
import type { FormEntry } from './form-content.ts';
import { decodeText, foreignCharset } from './parsed.ts';

export type MultipartEntries =
  | { readonly ok: true; readonly entries: readonly FormEntry[] }
  | { readonly ok: false; readonly problem: Problem };

/** RFC 2046 §5.1.1: at most 70 of these characters, the last not a space. */
const boundaryCharactersMax = 70;
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]$/;
const sliceBytes = 16 * 1024;
const fileErrorsMax = 20;
const nameCharactersShown = 64;

const unfinished: Problem = {
  code: 'content_malformed',
  message: 'multipart content ends before its last delimiter',
};
const brokenPart: Problem = {
  code: 'content_malformed',
  message: 'a part of multipart content has no complete header',
};

type Part = { readonly header: ReadonlyMap<string, unknown>; readonly bytes: Uint8Array };
type Cut =
  | { readonly ok: true; readonly parts: readonly Part[] }
  | { readonly ok: false; readonly problem: Problem };

/** Reads the fields in order. Never rejects: every failure is a problem. */
export async function readMultipart(
  bytes: Uint8Array,
  mediaType: MediaType,
  limits: ContentLimits,
): Promise<MultipartEntries> {
  const boundary = mediaType.parameters.get('boundary');
  if (boundary === undefined || !isBoundary(boundary)) {
    return malformed('multipart/form-data needs a boundary parameter (RFC 2046 §5.1.1)');
  }
  const cut = await cutParts(bytes, boundary, limits);
  return cut.ok ? readParts(cut.parts) : cut;
}

/**
 * Waits for all parts. Dicer always emits `finish`, however broken the content is, after `error` for an unfinished one.
 */
function cutParts(bytes: Uint8Array, boundary: string, limits: ContentLimits): Promise<Cut> {
  return new Promise((resolve) => {
    const config: Dicer.Config & { readonly maxHeaderSize: number } = {
      boundary,
      maxHeaderPairs: limits.multipartHeaderPairsMax,
      maxHeaderSize: limits.multipartHeaderBytesMax,
    };
    const parts: Part[] = [];
    let begun = 0;
    let problem: Problem | undefined;
    const settle = (): void => {
      if (begun > parts.length) problem ??= brokenPart;
      resolve(problem === undefined ? { ok: true, parts } : { ok: false, problem });
    };
    const dicer = ownEmitter(new Dicer(config), () => {
      problem ??= unfinished;
      setImmediate(settle);
    });
    dicer.on('finish', () => setImmediate(settle));
    onArrival(dicer, 'part', ignoreError, (part: Dicer.PartStream) => {
      begun += 1;
      if (begun > limits.formFieldsMax) problem ??= tooManyParts(limits.formFieldsMax);
      collectPart(part, limits.multipartFieldBytesMax, (collected) => {
        if ('code' in collected) problem ??= collected;
        else if (problem === undefined) parts.push(collected);
      });
    });
    // In slices, to stop early when the form is refused: a part takes Dicer about 30 µs.
    const feed = (from: number): void => {
      if (problem !== undefined) settle();
      else if (from >= bytes.length) dicer.end();
      else dicer.write(Buffer.from(bytes.subarray(from, from + sliceBytes)), () => feed(from + sliceBytes));
    };
    feed(0);
  });
}

/** Collects one part. A part whose header section never ends yields nothing, and Dicer skips it. */
function collectPart(
  stream: Dicer.PartStream,
  bytesMax: number,
  settle: (part: Part | Problem) => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  let header: object | undefined;
  stream.on('error', () => settle(unfinished));
  stream.on('header', (read) => {
    header = read;
  });
  stream.on('data', (chunk) => {
    length += chunk.length;
    if (length <= bytesMax && typeof chunk !== 'string') chunks.push(chunk);
  });
  stream.on('end', () => {
    if (length > bytesMax) settle({ code: 'content_too_large' });
    else if (header !== undefined)
      settle({ header: new Map(Object.entries(header)), bytes: Buffer.concat(chunks) });
  });
}

function readParts(parts: readonly Part[]): MultipartEntries {
  const entries: FormEntry[] = [];
  const errors: FieldError[] = [];
  for (const { header, bytes } of parts) {
    const disposition = parseDisposition(onlyValue(header, 'content-disposition') ?? '');
    if (disposition === undefined)
      return malformed('each part needs exactly one Content-Disposition: form-data with a name in UTF-8');
    const { name, isFile } = disposition;
    const refusal = isFile ? 'must not be a file' : refuseType(onlyValue(header, 'content-type'));
    if (refusal !== undefined) {
      if (errors.length < fileErrorsMax) errors.push({ pointer: pointerTo(name), message: refusal });
      continue;
    }
    const text = decodeText(bytes);
    if (text === undefined) return malformed('the value of a field must be UTF-8');
    entries.push([name, text]);
  }
  if (errors.length > 0) return { ok: false, problem: { code: 'validation_failed', errors } };
  return { ok: true, entries };
}

/** Explains why a part of this type cannot be a field; RFC 7578 §4.4: a part without a type is text/plain. */
function refuseType(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const mediaType = parseMediaType(value);
  if (mediaType?.type !== 'text/plain') return 'must be text/plain';
  return foreignCharset(mediaType) === undefined ? undefined : 'must be UTF-8';
}

function onlyValue(header: Part['header'], name: string): string | undefined {
  const values = header.get(name);
  if (!Array.isArray(values)) return undefined;
  return values.length === 1 ? values[0] : 'repeated';
}

function pointerTo(name: string): string {
  return formatJsonPointer([
    name.length > nameCharactersShown ? `${name.slice(0, nameCharactersShown)}...` : name,
  ]);
}

function isBoundary(text: string): boolean {
  return text.length > 0 && text.length <= boundaryCharactersMax && boundaryPattern.test(text);
}

function malformed(message: string): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem: { code: 'content_malformed', message } };
}

function tooManyParts(partsMax: number): Problem {
  return { code: 'content_malformed', message: `multipart content must have at most ${partsMax} parts` };
}

type Disposition = { readonly name: string; readonly isFile: boolean };

/**
 * Reads the Content-Disposition of a part (RFC 7578 §4.2), as browsers and curl write it, from octets as Latin-1. In a
 * quoted string a backslash escapes only a quote or a backslash: browsers send others literally. Undefined if it is not
 * `form-data` with one UTF-8 name.
 */
function parseDisposition(value: string): Disposition | undefined {
  const semicolon = value.indexOf(';');
  if (semicolon === -1 || value.slice(0, semicolon).trim().toLowerCase() !== 'form-data') return undefined;
  let name: string | undefined;
  let isFile = false;
  let at = semicolon;
  while (at < value.length) {
    const parameter = readParameter(value, at + 1);
    if (parameter === undefined) return undefined;
    if (parameter.name === 'name') {
      if (name !== undefined) return undefined;
      name = parameter.value;
    } else if (parameter.name === 'filename' || parameter.name === 'filename*') isFile = true;
    at = parameter.end;
  }
  const decoded = name === undefined ? undefined : decodeText(Buffer.from(name, 'latin1'));
  return decoded === undefined ? undefined : { name: decoded, isFile };
}

type Parameter = { readonly name: string; readonly value: string; readonly end: number };

/** Reads the parameter after a semicolon; `end` is the index of the next semicolon or the length of the text. */
function readParameter(text: string, from: number): Parameter | undefined {
  const equals = text.indexOf('=', from);
  if (equals === -1) return undefined;
  const name = text.slice(from, equals).trim().toLowerCase();
  if (name === '' || name.includes(';') || name.includes('"')) return undefined;
  const start = skipSpaces(text, equals + 1);
  if (text.charCodeAt(start) !== 0x22) {
    const semicolon = text.indexOf(';', start);
    const end = semicolon === -1 ? text.length : semicolon;
    const value = text.slice(start, end).trim();
    return value.includes('"') ? undefined : { name, value, end };
  }
  let value = '';
  let at = start + 1;
  for (; ; at += 1) {
    if (at >= text.length) return undefined;
    const character = text.charAt(at);
    if (character === '"') break;
    const next = text.charAt(at + 1);
    if (character === '\\' && (next === '"' || next === '\\')) at += 1;
    value += text.charAt(at);
  }
  const end = skipSpaces(text, at + 1);
  return end === text.length || text.charCodeAt(end) === 0x3b ? { name, value, end } : undefined;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === 0x20 || text.charCodeAt(at) === 0x09) at += 1;
  return at;
}
