/**
 * Reads the fields of requests about uploads, in either protocol: tus 1.0 (with creation, creation-with-upload, checksum, expiration, termination), known by
 * `Tus-Resumable`, or draft-ietf-httpbis-resumable-upload. The draft's interop versions 5, 6 and 8 differ here in the interim response alone.
 */
import type { Request } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import { parseRequestDisposition } from '../../http/syntax/content-disposition.ts';
import { valuesOf } from '../../http/syntax/field-value.ts';
import { fileNameFrom } from '../../http/syntax/file-name.ts';

export const tusVersion = '1.0.0';
export const tusExtensions = 'creation,creation-with-upload,checksum,expiration,termination';
export const checksumAlgorithms = ['sha1', 'sha256', 'md5'] as const;
/** The version of the draft whose clients take 104; others, and programs that speak no draft, take it for the answer. */
const informedVersion = '8';

export const tusPiece = 'application/offset+octet-stream';
export const draftPiece = 'application/partial-upload';

export type Checksum = { readonly algorithm: (typeof checksumAlgorithms)[number]; readonly digest: Buffer };

/** A new upload, perhaps with its first octets. */
export type Beginning = {
  readonly isTus: boolean;
  /** Octets of the whole; undefined: they come later. */
  readonly length: number | undefined;
  /** The content of this request is the last piece. */
  readonly isComplete: boolean;
  readonly hasContent: boolean;
  readonly name: string;
  /** As the client states it. */
  readonly type: string | undefined;
  /** The field that it is for; undefined: any. */
  readonly target: { readonly collection: string; readonly field: string } | undefined;
  readonly checksum: Checksum | undefined;
  /** The client takes 104 (Upload Resumption Supported). */
  readonly isInformed: boolean;
};

export type Piece = {
  readonly isTus: boolean;
  readonly offset: number;
  readonly length: number | undefined;
  readonly isComplete: boolean;
  readonly checksum: Checksum | undefined;
};

type Asked = Pick<Request, 'rawFields' | 'fields'>;

type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

export function readBeginning(asked: Asked): Read<Beginning> {
  return isTus(asked) ? tusBeginning(asked) : draftBeginning(asked);
}

export function readPiece(asked: Asked): Read<Piece> {
  return isTus(asked) ? tusPieceOf(asked) : draftPieceOf(asked);
}

// tus 1.0. A request is one of tus by its fields, so that one without a version is not taken for one that sends a file whole. By either protocol
// tus-js-client 4.3.1 sends Upload-Metadata and Upload-Length.

export function isTus({ rawFields, fields: { contentType } }: Asked): boolean {
  if (has(rawFields, 'tus-resumable')) return true;
  if (isDraft(rawFields) || contentType === draftPiece) return false;
  return contentType === tusPiece || has(rawFields, 'upload-metadata') || has(rawFields, 'upload-length');
}

/** Core Protocol, Tus-Version: 412 for another version than ours, whatever the method. */
export function versionProblem(asked: Asked): Problem | null {
  const isUnsupported = isTus(asked) && oneOf(asked.rawFields, 'tus-resumable') !== tusVersion;
  return isUnsupported ? { code: 'tus_version_unsupported' } : null;
}

/** tus-js-client 4.3.1 ends an upload with 429, waits after 423, and begins anew where HEAD is answered otherwise. */
export function rateProblem(asked: Asked): ProblemCode {
  return isTus(asked) ? 'upload_rate_limited' : 'rate_limited';
}

/** Creation, and Creation With Upload. */
function tusBeginning(asked: Asked): Read<Beginning> {
  const { rawFields, fields } = asked;
  const hasContent = announcesContent(asked);
  const problem = versionProblem(asked);
  if (problem !== null) return { ok: false, problem };
  const length = numberIn(rawFields, 'upload-length');
  if (length === undefined) return wrong('Upload-Length is missing: its deferral is not supported');
  if (length === 'malformed') return wrong('Upload-Length must be the number of octets of the upload');
  const checksum = readChecksum(rawFields);
  if (checksum === 'malformed') return wrong(checksumForm);
  if (hasContent && fields.contentType !== tusPiece) return wrong(`the first octets must be ${tusPiece}`);
  const described = readMetadata(rawFields);
  if (described === undefined) return wrong(metadataMalformed);
  return {
    ok: true,
    value: {
      ...{ isTus: true, length, isComplete: false, hasContent, checksum, isInformed: false },
      ...described,
    },
  };
}

/** Core Protocol, PATCH. */
function tusPieceOf(asked: Asked): Read<Piece> {
  const { rawFields, fields } = asked;
  const problem = versionProblem(asked);
  if (problem !== null) return { ok: false, problem };
  if (fields.contentType !== tusPiece)
    return { ok: false, problem: { code: 'media_type_unsupported', message: `a piece must be ${tusPiece}` } };
  const offset = numberIn(rawFields, 'upload-offset');
  const length = numberIn(rawFields, 'upload-length');
  if (typeof offset !== 'number' || length === 'malformed') return wrong(offsetForm);
  const checksum = readChecksum(rawFields);
  if (checksum === 'malformed') return wrong(checksumForm);
  return { ok: true, value: { isTus: true, offset, length, isComplete: false, checksum } };
}

const checksumForm = `Upload-Checksum is an algorithm (${checksumAlgorithms.join(', ')}), a space and a digest in base64`;

function readChecksum(rawFields: readonly string[]): Checksum | undefined | 'malformed' {
  const value = oneOf(rawFields, 'upload-checksum');
  if (value === undefined) return undefined;
  const [name, text = ''] = value.split(' ', 2);
  const algorithm = checksumAlgorithms.find((each) => each === name);
  return algorithm === undefined || text === ''
    ? 'malformed'
    : { algorithm, digest: Buffer.from(text, 'base64') };
}

const metadataMalformed = 'malformed Upload-Metadata';

/** Pairs of a key and a value in base64, which may be missing. @returns undefined: they are malformed */
function readMetadata(rawFields: readonly string[]): Pick<Beginning, 'name' | 'type' | 'target'> | undefined {
  const metadata = new Map<string, string>();
  for (const pair of (oneOf(rawFields, 'upload-metadata') ?? '').split(',').map((each) => each.trim())) {
    if (pair === '') continue;
    const [key = '', text = '', ...more] = pair.split(' ');
    if (key === '' || more.length > 0 || metadata.has(key)) return undefined;
    metadata.set(key, Buffer.from(text, 'base64').toString());
  }
  const collection = metadata.get('collection');
  const field = metadata.get('field');
  return {
    name: fileNameFrom(metadata.get('filename') ?? metadata.get('name') ?? ''),
    type: metadata.get('filetype') ?? metadata.get('type'),
    target: collection === undefined || field === undefined ? undefined : { collection, field },
  };
}

// The draft of the IETF.

function isDraft(rawFields: readonly string[]): boolean {
  return has(rawFields, 'upload-complete') || has(rawFields, 'upload-draft-interop-version');
}

/**
 * Upload Creation. Without Upload-Complete the content is all, as that of any request. tus-js-client 4.3.1 names the file in Upload-Metadata
 * alone here too.
 */
function draftBeginning(asked: Asked): Read<Beginning> {
  const { rawFields, fields } = asked;
  const contentLength = fields.contentLength === undefined ? undefined : Number(fields.contentLength);
  const stated = numberIn(rawFields, 'upload-length');
  const isComplete = booleanIn(rawFields, 'upload-complete') ?? true;
  if (stated === 'malformed' || isComplete === 'malformed')
    return wrong('Upload-Length is a number, Upload-Complete ?0 or ?1');
  const length = stated ?? (isComplete ? contentLength : undefined);
  if (isComplete && contentLength !== undefined && length !== contentLength)
    return wrong('Upload-Length is not the length of the content that Upload-Complete: ?1 says is all');
  const disposition = oneOf(rawFields, 'content-disposition');
  const named = disposition === undefined ? undefined : parseRequestDisposition(disposition);
  if (disposition !== undefined && named === undefined) return wrong('malformed Content-Disposition');
  const described = readMetadata(rawFields);
  if (described === undefined) return wrong(metadataMalformed);
  const { contentType = draftPiece } = fields;
  return {
    ok: true,
    value: {
      ...{ ...described, isTus: false, length, isComplete, checksum: undefined },
      hasContent: announcesContent(asked),
      name: named?.fileName ?? described.name,
      type: contentType === draftPiece ? described.type : contentType,
      isInformed: oneOf(rawFields, 'upload-draft-interop-version') === informedVersion,
    },
  };
}

/** Upload Append. */
function draftPieceOf({ rawFields }: Asked): Read<Piece> {
  const offset = numberIn(rawFields, 'upload-offset');
  const length = numberIn(rawFields, 'upload-length');
  if (typeof offset !== 'number' || length === 'malformed') return wrong(offsetForm);
  const isComplete = booleanIn(rawFields, 'upload-complete');
  if (typeof isComplete !== 'boolean')
    return wrong('Upload-Complete must be ?1 for the last piece, and ?0 for others');
  return { ok: true, value: { isTus: false, offset, length, isComplete, checksum: undefined } };
}

/** The request begins a resumable upload where a file may be sent whole as well. */
export function isResumable(asked: Asked): boolean {
  return isTus(asked) || isDraft(asked.rawFields);
}

// Of both.

export function announcesContent({ fields }: Pick<Request, 'fields'>): boolean {
  return fields.transferEncoding !== undefined || Number(fields.contentLength ?? 0) > 0;
}

const offsetForm = 'Upload-Offset must be the number of octets before this piece';
const digits = /^\d{1,15}$/;

function has(rawFields: readonly string[], name: string): boolean {
  return valuesOf(rawFields, name).length > 0;
}

function oneOf(rawFields: readonly string[], name: string): string | undefined {
  const values = valuesOf(rawFields, name);
  return values.length > 1 ? '' : values[0]?.trim();
}

function numberIn(rawFields: readonly string[], name: string): number | undefined | 'malformed' {
  const value = oneOf(rawFields, name);
  if (value === undefined) return undefined;
  return digits.test(value) ? Number(value) : 'malformed';
}

function booleanIn(rawFields: readonly string[], name: string): boolean | undefined | 'malformed' {
  const value = oneOf(rawFields, name);
  if (value === undefined) return undefined;
  return value === '?1' || value === '?0' ? value === '?1' : 'malformed';
}

function wrong(message: string): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem: { code: 'field_invalid', message } };
}
