/**
 * The files that a write of a document names: what arrived with the request, and finished uploads, become the files that the document shows.
 * Which files the document has before and after is settled with the commit (files-stage.ts).
 */
import { ResourceRefused } from '../config/senders.ts';
import type { FieldError, Problem } from '../http/problem.ts';
import { memberSpan, valueAt } from '../http/syntax/json-members.ts';
import { formatJsonPointer } from '../http/syntax/json-pointer.ts';
import type { Ask, Understood } from '../kernel/resource.ts';
import type { Collection } from '../model/collection.ts';
import { type FileField, type FileFields, type FileValue, filesIn, uploadNamed } from '../model/file.ts';
import type { Principal } from '../model/principal.ts';
import type {
  ReceivedForm,
  Served,
  SettledFiles,
  WriteFiles,
} from '../resources/collection/served-collection.ts';
import { type FieldsOrWritten, WrittenFields } from '../resources/document/representation.ts';
import type { ReadStage } from '../store/stages.ts';
import type { MaybePromise } from '../store/store.ts';
import { FileForm } from './file-form.ts';
import { type FileRecord, filesTable, isFileId, isSentBy, keyOf, recordOf } from './file-rows.ts';
import { isAmong } from './media-type.ts';
import { FileMissing } from './place.ts';
import { previewTypes } from './preview-maker.ts';
import { type Announced, abandon, type Received, type Receiving, receiveFile } from './receive-file.ts';

export type Settled = SettledFiles | { readonly refused: Problem };

type Write = { readonly id: string; readonly fields: FieldsOrWritten };
type Place = { readonly collection: Collection; readonly path: string };

const none: readonly string[] = [];

/** A member of the fields that names an upload: within a list its place there. */
type Naming = {
  readonly field: FileField;
  readonly at: number | undefined;
  readonly upload: string;
};

export class DocumentFiles implements WriteFiles {
  readonly #receiving: Receiving;
  /** Files that arrived with requests under way, by id: the document takes them, or they are discarded. */
  readonly #arrived = new Map<string, FileRecord>();

  constructor(receiving: Receiving) {
    this.#receiving = receiving;
  }

  /** The octets of a file. @throws ResourceRefused if it is gone */
  readonly open = (file: FileValue): AsyncIterable<Uint8Array> => {
    const { place } = this.#receiving;
    return (async function* () {
      try {
        yield* await place.read(keyOf(file), 0, file.bytes);
      } catch (error) {
        if (!(error instanceof FileMissing)) throw error;
        throw new ResourceRefused('not_found', `the file ${file.id} is gone`, 404);
      }
    })();
  };

  /** Receives a file for a request, which must `discard` it in the end. Throws what the content throws. */
  async receive(announced: Announced, content: AsyncIterable<Uint8Array>): Promise<Received> {
    const received = await receiveFile(this.#receiving, announced, content);
    if ('id' in received) this.#arrived.set(received.id, received.record);
    return received;
  }

  /** Removes files that arrived with a request, and that no document took. */
  discard(ids: Iterable<string>): void {
    for (const id of ids) if (this.#arrived.delete(id)) void abandon(this.#receiving, id);
  }

  taken({ uploads }: SettledFiles): void {
    for (const id of uploads) this.#arrived.delete(id);
  }

  receiveForm(
    served: Pick<Served, 'collection' | 'serving'>,
    ask: Ask,
    { content, mediaType, isPatch }: Parameters<WriteFiles['receiveForm']>[2],
  ): MaybePromise<Understood<ReceivedForm>> {
    const form = new FileForm(this, served, ask, { content, mediaType, isPatch });
    if (!content.isDueNow) return { ok: true, value: form };
    return form.read().then((read) => (read.ok ? { ok: true, value: form } : read));
  }

  formBytesMax({ files }: Pick<Collection, 'files'>, textBytesMax: number): number {
    const fields = [...(files?.values() ?? [])];
    return fields.reduce((sum, { rule, filesMax = 1 }) => sum + filesMax * rule.bytesMax, textBytesMax);
  }

  /** The fields with files in place of the uploads that they name, or why one of them cannot be taken. */
  settle(place: Place, ask: Ask, { id, fields }: Write): MaybePromise<Settled> {
    const namings = [...(place.collection.files?.values() ?? [])].flatMap((field) =>
      namingsIn(field, fields),
    );
    return namings.length === 0
      ? { fields, uploads: none }
      : this.#settle(place, ask.principal, { id, fields }, namings);
  }

  async #settle(
    { collection, path }: Place,
    principal: Principal,
    { id, fields }: Write,
    namings: readonly Naming[],
  ): Promise<Settled> {
    const errors: FieldError[] = [];
    const files = new Map<Naming, FileValue>();
    const taken = new Set<string>();
    let uncountedBytes = 0;
    for (const naming of namings) {
      const { field, at, upload } = naming;
      const record = taken.has(upload) ? undefined : await this.#find(upload, principal);
      taken.add(upload);
      const fault = faultOf(record, field, collection.name);
      const pointer = formatJsonPointer([field.name, ...(at === undefined ? [] : [String(at)]), 'upload']);
      if (fault !== undefined) errors.push({ pointer, message: fault });
      else if (record !== undefined) {
        const value = fileValue({ path: `${path}/${encodeURIComponent(id)}`, field, id: upload, record });
        files.set(naming, value);
        if (record.collection === undefined) uncountedBytes += value.bytes;
      }
    }
    if (errors.length > 0) return { refused: { code: 'validation_failed', errors } };
    const over = await this.#receiving.quotas.collectionExcess(collection.name, uncountedBytes);
    if (over !== undefined) return { refused: over };
    return { fields: withFiles(fields, files), uploads: [...taken] };
  }

  /** An upload that the principal may use, whose octets are kept. */
  async #find(id: string, principal: Principal): Promise<FileRecord | undefined> {
    const arrived = this.#arrived.get(id);
    if (arrived !== undefined) return arrived;
    if (!isFileId(id)) return undefined;
    const row = await this.#receiving.store.read(filesTable, id);
    const record = row === undefined ? undefined : recordOf(row);
    return record?.state === 'complete' && isSentBy(record, principal) ? record : undefined;
  }
}

function faultOf(
  record: FileRecord | undefined,
  { name, rule }: FileField,
  collection: string,
): string | undefined {
  if (record === undefined)
    return 'is no finished upload of yours: it is unknown, unfinished, expired or taken';
  if (record.collection !== undefined && (record.collection !== collection || record.field !== name))
    return `is an upload for ${record.collection}.${record.field ?? ''}`;
  if (record.bytes > rule.bytesMax)
    return `has ${record.bytes} bytes, and ${rule.bytesMax} are the most here`;
  const [type = ''] = (record.type ?? '').split(';', 1);
  if (rule.types !== undefined && !isAmong(type, rule.types))
    return `is of the type ${type}, and must be ${rule.types.join(' or ')}`;
  return undefined;
}

type Held = {
  /** Path of the document. */
  readonly path: string;
  readonly field: FileField;
  readonly id: string;
  readonly record: FileRecord;
};

function fileValue({ path, field, id, record }: Held): FileValue {
  const { name = 'file', type = '', bytes, digest = '' } = record;
  const previews = previewTypes.has(type) ? Object.keys(field.rule.previews ?? {}) : [];
  return { ...{ id, name, type, bytes, digest }, ...pathsOf(urlOf(path, field, id), previews) };
}

/**
 * Files of stored documents as they are shown: their paths are made of the base and the names of today, and not of those at the time of the
 * write. Each file costs the parse of one value.
 */
export function filePaths(base: string, holders: ReadonlyMap<string, FileFields>): ReadStage {
  const shown = (table: string, id: string, doc: string): string => {
    const path = `${base}/${table}/${encodeURIComponent(id)}`;
    let text = doc;
    for (const field of holders.get(table)?.values() ?? []) {
      const span = memberSpan(text, field.name);
      if (span === undefined) continue;
      const value: unknown = JSON.parse(text.slice(span.start, span.end));
      const kept = filesIn(value);
      const files = kept.map((file) => ({
        ...file,
        ...pathsOf(urlOf(path, field, file.id), Object.keys(file.previews ?? {})),
      }));
      const isStale = kept.some(({ url }, index) => url !== files[index]?.url);
      if (!isStale) continue;
      const fresh = JSON.stringify(Array.isArray(value) ? files : files[0]);
      text = text.slice(0, span.start) + fresh + text.slice(span.end);
    }
    return text;
  };
  return {
    tables: holders,
    document: shown,
    paged: (table, doc) => shown(table, String(valueAt(doc, ['id'])), doc),
  };
}

function pathsOf(url: string, previews: readonly string[]): Pick<FileValue, 'url' | 'previews'> {
  if (previews.length === 0) return { url };
  return { url, previews: Object.fromEntries(previews.map((name) => [name, `${url}/previews/${name}`])) };
}

/** @param path of the document */
export function urlOf(path: string, { name, filesMax }: FileField, id: string): string {
  const url = `${path}/${encodeURIComponent(name)}`;
  return filesMax === undefined ? url : `${url}/${id}`;
}

function memberOf(fields: FieldsOrWritten, name: string): unknown {
  if (fields instanceof WrittenFields) return valueAt(fields.text, [name]);
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function namingsIn(field: FileField, fields: FieldsOrWritten): readonly Naming[] {
  const value = memberOf(fields, field.name);
  if (field.filesMax === undefined) {
    const upload = uploadNamed(value);
    return upload === undefined ? [] : [{ field, at: undefined, upload }];
  }
  return (Array.isArray(value) ? value : []).flatMap((item, at) => {
    const upload = uploadNamed(item);
    return upload === undefined ? [] : [{ field, at, upload }];
  });
}

function withFiles(fields: FieldsOrWritten, files: ReadonlyMap<Naming, FileValue>): FieldsOrWritten {
  const values = new Map<string, unknown>();
  for (const [{ field, at }, file] of files) {
    if (at === undefined) values.set(field.name, file);
    else {
      const list = values.get(field.name) ?? [...(memberOf(fields, field.name) as readonly unknown[])];
      (list as unknown[])[at] = file;
      values.set(field.name, list);
    }
  }
  if (!(fields instanceof WrittenFields)) return { ...fields, ...Object.fromEntries(values) };
  let { text } = fields;
  // A long document is not parsed on the event loop for the sake of one member.
  for (const [name, value] of values) {
    const span = memberSpan(text, name);
    if (span !== undefined) text = text.slice(0, span.start) + JSON.stringify(value) + text.slice(span.end);
  }
  return new WrittenFields({ text, search: fields.search, references: fields.references });
}

/** The file of a field, or of a list the one with this id. */
export function fileAt(doc: string, { name }: FileField, id: string | undefined): FileValue | undefined {
  const files = filesIn(valueAt(doc, [name]));
  return id === undefined ? files[0] : files.find((file) => file.id === id);
}
