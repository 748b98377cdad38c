/** Builds the stored row of a resource and the event of its change (§2.1, §6). */
import { searchText } from '../../model/collection.ts';
import { type Change as ChangeKind, eventDocument, eventType } from '../../model/event.ts';
import type { EventEntry, NextRow } from '../../store/store.ts';
import { referencesOf } from '../document/references.ts';
import { buildRepresentation, type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import type { Served } from './served.ts';

export type RowParts = {
  readonly id: string;
  readonly fields: FieldsOrWritten;
  readonly owner: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | null;
};

export function nextRow(served: Served, parts: RowParts): NextRow {
  const { collection } = served;
  const fields = withComputed(served, parts.fields);
  const isWritten = fields instanceof WrittenFields;
  return {
    doc: buildRepresentation(collection, { ...parts, fields }),
    owner: parts.owner,
    createdAt: parts.createdAt,
    updatedAt: parts.updatedAt,
    deletedAt: parts.deletedAt,
    search: isWritten ? fields.search : searchText(collection.searchFields, fields),
    references: isWritten ? fields.references : referencesOf(collection, fields),
  };
}

/** The fields with those that are computed from them. A value that does not fit its schema is a fault of the application. */
function withComputed(
  { collection, validator }: Pick<Served, 'collection' | 'validator'>,
  fields: FieldsOrWritten,
): FieldsOrWritten {
  const { computed, name: of } = collection;
  if (computed === undefined) return fields;
  const given = fields instanceof WrittenFields ? (JSON.parse(fields.text) as object) : fields;
  const whole: Record<string, unknown> = { ...given };
  for (const name of computed.keys()) delete whole[name];
  const own = { ...whole };
  for (const [name, compute] of computed) {
    try {
      const value: unknown = compute({ ...own } as never);
      if (value !== undefined) whole[name] = value;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`the computed field ${name} of ${of} failed: ${message}`, { cause: error });
    }
  }
  const { missing, invalid } = validator.check(whole);
  const [fault] = [...missing, ...invalid];
  if (fault !== undefined)
    throw new Error(`a computed field of ${of} does not fit its schema: ${fault.pointer} ${fault.message}`);
  return whole;
}

/** @param before the representation before the change, for subscribers */
export function eventOf(
  served: Served,
  kind: ChangeKind,
  row: { readonly doc: string; readonly owner: string | null },
  at: number,
  before?: string,
): EventEntry {
  const id = `evt_${served.newId()}`;
  const type = eventType(served.collection.name, kind);
  return {
    id,
    type,
    collection: served.collection.name,
    owner: row.owner,
    doc: eventDocument(id, type, at, row.doc),
    createdAt: at,
    before,
  };
}

/** `updatedAt` never moves backwards, even if the clock does. */
export function timeAfter(clock: () => number, before: number): number {
  return Math.max(clock(), before);
}
