/**
 * Reads multipart/form-data (RFC 7578) as names and texts, and files where the shape has some: only inputs of actions do.
 * Dicer, the parser inside `@fastify/busboy`, cuts the parts. Busboy itself skips parts that it does not understand and turns bad UTF-8
 * into U+FFFD; here both refuse the whole content.
 */
import { Dicer } from '@fastify/busboy';
import type { FieldError, Problem } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type MediaType, parseMediaType } from '../../http/syntax/media-type.ts';
import type { Upload, UploadRule } from '../../model/logic/actions.ts';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import { type ContentLimits, decodeText, type FormEntry, foreignCharset } from './content-shape.ts';

export type MultipartEntries =
  | { readonly ok: true; readonly entries: readonly FormEntry[]; readonly files: readonly Upload[] }
  | { readonly ok: false; readonly problem: Problem };

/** RFC 2046 §5.1.1: at most 70 of these characters, the last not a space. */
const boundaryCharactersMax = 70;
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]$/;
const sliceBytes = 16 * 1024;
/** After this many octets, the event loop gets a turn. */
const turnBytes = 16 * sliceBytes;
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

type FileRules = ReadonlyMap<string, UploadRule>;

/** Reads the fields in order. Never rejects: every failure is a problem. @param files the names that are files */
export async function readMultipart(
  bytes: Uint8Array,
  mediaType: MediaType,
  limits: ContentLimits,
  files?: FileRules,
): Promise<MultipartEntries> {
  const boundary = mediaType.parameters.get('boundary');
  if (boundary === undefined || !isBoundary(boundary)) {
    return malformed('multipart/form-data needs a boundary parameter (RFC 2046 §5.1.1)');
  }
  const cut = await cutParts(bytes, boundary, limits, files);
  return cut.ok ? readParts(cut.parts, files) : cut;
}

/**
 * Waits for all parts. Dicer always emits `finish`, however broken the content is, after `error` for an unfinished one.
 */
function cutParts(
  bytes: Uint8Array,
  boundary: string,
  limits: ContentLimits,
  files: FileRules | undefined,
): Promise<Cut> {
  const bound = (header: Part['header']): PartBound => boundOf(header, files, limits);
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
      collectPart(part, bound, (collected) => {
        if ('code' in collected) problem ??= collected;
        else if (problem === undefined) parts.push(collected);
      });
    });
    // In slices, to stop early when the form is refused: a part takes Dicer about 30 µs.
    const feed = (from: number): void => {
      if (problem !== undefined) settle();
      else if (from >= bytes.length) dicer.end();
      else dicer.write(Buffer.from(bytes.subarray(from, from + sliceBytes)), () => next(from + sliceBytes));
    };
    const next = (from: number): void => {
      if (from % turnBytes === 0) setImmediate(feed, from);
      else feed(from);
    };
    feed(0);
  });
}

/** Collects one part. A part whose header section never ends yields nothing, and Dicer skips it. */
function collectPart(
  stream: Dicer.PartStream,
  boundFor: (header: Part['header']) => PartBound,
  settle: (part: Part | Problem) => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  let header: Part['header'] | undefined;
  let bound: PartBound = { bytesMax: 0, tooLong };
  stream.on('error', () => settle(unfinished));
  stream.on('header', (read) => {
    header = new Map(Object.entries(read));
    bound = boundFor(header);
  });
  stream.on('data', (chunk) => {
    length += chunk.length;
    if (length <= bound.bytesMax && typeof chunk !== 'string') chunks.push(chunk);
  });
  stream.on('end', () => {
    if (header === undefined) return;
    if (length > bound.bytesMax) settle(bound.tooLong);
    else settle({ header, bytes: Buffer.concat(chunks) });
  });
}

type PartBound = { readonly bytesMax: number; readonly tooLong: Problem };

const tooLong: Problem = { code: 'content_too_large' };

function boundOf(header: Part['header'], files: FileRules | undefined, limits: ContentLimits): PartBound {
  const field = { bytesMax: limits.multipartFieldBytesMax, tooLong };
  if (files === undefined) return field;
  const { name = '', fileName } = parseDisposition(onlyValue(header, 'content-disposition') ?? '') ?? {};
  const rule = fileName === undefined ? undefined : files.get(name);
  if (rule === undefined) return field;
  const told = `must be at most ${rule.bytesMax} bytes long`;
  const errors = [{ pointer: pointerTo(name), message: told }];
  return {
    bytesMax: rule.bytesMax,
    tooLong: { code: 'content_too_large', message: `${name} ${told}`, errors },
  };
}

function readParts(parts: readonly Part[], rules: FileRules | undefined): MultipartEntries {
  const entries: FormEntry[] = [];
  const files: Upload[] = [];
  const errors: FieldError[] = [];
  for (const { header, bytes } of parts) {
    const disposition = parseDisposition(onlyValue(header, 'content-disposition') ?? '');
    if (disposition === undefined)
      return malformed('each part needs exactly one Content-Disposition: form-data with a name in UTF-8');
    const { name, fileName } = disposition;
    const contentType = onlyValue(header, 'content-type');
    const rule = rules?.get(name);
    const refusal =
      fileName === undefined ? refuseField(contentType, rule) : refuseFile(mediaTypeOf(contentType), rule);
    // A browser sends an empty control for files like this.
    if (fileName === '' && bytes.length === 0 && rule !== undefined) continue;
    if (refusal !== undefined) {
      if (errors.length < fileErrorsMax) errors.push({ pointer: pointerTo(name), message: refusal });
      continue;
    }
    if (fileName !== undefined) {
      entries.push([name, files.length]);
      files.push({ name: fileNameFrom(fileName), type: mediaTypeOf(contentType), bytes });
      continue;
    }
    const text = decodeText(bytes);
    if (text === undefined) return malformed('the value of a field must be UTF-8');
    entries.push([name, text]);
  }
  if (errors.length > 0) return { ok: false, problem: { code: 'validation_failed', errors } };
  return { ok: true, entries, files };
}

function refuseField(contentType: string | undefined, rule: UploadRule | undefined): string | undefined {
  return rule === undefined ? refuseType(contentType) : 'must be a file';
}

function refuseFile(type: string, rule: UploadRule | undefined): string | undefined {
  if (rule === undefined) return 'must not be a file';
  const { mediaTypes } = rule;
  const range = `${type.slice(0, type.indexOf('/'))}/*`;
  if (mediaTypes === undefined || mediaTypes.includes(type) || mediaTypes.includes(range)) return undefined;
  return `must be of the type ${mediaTypes.join(' or ')}`;
}

/** RFC 7578 §4.4: a part without a type is text/plain. */
function mediaTypeOf(contentType: string | undefined): string {
  return contentType === undefined
    ? 'text/plain'
    : (parseMediaType(contentType)?.type ?? 'application/octet-stream');
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

/** `fileName`: undefined for a part that is not a file. */
type Disposition = { readonly name: string; readonly fileName: string | undefined };

/**
 * Reads the Content-Disposition of a part (RFC 7578 §4.2), as browsers and curl write it, from octets as Latin-1. In a
 * quoted string a backslash escapes only a quote or a backslash: browsers send others literally. Undefined if it is not
 * `form-data` with one UTF-8 name.
 */
function parseDisposition(value: string): Disposition | undefined {
  const semicolon = value.indexOf(';');
  if (semicolon === -1 || value.slice(0, semicolon).trim().toLowerCase() !== 'form-data') return undefined;
  let name: string | undefined;
  let fileName: string | undefined;
  let at = semicolon;
  while (at < value.length) {
    const parameter = readParameter(value, at + 1);
    if (parameter === undefined) return undefined;
    if (parameter.name === 'name') {
      if (name !== undefined) return undefined;
      name = parameter.value;
    } else if (parameter.name === 'filename') fileName = plainFileName(parameter.value);
    // RFC 7578 §4.2 forbids it: it makes the part a file, and its name is not read.
    else if (parameter.name === 'filename*') fileName ??= '';
    at = parameter.end;
  }
  const decoded = name === undefined ? undefined : decodeText(Buffer.from(name, 'latin1'));
  return decoded === undefined ? undefined : { name: decoded, fileName };
}

/** Browsers write these three as in a URI and nothing else. */
const escaped: Readonly<Record<string, string>> = { '%22': '"', '%0A': '', '%0D': '' };
const escapes = /%22|%0A|%0D/g;
const folders = /^.*[\\/]/s;
/** Controls, invisible characters, those that turn the direction of the text, and separators of lines. */
const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The name in UTF-8, as browsers mean it; empty if it is not UTF-8. */
function plainFileName(latin1: string): string {
  const text = decodeText(Buffer.from(latin1, 'latin1')) ?? '';
  return text.replaceAll(escapes, (found) => escaped[found] ?? '');
}

/** The longest name in file systems. */
const fileNameBytesMax = 255;
const dotsAlone = /^\.*$/;
const extension = /\.[A-Za-z0-9]{1,16}$/;

/** A name that a handler may give to a file: no folders, no step such as `..`, never empty, and not too long. */
function fileNameFrom(plain: string): string {
  const name = plain.replace(folders, '').replaceAll(controls, '').trim();
  if (dotsAlone.test(name)) return 'file';
  if (Buffer.byteLength(name) <= fileNameBytesMax) return name;
  const end = extension.exec(name)?.[0] ?? '';
  let start = '';
  let room = fileNameBytesMax - end.length;
  for (const character of name.slice(0, name.length - end.length)) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    start += character;
  }
  return start + end;
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
