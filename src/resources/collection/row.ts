/** Builds the stored row of a resource and the event of its change (§2.1, §6). */
import { searchTextOf } from '../../model/collection.ts';
import { type Change as ChangeKind, eventDocument, eventType } from '../../model/event.ts';
import { idFor } from '../../model/id.ts';
import type { EventEntry, NextRow } from '../../store/store.ts';
import {
  buildRepresentation,
  type FieldsOrWritten,
  referencesOf,
  WrittenFields,
} from '../document/representation.ts';
import type { Served } from './served-collection.ts';
import { withComputed } from './server-fields.ts';

export type RowParts = {
  readonly id: string;
  readonly fields: FieldsOrWritten;
  readonly owner: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | null;
};

export function nextRow(served: Pick<Served, 'collection' | 'validator'>, parts: RowParts): NextRow {
  const { collection } = served;
  const fields = withComputed(served, parts.fields);
  const isWritten = fields instanceof WrittenFields;
  return {
    doc: buildRepresentation(collection, { ...parts, fields }),
    owner: parts.owner,
    createdAt: parts.createdAt,
    updatedAt: parts.updatedAt,
    deletedAt: parts.deletedAt,
    search: isWritten ? fields.search : searchTextOf(collection, fields),
    references: isWritten ? fields.references : referencesOf(collection, fields),
  };
}

type EventRow = {
  readonly id: string;
  readonly row: Pick<NextRow, 'doc' | 'owner'>;
  /** The owner before the change; only an import changes it. Absent: the same. */
  readonly formerOwner?: string | null | undefined;
};

/** The member of a former representation that has the owner of then, if that was another. */
export const formerOwnerMember = '$formerOwner';

function formerText(before: string, { row, formerOwner }: EventRow): string {
  if (formerOwner === undefined || formerOwner === null || formerOwner === row.owner) return before;
  return `${before.slice(0, -1)},${JSON.stringify(formerOwnerMember)}:${JSON.stringify(formerOwner)}}`;
}

/** @param before the representation before the change, for subscribers */
export function eventOf(
  served: Pick<Served, 'collection' | 'newId'>,
  kind: ChangeKind,
  of: EventRow,
  at: number,
  before?: string,
): EventEntry {
  const id = idFor('event', served.newId);
  const type = eventType(served.collection.name, kind);
  return {
    id,
    type,
    collection: served.collection.name,
    owner: of.row.owner,
    document: of.id,
    former: kind === 'updated' && before !== undefined ? formerText(before, of) : undefined,
    doc: eventDocument(id, type, at, of.row.doc),
    createdAt: at,
    before,
  };
}

/** `updatedAt` never moves backwards, even if the clock does. */
export function timeAfter(clock: () => number, before: number): number {
  return Math.max(clock(), before);
}
