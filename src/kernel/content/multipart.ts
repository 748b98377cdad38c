/**
 * Reads multipart/form-data (RFC 7578) as names and texts, and files where the receiver has some. Files are handed over as they arrive, one at a
 * time, in order; `readMultipart` is the form for content that has arrived.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ContentFailed, type RequestMemory } from '../../http/message.ts';
import type { FieldError, Problem } from '../../http/problem.ts';
import { trimWhitespace } from '../../http/syntax/field-value.ts';
import { fileNameFrom, plainFileName } from '../../http/syntax/file-name.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type MediaType, parseMediaType } from '../../http/syntax/media-type.ts';
import type { Upload, UploadRule } from '../../model/logic/actions.ts';
import { type ContentLimits, decodeText, type FormEntry, foreignCharset } from './content-shape.ts';
import { MultipartCutter, type PartEvent, type PartHeader } from './multipart-cutter.ts';

type Refused = { readonly ok: false; readonly problem: Problem };
export type ArrivedEntries = { readonly ok: true; readonly entries: readonly FormEntry[] } | Refused;
export type MultipartEntries =
  | { readonly ok: true; readonly entries: readonly FormEntry[]; readonly files: readonly Upload[] }
  | Refused;

/** RFC 2046 §5.1.1: at most 70 of these characters, the last not a space. */
const boundaryCharactersMax = 70;
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]$/;
const sliceBytes = 16 * 1024;
/** After this many octets, the event loop gets a turn. */
const turnBytes = 16 * sliceBytes;
const fileErrorsMax = 20;
const nameCharactersShown = 64;

export type FilePart = {
  readonly name: string;
  /** For people: it has no folders, and is `file` where the client gives none. */
  readonly fileName: string;
  /** The media type that the client states, without parameters; undefined: none. */
  readonly type: string | undefined;
  /** At most the octets of its rule; more rejects with `ContentFailed`, which the receiver passes on. */
  readonly content: AsyncIterable<Uint8Array>;
};

/** What a form may have besides texts, and the bound of its texts. */
export type FormReceiver = {
  /** The names that are files, as parts spell them. */
  readonly files?: ReadonlyMap<string, UploadRule> | undefined;
  /** A text in place of a file is one too, for what the receiver makes of it. Default false: it is refused. */
  readonly namesFiles?: boolean;
  /** Takes a file; what it leaves of the content is skipped. @returns the number that stands for it in the entries, or why it is refused */
  readonly onFile: (part: FilePart) => Promise<number | Problem>;
  /** Octets of all texts together. */
  readonly textBytesMax: number;
  /** Counts the texts. */
  readonly memory?: Pick<RequestMemory, 'hold'> | undefined;
};

/** Reads the fields in order. Never rejects: every failure is a problem. @param files the names that are files */
export async function readMultipart(
  bytes: Uint8Array,
  mediaType: MediaType,
  limits: ContentLimits,
  files?: ReadonlyMap<string, UploadRule>,
): Promise<MultipartEntries> {
  const uploads: Upload[] = [];
  const onFile = async ({ fileName, type, content }: FilePart): Promise<number> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    return uploads.push({ name: fileName, type: type ?? typeDefault, bytes: Buffer.concat(chunks) }) - 1;
  };
  const receiver = { files, onFile, textBytesMax: bytes.length };
  const read = await readArrivingMultipart(inSlices(bytes), mediaType, limits, receiver);
  return read.ok ? { ...read, files: uploads } : read;
}

/** In slices, to stop early when the form is refused. */
async function* inSlices(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += sliceBytes) {
    if (from > 0 && from % turnBytes === 0) await nextTurn();
    yield bytes.subarray(from, from + sliceBytes);
  }
}

/**
 * Reads a form while it arrives, and no further once it is refused. Every failure of the content is a problem; rejects with what `onFile` rejects
 * with besides.
 */
export async function readArrivingMultipart(
  content: AsyncIterable<Uint8Array>,
  mediaType: MediaType,
  limits: ContentLimits,
  receiver: FormReceiver,
): Promise<ArrivedEntries> {
  const boundary = mediaType.parameters.get('boundary');
  if (boundary === undefined || !isBoundary(boundary))
    return refuse(malformed('multipart/form-data needs a boundary parameter (RFC 2046 §5.1.1)'));
  const events = cut(content, new MultipartCutter(boundary, limits));
  try {
    return await new FormReading(events, limits, receiver).read();
  } catch (error) {
    if (error instanceof ContentFailed) return refuse(error.problem);
    throw error;
  } finally {
    await events.return();
  }
}

type Events = AsyncGenerator<PartEvent, void, undefined>;

async function* cut(content: AsyncIterable<Uint8Array>, cutter: MultipartCutter): Events {
  for await (const chunk of content) yield* cutter.push(chunk);
  cutter.end();
}

/** `fileName`: undefined for a part that is not a file. */
type Disposition = { readonly name: string; readonly fileName: string | undefined };

class FormReading {
  readonly #events: Events;
  readonly #limits: ContentLimits;
  readonly #receiver: FormReceiver;
  readonly #entries: FormEntry[] = [];
  readonly #errors: FieldError[] = [];
  #parts = 0;
  #textBytes = 0;

  constructor(events: Events, limits: ContentLimits, receiver: FormReceiver) {
    this.#events = events;
    this.#limits = limits;
    this.#receiver = receiver;
  }

  async read(): Promise<ArrivedEntries> {
    const { formFieldsMax } = this.#limits;
    for (let event = await this.#next(); event !== undefined; event = await this.#next()) {
      if (event.kind !== 'header') continue;
      this.#parts += 1;
      if (this.#parts > formFieldsMax)
        return refuse(malformed(`multipart content must have at most ${formFieldsMax} parts`));
      const problem = await this.#readPart(event.header);
      if (problem !== undefined) return refuse(problem);
    }
    return this.#errors.length > 0 ? this.#invalid() : { ok: true, entries: this.#entries };
  }

  #invalid(): Refused {
    return refuse({ code: 'validation_failed', errors: this.#errors });
  }

  async #next(): Promise<PartEvent | undefined> {
    const { done, value } = await this.#events.next();
    return done === true ? undefined : value;
  }

  async #readPart(header: PartHeader): Promise<Problem | undefined> {
    const disposition = parseDisposition(onlyValue(header, 'content-disposition') ?? '');
    if (disposition === undefined)
      return malformed('each part needs exactly one Content-Disposition: form-data with a name in UTF-8');
    const { name, fileName } = disposition;
    const contentType = onlyValue(header, 'content-type');
    const rule = this.#receiver.files?.get(name);
    if (fileName !== undefined && rule !== undefined)
      return this.#readFile({ name, fileName }, contentType, rule);
    const isText = fileName === undefined;
    const asFile = this.#receiver.namesFiles === true ? undefined : rule;
    const refusal = isText ? refuseField(contentType, asFile) : 'must not be a file';
    const bytes = await this.#readText();
    if (refusal !== undefined) {
      this.#refuse(name, refusal);
      return undefined;
    }
    const text = decodeText(bytes);
    if (text === undefined) return malformed('the value of a field must be UTF-8');
    this.#entries.push([name, text]);
    return undefined;
  }

  #refuse(name: string, message: string): void {
    if (this.#errors.length < fileErrorsMax) this.#errors.push({ pointer: pointerTo(name), message });
  }

  async #readText(): Promise<Uint8Array> {
    const { multipartFieldBytesMax } = this.#limits;
    const { textBytesMax, memory } = this.#receiver;
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of this.#content(multipartFieldBytesMax, tooLong)) {
      length += chunk.length;
      this.#textBytes += chunk.length;
      if (this.#textBytes > textBytesMax) throw new ContentFailed(tooLong);
      if (memory?.hold(chunk.length) === false) throw new ContentFailed({ code: 'unavailable' });
      chunks.push(Buffer.from(chunk));
    }
    return Buffer.concat(chunks, length);
  }

  /** The content of the part whose header came last. */
  async *#content(bytesMax: number, problem: Problem): AsyncGenerator<Uint8Array> {
    let length = 0;
    for (let event = await this.#next(); event?.kind === 'octets'; event = await this.#next()) {
      length += event.bytes.length;
      if (length > bytesMax) throw new ContentFailed(problem);
      yield event.bytes;
    }
  }

  async #readFile(
    { name, fileName }: { readonly name: string; readonly fileName: string },
    contentType: string | undefined,
    rule: UploadRule,
  ): Promise<Problem | undefined> {
    const told = `must be at most ${rule.bytesMax} bytes long`;
    const errors = [{ pointer: pointerTo(name), message: told }];
    const content = this.#content(rule.bytesMax, {
      code: 'content_too_large',
      ...{ message: `${name} ${told}`, errors },
    });
    const first = await content.next();
    // A browser sends an empty control for files like this.
    if (first.done === true && fileName === '') return undefined;
    const type = contentType === undefined ? undefined : mediaTypeOf(contentType);
    const refusal = refuseFile(type ?? typeDefault, rule);
    if (refusal !== undefined) this.#refuse(name, refusal);
    // The form is refused: no file is worth its octets.
    if (this.#errors.length > 0) return this.#invalid().problem;
    const arriving = first.done === true ? content : startingWith(first.value, content);
    const taken = await this.#receiver.onFile({
      name,
      fileName: fileNameFrom(fileName),
      type,
      content: arriving,
    });
    if (typeof taken !== 'number') return taken;
    await skip(content);
    this.#entries.push([name, taken]);
    return undefined;
  }
}

async function skip(content: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of content) {
    // What the receiver left.
  }
}

async function* startingWith(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

const tooLong: Problem = { code: 'content_too_large' };
/** RFC 7578 §4.4: a part without a type is text/plain. */
const typeDefault = 'text/plain';

function refuseField(contentType: string | undefined, rule: UploadRule | undefined): string | undefined {
  return rule === undefined ? refuseType(contentType) : 'must be a file';
}

function refuseFile(type: string, { mediaTypes }: UploadRule): string | undefined {
  if (mediaTypes === undefined) return undefined;
  const range = `${type.slice(0, type.indexOf('/'))}/*`;
  if (mediaTypes.includes(type) || mediaTypes.includes(range)) return undefined;
  return `must be of the type ${mediaTypes.join(' or ')}`;
}

function mediaTypeOf(contentType: string): string {
  return parseMediaType(contentType)?.type ?? 'application/octet-stream';
}

/** Explains why a part of this type cannot be a field; RFC 7578 §4.4: a part without a type is text/plain. */
function refuseType(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const mediaType = parseMediaType(value);
  if (mediaType?.type !== 'text/plain') return 'must be text/plain';
  return foreignCharset(mediaType) === undefined ? undefined : 'must be UTF-8';
}

function onlyValue(header: PartHeader, name: string): string | undefined {
  const [first, ...others] = header.get(name) ?? [];
  return others.length === 0 ? first : 'repeated';
}

function pointerTo(name: string): string {
  return formatJsonPointer([
    name.length > nameCharactersShown ? `${name.slice(0, nameCharactersShown)}...` : name,
  ]);
}

function isBoundary(text: string): boolean {
  return text.length > 0 && text.length <= boundaryCharactersMax && boundaryPattern.test(text);
}

function refuse(problem: Problem): Refused {
  return { ok: false, problem };
}

function malformed(message: string): Problem {
  return { code: 'content_malformed', message };
}

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
    const value = trimWhitespace(text.slice(start, end));
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
