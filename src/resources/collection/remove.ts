/**
 * DELETE (§4.7) and bulk deletion. A collection with soft deletion hides the resource and sets `deletedAt`; others
 * remove it. Dependants prevent both.
 */
import type { Problem } from '../../http/problem.ts';
import { markId, readMarks } from '../../kernel/operations/deletion-marks.ts';
import type { Ask, Made, Operation, Proposal, Result, Standing } from '../../kernel/resource.ts';
import { bulkDeleteOctets, changeOctets, workRules } from '../../memory/work-rules.ts';
import { type Permission, permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import { deletedCharactersMaxOf } from '../../store/group-commit.ts';
import {
  type Change,
  type EventEntry,
  MemoryUnavailable,
  type NextRow,
  type Row,
} from '../../store/store.ts';
import { commitUnit, madeOf, tooLongTogether } from './commit.ts';
import { understandBody } from './content.ts';
import { eventOf, timeAfter } from './row.ts';
import type { ProposedWrite, Served } from './served.ts';
import {
  chains,
  type Judgement,
  type MemberStanding,
  mayDelete,
  memberStanding,
  memberValidators,
} from './standing.ts';

export function removeOperation(served: Served): Operation<MemberStanding> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.delete, 'delete', principal),
    idempotent: true,
    asynchronous: true,
    matchRequired: collection.requireMatch,
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    chains: chains(served),
    makes: () => served.dependantsMax * workRules.dependant.octets,
    standing: (ask) => memberStanding(served, ask, 'delete'),
    makesOf: ({ row }) => changeOctets(row),
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing) => {
      const { logic } = served;
      if (logic === undefined) return remove(served, ask, standing);
      return logic.write(served, ask, [deletionOf(standing)], (within, own) => remove(within, own, standing));
    },
  };
}

function deletionOf({ id, row }: { readonly id: string; readonly row: Row | undefined }): ProposedWrite {
  return { action: 'delete', id, before: row, fields: undefined };
}

function remove(served: Served, ask: Ask, { id, row, restsOn }: MemberStanding): Promise<Result> {
  const { collection } = served;
  if (row === undefined) throw new Error('a deletion requires the row of its resource');
  const removed = removal(served, row);
  const gone = { created: false, location: null, modifiedAt: null, validated: false };
  const made = madeOf(served, ask.principal, { doc: removed.doc, owner: row.owner }, gone);
  const changes = [{ table: collection.name, id, expect: { rev: row.rev }, next: removed.next }];
  const events = [
    eventOf(served, 'deleted', { id, row: { doc: removed.doc, owner: row.owner } }, removed.at, row.doc),
  ];
  return commitUnit(served, ask, { changes, events }, made, [row], restsOn);
}

/** Returns the row after the deletion, and the representation for the response and the event. */
export function removal(
  served: Served,
  row: Row,
): { readonly next: NextRow | null; readonly doc: string; readonly at: number } {
  const at = timeAfter(served.clock, row.updatedAt);
  if (!served.collection.softDelete) return { next: null, doc: row.doc, at };
  const doc = JSON.stringify({
    ...(JSON.parse(row.doc) as Record<string, unknown>),
    updatedAt: new Date(at).toISOString(),
    deletedAt: new Date(at).toISOString(),
  });
  const next = {
    doc,
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: at,
    deletedAt: at,
    search: null,
    references: [],
  };
  return { next, doc, at };
}

type Ids = Proposal & { readonly ids: readonly string[] };

const open: Standing = { exists: true, visible: true, permitted: true };

/**
 * POST {collection}/bulk-delete (§2.4, §4.4.4): in one unit, deletes the named resources that exist and that the
 * principal may delete, and returns their number. Ids that the principal may not see or delete do not count, like
 * missing ones, so the count reveals nothing about other resources.
 *
 * @param permitted decides who may call it; each resource is checked individually
 */
export function bulkDeleteOperation(
  served: Served,
  permitted: (principal: Principal) => Permission = (principal) =>
    permission(served.collection.access.delete, 'delete', principal),
): Operation<Standing, unknown, Ids> {
  return {
    permission: permitted,
    contentTypes: ['application/json'],
    makes: (bytes) =>
      bulkDeleteOctets(bytes, served.bulkDeleteIdsMax) + served.dependantsMax * workRules.dependant.octets,
    idempotent: true,
    asynchronous: true,
    understand: (_ask, bytes, mediaType) => understandBody(served, bytes, mediaType),
    standing: () => open,
    propose: (_ask, _standing, content) => readIds(content, served.bulkDeleteIdsMax),
    act: async (ask, _standing, proposal) => {
      const removable = await removableRows(served, ask, proposal?.ids ?? []);
      if ('refused' in removable) return removable;
      const { rows, restsOn } = removable;
      const { logic } = served;
      if (logic === undefined) return removeAll(served, ask, rows, restsOn);
      const writes = rows.map((row) => deletionOf({ id: row.id, row }));
      return logic.write(served, ask, writes, (within, own) => removeAll(within, own, rows, restsOn));
    },
  };
}

type Removable = { readonly rows: readonly Row[]; readonly restsOn: readonly Change[] };

async function removableRows(
  served: Served,
  ask: Ask,
  ids: readonly string[],
): Promise<Removable | { readonly refused: Problem }> {
  const rows: Row[] = [];
  const restsOn: Change[] = [];
  const charactersMax = deletedCharactersMaxOf(served.store);
  let characters = 0;
  for (const id of new Set(ids)) {
    await served.turns.next();
    const row = await served.store.read(served.collection.name, id);
    if (row === undefined) continue;
    const found = await mayStillDelete(served, ask, row);
    if (!found.permitted) continue;
    characters += row.doc.length;
    if (characters > charactersMax) return { refused: tooLongTogether('to delete', charactersMax) };
    holdMore(ask, octetsOfDeleted * row.doc.length - workRules.deletedId.octets);
    rows.push(row);
    restsOn.push(...found.restsOn);
  }
  return { rows, restsOn };
}

/** A deletion in several units was judged before the first of them, and marked what it takes. */
async function mayStillDelete(served: Served, { principal, operation }: Ask, row: Row): Promise<Judgement> {
  if (operation?.state !== 'decided') return mayDelete(served, principal, row);
  const id = markId({ table: served.collection.name, id: row.id });
  const marks = await readMarks(served.store, [id]);
  return { permitted: marks.get(id)?.owner === operation.id, restsOn: [] };
}

/** Octets of the row, event and unit of a deletion for each character of the document. */
const octetsOfDeleted = 4;

/** The charge for an id covers a document of some kilobytes; the rest of a longer one is charged as it is read. */
function holdMore({ request }: Ask, octets: number): void {
  if (octets <= 0 || request.memory?.hold(octets) !== false) return;
  throw new MemoryUnavailable('the memory budget for documents to delete is used up', {
    retryAfterSeconds: 1,
  });
}

function removeAll(
  served: Served,
  ask: Ask,
  rows: readonly Row[],
  restsOn: readonly Change[],
): Promise<Result> {
  const changes: Change[] = [];
  const events: EventEntry[] = [];
  for (const row of rows) {
    const { next, doc, at } = removal(served, row);
    changes.push({ table: served.collection.name, id: row.id, expect: { rev: row.rev }, next });
    events.push(eventOf(served, 'deleted', { id: row.id, row: { doc, owner: row.owner } }, at, row.doc));
  }
  const made: Made = {
    outcome: 'made',
    created: false,
    location: null,
    doc: JSON.stringify({ deleted: changes.length }),
    modifiedAt: null,
    validated: false,
  };
  return commitUnit(served, ask, { changes, events }, made, rows, restsOn);
}

function readIds(content: unknown, idsMax: number): Ids {
  const refuse = (code: 'field_missing' | 'validation_failed', message: string, pointer = '/ids'): Ids => ({
    problem: { code, errors: [{ pointer, message }] },
    ids: [],
  });
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return refuse('validation_failed', 'must be an object with ids', '');
  }
  if (!Object.hasOwn(content, 'ids')) return refuse('field_missing', 'is required');
  const unknown = Object.keys(content).find((name) => name !== 'ids');
  if (unknown !== undefined) return refuse('validation_failed', 'unknown property', `/${unknown}`);
  const { ids } = content as { ids: unknown };
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) {
    return refuse('validation_failed', 'must be an array of strings');
  }
  if (ids.length > idsMax) return refuse('validation_failed', `must have at most ${idsMax} ids`);
  return { problem: null, ids };
}
