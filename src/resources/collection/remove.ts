/**
 * DELETE (§4.7), bulk deletion and restoration. A collection with soft deletion hides the resource and sets `deletedAt`; others
 * remove it. Dependants prevent both. A second DELETE is 404 by the graph (http/conduct/target-nodes.ts).
 */

import type { Problem } from '../../http/problem.ts';
import {
  json,
  type OperationDocumentation,
  pascalCase,
  representationOf,
} from '../../kernel/documentation.ts';
import { markId, readMarks } from '../../kernel/operations/deletion-marks.ts';
import type { Ask, Made, Operation, Proposal, Result, Standing } from '../../kernel/resource.ts';
import { bulkDeleteOctets, changeOctets, workRules } from '../../memory/work-rules.ts';
import { type Permission, permission } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import type { Members } from '../../model/json-value.ts';
import type { Principal } from '../../model/principal.ts';
import { deletedCharactersMaxOf } from '../../store/group-commit.ts';
import {
  type Change,
  type EventEntry,
  MemoryUnavailable,
  type NextRow,
  type Row,
} from '../../store/store.ts';
import { madeMembers } from '../document/closed-members.ts';
import { withInstants } from '../document/propose.ts';
import { commitUnit, madeOf, tooLongTogether } from './commit.ts';
import {
  chains,
  deletedStanding,
  type Judgement,
  type MemberStanding,
  mayDelete,
  memberStanding,
  memberValidators,
} from './member.ts';
import { eventOf, timeAfter } from './row.ts';
import { openStanding, type ProposedWrite, type Served } from './served-collection.ts';
import { understandBody, writeFields } from './write-operations.ts';

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
      bulkDeleteOctets(bytes, served.serving.settings.bulkDeleteIdsMax) +
      served.dependantsMax * workRules.dependant.octets,
    idempotent: true,
    asynchronous: true,
    understand: (_ask, bytes, mediaType) => understandBody(served, bytes, mediaType),
    standing: () => openStanding,
    propose: (_ask, _standing, content) => readIds(content, served.serving.settings.bulkDeleteIdsMax),
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

function restoreDocumentation(collection: Collection): OperationDocumentation {
  return {
    id: `restore${pascalCase(collection.name)}`,
    summary: `Restore a deleted document of ${collection.name}`,
    description:
      'The document, its owner and `createdAt` are those from before its deletion. 404 unless it is softly deleted.',
    member: { collection, action: 'delete' },
    codes: [
      'validation_failed',
      ...(collection.unique.length > 0 ? (['unique_taken'] as const) : []),
      ...(collection.references.length > 0 ? (['reference_missing'] as const) : []),
      ...(collection.hooks?.beforeWrite === undefined ? [] : (['refused_by_application'] as const)),
    ],
    gives: { changed: json(representationOf(collection)) },
  };
}

/**
 * POST {member}/restore (§4.7.9): a softly deleted resource is again as it was, for a caller who may read, delete and create it as it was. The
 * write is a creation for the hooks of the collection and for events; the owner and `createdAt` stay.
 */
export function restoreOperation(served: Served): Operation<MemberStanding> {
  const { collection } = served;
  return {
    documentation: restoreDocumentation(collection),
    permission: (principal) => permission(collection.access.delete, 'delete', principal),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    standing: (ask) => deletedStanding(served, ask),
    makesOf: ({ row }) => changeOctets(row),
    act: (ask, { id, row, restsOn }) => {
      if (row === undefined) throw new Error('a restoration requires the row of its resource');
      const fields = withInstants(served.validator, writtenFields(row));
      const { missing, invalid } = served.validator.check(fields);
      // The declaration may have changed since the deletion.
      const errors = [...missing, ...invalid];
      if (errors.length > 0) return { refused: { code: 'validation_failed', errors } };
      return writeFields(served, ask, {
        ...{ action: 'create', id, row, before: undefined, kept: row },
        ...{ fields, restsOn, validated: true },
      });
    },
  };
}

function writtenFields({ doc }: Row): Members {
  const made = new Set(madeMembers);
  return Object.fromEntries(Object.entries(JSON.parse(doc) as Members).filter(([name]) => !made.has(name)));
}
