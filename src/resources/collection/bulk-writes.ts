/**
 * The writes of a request on many documents (§4.19): what each item or document would become, by the rules and rights of single requests, and
 * one unit of them all.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { answers } from '../../http/conduct/answers.ts';
import type { Problem } from '../../http/problem.ts';
import type { Ask, Made, Result } from '../../kernel/resource.ts';
import type { Field, Scalar } from '../../model/field.ts';
import { allOf, byId, equals } from '../../model/filter.ts';
import { idFault } from '../../model/id.ts';
import { documentKey } from '../../store/page-of-rows.ts';
import { type Change, type EventEntry, type MaybePromise, type Row, whenKnown } from '../../store/store.ts';
import type { BulkItem, GivenMembers, How } from '../document/bulk-content.ts';
import { fixedFaults } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import { commitUnit, documentTooLong, takenProblem } from './commit.ts';
import { closedTo, type Judgement, mayCreate, mayMove, replacedStanding, tenantProblem } from './member.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import type { ProposedWrite, Served } from './served-collection.ts';
import { withStamps } from './server-fields.ts';
import { makersOwner, proposeFields } from './write-operations.ts';

export type ItemResult =
  | { readonly status: number; readonly id: string; readonly unchanged?: true }
  | { readonly problem: Problem };

export type ItemWrite = ProposedWrite & {
  readonly fields: FieldsOrWritten;
  readonly index: number;
  readonly given: GivenMembers;
  /** The row to replace, softly deleted or not. */
  readonly row: Row | undefined;
  readonly isImport: boolean;
  /** Expectations of rows beyond references, by which the caller may change the row. */
  readonly restsOn?: readonly Change[];
};

/** What to do with an item, with the files that it names. */
export async function planItem(
  served: Served,
  ask: Ask,
  index: number,
  item: BulkItem,
  how: How,
): Promise<ItemWrite | ItemResult> {
  const { change } = item;
  const planned =
    change === undefined
      ? await planFields(served, index, item, how)
      : await planChange(served, ask, index, { ...item, change }, how);
  if (served.files === undefined || !('action' in planned)) return planned;
  const settled = await served.files.settle(served, ask, planned);
  return 'refused' in settled ? { problem: settled.refused } : { ...planned, fields: settled.fields };
}

/** A write of the document that the item names, or of a new one. */
async function planChange(
  served: Served,
  ask: Ask,
  index: number,
  item: BulkItem & Required<Pick<BulkItem, 'change'>>,
  how: How,
): Promise<ItemWrite | ItemResult> {
  const { mode, key, takesGiven: isImport = false } = how;
  const { collection } = served;
  const { value, names } = item.change;
  const id = typeof names === 'string' ? names : await idOfKey(served, key ?? [], names);
  const isCreating = mode !== 'merge';
  if (id === undefined)
    return isCreating ? planFields(served, index, item, how) : { problem: { code: 'not_found' } };
  const own = { ...ask, captures: [id], isChained: false };
  const found = await replacedStanding(served, own);
  const { exists, visible, permitted, row, restsOn } = found;
  if (!exists && isCreating && key !== undefined) return planFields(served, index, item, how);
  if (!exists && !(isCreating && (collection.putCreates || isImport)))
    return { problem: { code: 'not_found' } };
  // In the words of a creation, which reveal no more of a document that the caller may not see.
  if (!visible)
    return { problem: key === undefined ? { code: 'not_found' } : takenProblem(key.map(({ name }) => name)) };
  if (!permitted) return { problem: closedTo(ask.principal).refused };
  if (!exists) {
    const message = idFault(collection, id);
    if (message !== undefined)
      return { problem: { code: 'validation_failed', errors: [{ pointer: '/id', message }] } };
    if ('problem' in item) return item;
    const fields = new WrittenFields(item.fields);
    return {
      ...{ action: 'create', id, fields, index, given: item.given, before: undefined },
      ...{ row, isImport, restsOn },
    };
  }
  if (row === undefined) throw new Error('a document that exists has a row');
  if (collection.requireMatch) return { problem: { code: 'precondition_required' } };
  const change = mode === 'replace' ? 'replace' : 'patch';
  const content = mode === 'replace' ? value : { format: 'merge-patch', value };
  const target = { change, id, current: row.doc, owner: row.owner } as const;
  const { problem, fields, unchanged: isUnchanged } = await proposeFields(served, ask, target, content);
  if (problem !== null) return { problem };
  if (isUnchanged === true) return unchanged(id);
  return {
    ...{ action: 'update', id, fields, index, given: {}, before: row },
    row,
    isImport: false,
    restsOn,
  };
}

export async function idOfKey(
  { store, collection: { name: table } }: Served,
  key: readonly Field[],
  values: readonly Scalar[],
): Promise<string | undefined> {
  const filter = allOf(key.map((field, at) => equals(field, values[at] ?? null)));
  const { docs } = await store.plan({ table, filter, sort: byId, limit: 1 }).page({ from: 'start' });
  return docs[0] === undefined ? undefined : String(documentKey(byId, docs[0])[0]);
}

/** A write, or a result without one. */
async function planFields(
  served: Served,
  index: number,
  item: BulkItem,
  { import: options, takesGiven = false }: How,
): Promise<ItemWrite | ItemResult> {
  if ('problem' in item) return item;
  const fields = new WrittenFields(item.fields);
  const { id } = item.given;
  const planned = { fields, index, given: item.given, isImport: options !== undefined || takesGiven };
  if (id === undefined || (item.change !== undefined && !takesGiven))
    return { ...planned, action: 'create', id: served.newId(), before: undefined, row: undefined };
  const reading = served.store.read(served.collection.name, id);
  const row = reading instanceof Promise ? await reading : reading;
  const before = row?.deletedAt === null ? row : undefined;
  if (before !== undefined && options?.existing === 'skip') return unchanged(id);
  if (before !== undefined && options?.existing !== 'update') {
    const message = 'id is already in use';
    const errors = [{ pointer: '/id', message: 'already in use' }];
    return { problem: { code: 'unique_taken', message, errors } };
  }
  const fixed = before === undefined ? [] : fixedFaults(served, before.doc, item.fields.text);
  if (fixed.length > 0) return { problem: { code: 'field_unpatchable', errors: fixed } };
  return { ...planned, action: before === undefined ? 'create' : 'update', id, before, row };
}

/** Only administrators import. */
const anyone: Judgement = { permitted: true, restsOn: [] };

type Built =
  | { readonly change: Change; readonly event: EventEntry; readonly restsOn: readonly Change[] }
  | 'unchanged'
  | { readonly problem: Problem };

export function buildItem(
  served: Served,
  ask: Ask,
  write: ItemWrite,
  fields: FieldsOrWritten,
): MaybePromise<Built> {
  const { id, given, before, row } = write;
  const at = timeAfter(served.clock, row?.updatedAt ?? 0);
  const createdAt = given.createdAt ?? before?.createdAt ?? at;
  const next = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: before?.doc, at, isImport: write.isImport }),
    owner: given.owner ?? (given.owner === null ? null : ownerOfWrite(served, ask, before)),
    createdAt,
    updatedAt: given.updatedAt ?? Math.max(at, createdAt),
    deletedAt: null,
  });
  if (before !== undefined && before.doc === next.doc && before.owner === next.owner) return 'unchanged';
  if (next.doc.length > served.documentCharactersMax) return { problem: documentTooLong(served) };
  const moved = before === undefined ? tenantProblem(served, row, next) : undefined;
  if (moved !== undefined) return { problem: moved };
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const kind = before === undefined ? 'created' : 'updated';
  const judgement =
    before === undefined
      ? mayCreate(served, ask.principal, next)
      : write.isImport
        ? anyone
        : mayMove(served, ask.principal, before, next);
  return whenKnown(judgement, ({ permitted, restsOn }) =>
    permitted
      ? {
          change: { table: served.collection.name, id, expect, next },
          event: eventOf(served, kind, { id, row: next, formerOwner: before?.owner }, at, before?.doc),
          restsOn: [...(write.restsOn ?? []), ...restsOn],
        }
      : { problem: closedTo(ask.principal).refused },
  );
}

function ownerOfWrite(served: Served, ask: Ask, before: Row | undefined): string | null {
  return before === undefined ? makersOwner(served, ask.principal) : before.owner;
}

type Together = {
  readonly alone: Alone;
  /** The problem of a write as one of the request. */
  readonly refused: (write: ItemWrite, problem: Problem) => Problem;
  readonly onUnchanged: (write: ItemWrite) => void;
  /** Called once all writes are known. */
  readonly made: () => Made;
};

/** Makes the writes, with what the hooks of the collection write, in one unit. */
export async function commitTogether(
  served: Served,
  ask: Ask,
  writes: readonly ItemWrite[],
  { alone, refused, onUnchanged, made }: Together,
): Promise<Result> {
  const make = async (within: Served, own: Ask, fields: readonly FieldsOrWritten[]): Promise<Result> => {
    const changes: Change[] = [];
    const events: EventEntry[] = [];
    const restsOn: Change[] = [];
    for (const [at, write] of writes.entries()) {
      await served.turns.next();
      const building = buildItem(within, own, write, fields[at] ?? write.fields);
      const built = building instanceof Promise ? await building : building;
      if (built === 'unchanged') onUnchanged(write);
      else if ('problem' in built) return { refused: refused(write, built.problem) };
      else {
        changes.push(built.change);
        events.push(built.event);
        restsOn.push(...built.restsOn);
      }
    }
    const before = new Map(writes.map(({ id, before: row }) => [id, row]));
    await nextTurn();
    return commitUnit(
      within,
      own,
      { changes, events },
      made(),
      changes.map(({ id }) => before.get(id)),
      restsOn,
    );
  };
  if (served.logic === undefined || writes.length === 0) {
    const fields = writes.map((write) => write.fields);
    return alone(() => make(served, ask, fields));
  }
  return served.logic.write(served, ask, writes, make);
}

/** What a request on many documents answers: a report, which is no representation. */
export function madeReport(doc: string): Made {
  return { outcome: 'made', created: false, location: null, doc, modifiedAt: null, validated: false };
}

export function unchanged(id: string): ItemResult {
  return { status: answers.changed.status, id, unchanged: true };
}

export type Alone = (make: () => Promise<Result>) => Promise<Result>;

/** Lets one make its unit after the other. The rows of many at once kept the garbage collector busy for 100 ms of one turn. */
export function createQueue(): Alone {
  let last: Promise<unknown> = Promise.resolve();
  return (make) => {
    const made = last.then(make);
    last = made.catch(() => undefined);
    return made;
  };
}
