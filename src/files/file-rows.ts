/**
 * The rows of files, one for each, from before its first octet to after its last. States:
 *
 *   arriving   an upload under way: its octets are on their way to the place, or wait there for more
 *   complete   an upload whose octets are kept, and that no document has taken yet
 *   held       a document has it
 *   removed    no document has it any more: its octets are removed, and then the row
 *
 *   arriving -> complete, held; complete -> held; held -> removed; arriving, complete -> removed after their lifetime
 *
 * The row comes before the octets and goes after them, so whatever a crash leaves is found by its row, without a look at all octets.
 */
import { type Field, madeFields, ownerField } from '../model/field.ts';
import type { FileValue } from '../model/file.ts';
import { callerOf, isAdministrator, type Principal, tenantOf } from '../model/principal.ts';
import { type Change, keptRow, type Row, type Table } from '../store/store.ts';
import { placeKey } from './place.ts';

export const filesTable = 'files';

export type FileState = 'arriving' | 'complete' | 'held' | 'removed';

/** The field of a collection that an upload is for, and the document if it exists. */
export type FileTarget = {
  readonly collection: string;
  readonly field: string;
  readonly document?: string;
};

/** The content of a row. */
export type FileRecord = {
  readonly state: FileState;
  /** The quotas that it counts for. */
  readonly collection?: string;
  readonly tenant?: string;
  /** Who sent it (`callerOf`). */
  readonly principal: string;
  readonly field?: string;
  readonly document?: string;
  readonly name?: string;
  readonly type?: string;
  /** Octets; of an upload under way those that it announced, 0 if none. */
  readonly bytes: number;
  /** `sha-256=:...:`; absent until the octets are complete. */
  readonly digest?: string;
  /** What a resumable upload needs besides (uploads). */
  readonly upload?: Readonly<Record<string, unknown>>;
};

/** States of files whose octets are kept. */
export const keptStates = ['held', 'complete'] as const;

export function isKept({ state }: Pick<FileRecord, 'state'>): boolean {
  return state === 'held' || state === 'complete';
}

/** True if the principal sent the file, or administers all. */
export function isSentBy({ principal }: Pick<FileRecord, 'principal'>, by: Principal): boolean {
  return principal === callerOf(by) || isAdministrator(by);
}

/** The row of a file that is about to arrive, with what its sender determines. */
export function arrivingRecord(
  sender: Principal,
  parts: Omit<FileRecord, 'state' | 'principal' | 'tenant'>,
): FileRecord {
  const tenant = tenantOf(sender);
  return {
    ...{ state: 'arriving', principal: callerOf(sender), ...parts },
    ...(tenant === null ? {} : { tenant }),
  };
}

const stateField: Field = { name: 'state', path: ['state'], type: 'string' };
const collectionField: Field = { name: 'collection', path: ['collection'], type: 'string' };
const tenantField: Field = { name: 'tenant', path: ['tenant'], type: 'string' };
const principalField: Field = { name: 'principal', path: ['principal'], type: 'string' };
const bytesField: Field = { name: 'bytes', path: ['bytes'], type: 'integer' };

export const fileFields = { stateField, collectionField, tenantField, principalField, bytesField };

const updatedAtField = madeFields.find(({ name }) => name === 'updatedAt') as Field;

/** The order in which rows of a state are found: the oldest change first. */
export const byAge = [
  { field: updatedAtField, direction: 'asc' },
  { field: madeFields[0] as Field, direction: 'asc' },
] as const;

export const filesTableOf: Table = {
  name: filesTable,
  fields: [stateField, collectionField, tenantField, principalField, bytesField],
  indexes: [[stateField, updatedAtField], [ownerField], [collectionField], [tenantField], [principalField]],
  unique: [],
  references: [],
  searched: false,
};

export function recordOf({ doc }: Pick<Row, 'doc'>): FileRecord {
  return JSON.parse(doc) as FileRecord;
}

/** @param row the one to change; undefined: it is new */
export function fileChange(
  id: string,
  row: Pick<Row, 'rev' | 'createdAt'> | undefined,
  record: FileRecord | undefined,
  at: number,
): Change {
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const next =
    record === undefined ? null : keptRow(JSON.stringify(record), ownerOf(record), row?.createdAt ?? at, at);
  return { table: filesTable, id, expect, next };
}

/** The document that has the file: `tickets/ID`. */
function ownerOf({ state, collection, document }: FileRecord): string | null {
  return state === 'held' && collection !== undefined && document !== undefined
    ? `${collection}/${document}`
    : null;
}

const prefix = 'file_';
const idPattern = /^file_[0-9a-hjkmnp-tv-z]{26}$/;

export function newFileId(newId: () => string): string {
  return prefix + newId();
}

export function isFileId(text: string): boolean {
  return idPattern.test(text);
}

/** The key of the octets in the place. @param digest `sha-256=:...:` */
export function keyOf({ id, digest }: Pick<FileValue, 'id' | 'digest'>): string {
  return placeKey(id, sha256Of(digest));
}

export function sha256Of(digest: string): Buffer {
  return Buffer.from(digest.slice('sha-256=:'.length, -1), 'base64');
}

/** As the opaque part of a strong entity tag: the digest, which is another for other octets. */
export function tagOf(digest: string): string {
  return sha256Of(digest).toString('base64url');
}
