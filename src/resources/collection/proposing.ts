/**
 * Create, patch and replace operations of a collection, and how content becomes fields: on the event loop if content
 * and resource are short, otherwise on a thread (content-threads). Both give the same results.
 */
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Ask, Operation, Proposal, Result, Standing, Understood } from '../../kernel/resource.ts';
import { changeOctets } from '../../memory/work-rules.ts';
import { permission } from '../../model/access.ts';
import { type Principal, principalIdOf } from '../../model/principal.ts';
import { type Change, type MaybePromise, type Row, whenKnown } from '../../store/store.ts';
import type { CollectionThreads } from '../content-threads/content-threads.ts';
import { CheckedContent, type Outcome, type ProposalTarget, propose } from '../content-threads/job.ts';
import { idFault } from '../document/chosen-id.ts';
import type { Proposed } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import { closingsFor } from '../document/withheld.ts';
import { commitUnit, leaveAsItIs, madeOf } from './commit.ts';
import { bodyTypes, patchTypes } from './content.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import type { ProposedWrite, Served } from './served.ts';
import { withStamps } from './stamp.ts';
import {
  chains,
  closedTo,
  type MemberStanding,
  mayCreate,
  mayMove,
  memberStanding,
  memberValidators,
  replacedStanding,
  tenantProblem,
} from './standing.ts';

export type FieldsProposal = Proposal & {
  readonly fields: FieldsOrWritten;
  /** The resource already has these fields. */
  readonly unchanged?: boolean | undefined;
};

/** Parses the content, or only checks long content on a thread and keeps its octets. */
export function understandContent(
  served: Served,
  ask: Ask,
  change: ProposalTarget['change'],
  bytes: Uint8Array,
  mediaType: MediaType,
): MaybePromise<Understood<unknown>> {
  const { threads } = served;
  if (threads !== undefined && bytes.length > threads.inlineBytesMax) {
    const content = new CheckedContent(bytes, mediaType);
    return whenKnown(
      threads.carryOut({ kind: 'check', change, content: { bytes, mediaType } }, ask.party),
      (outcome) => (outcome.ok ? { ok: true, value: content } : outcome),
    );
  }
  if (change === 'patch') return served.parsePatch(bytes, mediaType);
  return served.parse(bytes, mediaType);
}

/** @param content as returned by `understandContent` */
export function proposeFields(
  served: Served,
  ask: Ask,
  target: ProposalTarget & { readonly owner: string | null },
  content: unknown,
): MaybePromise<FieldsProposal> {
  const { change, id, current, owner } = target;
  const { threads, collection } = served;
  const { principal } = ask;
  if (threads === undefined || !isLong(threads, target, content)) {
    return proposalOf(propose(served, target, { principal, owner }, content));
  }
  const given =
    content instanceof CheckedContent
      ? { bytes: content.bytes, mediaType: content.mediaType }
      : { value: content };
  const writer = { principal, owner, closings: closingsFor(collection, principal) };
  const job = { kind: 'propose', target: { change, id, current }, writer, content: given } as const;
  return whenKnown(threads.carryOut(job, ask.party), writtenOf);
}

function isLong(
  { inlineBytesMax }: CollectionThreads,
  { current }: ProposalTarget,
  content: unknown,
): boolean {
  if (content instanceof CheckedContent) return true;
  return (current?.length ?? 0) * growthOf(content) > inlineBytesMax;
}

/** More copies are not counted: with 16, the product is long for any document. */
const copiesMax = 16;

/** Bounds the growth of the resource by a JSON Patch: each move adds its length once, each copy may double it. */
function growthOf(content: unknown): number {
  if (typeof content !== 'object' || content === null || !('value' in content)) return 1;
  if (!Array.isArray(content.value)) return 1;
  let moves = 1;
  let copies = 0;
  for (const operation of content.value) {
    if (operation?.op === 'move') moves += 1;
    else if (operation?.op === 'copy') copies += 1;
  }
  return moves * 2 ** Math.min(copies, copiesMax);
}

function proposalOf(proposed: Proposed): FieldsProposal {
  if (!proposed.ok) return { problem: proposed.problem, fields: {} };
  return { problem: null, fields: proposed.fields, unchanged: proposed.unchanged };
}

function writtenOf(outcome: Outcome): FieldsProposal {
  if (!outcome.ok) return { problem: outcome.problem, fields: {} };
  if (outcome.fields === undefined) throw new Error('a content thread returned neither a problem nor fields');
  return { problem: null, fields: new WrittenFields(outcome.fields), unchanged: outcome.unchanged };
}

const open: Standing = { exists: true, visible: true, permitted: true };

/** POST to a collection (§4.4): 201 with Location and the representation. The server assigns the id. */
export function createOperation(served: Served): Operation<Standing, unknown, FieldsProposal> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.create, 'create', principal),
    contentTypes: bodyTypes(collection),
    answersForms: true,
    idempotent: true,
    asynchronous: true,
    longContent: served.longContent,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'create', bytes, mediaType),
    standing: () => open,
    propose: (ask, _standing, content) => {
      const owner = makersOwner(served, ask.principal);
      return proposeFields(served, ask, { change: 'create', id: '', current: undefined, owner }, content);
    },
    // The target of a POST is the collection, whose representation is its list (RFC 9110 §13.1).
    validators: async (ask) => ({ tag: await served.listing.tag(ask.principal), modifiedAt: null }),
    act: (ask, _standing, proposal) => {
      const write = { action: 'create', id: served.newId(), before: undefined } as const;
      return withHooks(served, ask, { ...write, fields: proposal?.fields ?? {} }, create);
    },
  };
}

function create(served: Served, ask: Ask, { id }: ProposedWrite, fields: FieldsOrWritten) {
  const { collection } = served;
  const at = served.clock();
  const row = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: undefined, at }),
    owner: makersOwner(served, ask.principal),
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
  });
  const location = `${served.path}/${id}`;
  const result = { created: true, location, modifiedAt: at, validated: true };
  const made = madeOf(served, ask.principal, row, result);
  const changes = [{ table: collection.name, id, expect: { absent: true }, next: row } as const];
  const events = [eventOf(served, 'created', { id, row }, at)];
  return whenKnown(mayCreate(served, ask.principal, row), ({ permitted, restsOn }) =>
    permitted ? commitUnit(served, ask, { changes, events }, made, [], restsOn) : closedTo(ask.principal),
  );
}

/** Makes a write, in one unit with what the hooks of the collection write. */
function withHooks<W extends ProposedWrite & { readonly fields: FieldsOrWritten }>(
  served: Served,
  ask: Ask,
  write: W,
  make: (served: Served, ask: Ask, write: W, fields: FieldsOrWritten) => MaybePromise<Result>,
): MaybePromise<Result> {
  const { logic } = served;
  if (logic === undefined) return make(served, ask, write, write.fields);
  return logic.write(served, ask, [write], (within, own, [fields = write.fields]) =>
    make(within, own, write, fields),
  );
}

/** The owner of a new resource of this collection. */
export function makersOwner({ owner }: Pick<Served, 'owner'>, principal: Principal): string | null {
  return owner === undefined ? principalIdOf(principal) : owner;
}

/**
 * PATCH (§4.6; RFC 5789): a merge patch or a JSON Patch. It is applied to the current resource and committed only if
 * that has not changed, so a patch is atomic and two patches never overwrite each other.
 */
export function patchOperation(served: Served): Operation<MemberStanding, unknown, FieldsProposal> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.update, 'update', principal),
    contentTypes: patchTypes,
    idempotent: true,
    asynchronous: true,
    longContent: served.longContent,
    matchRequired: collection.requireMatch,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'patch', bytes, mediaType),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    chains: chains(served),
    standing: (ask) => memberStanding(served, ask, 'update'),
    makesOf: ({ row }) => changeOctets(row),
    propose: (ask, { id, row }, content) => {
      if (content === undefined || row === undefined)
        throw new Error('a patch requires the row of its resource');
      const { doc: current, owner } = row;
      return proposeFields(served, ask, { change: 'patch', id, current, owner }, content);
    },
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing, proposed) =>
      proposed?.unchanged === true
        ? leaveAsItIs(served, ask, standing, true)
        : withHooks(served, ask, writeOfPatch(standing, proposed?.fields ?? {}), update),
  };
}

type Patch = ProposedWrite & { readonly fields: FieldsOrWritten; readonly restsOn: readonly Change[] };

function writeOfPatch({ id, row, restsOn }: MemberStanding, fields: FieldsOrWritten): Patch {
  return { action: 'update', id, before: row, fields, restsOn };
}

function update(
  served: Served,
  ask: Ask,
  { before: row, restsOn }: Patch,
  fields: FieldsOrWritten,
): MaybePromise<Result> {
  if (row === undefined) throw new Error('a patch requires the row of its resource');
  return commitFields(served, ask, { row, restsOn, fields, event: 'updated' });
}

/** The next fields of a row, and the event that says whether its resource was there for readers. */
type NextFields = Pick<MemberStanding, 'restsOn'> & {
  readonly row: Row;
  readonly fields: FieldsOrWritten;
  readonly event: 'created' | 'updated';
};

/** Gives a row other fields and keeps its owner and `createdAt`, if the caller may update or create it so. */
export function commitFields(
  served: Served,
  ask: Ask,
  { row, restsOn, fields, event }: NextFields,
): MaybePromise<Result> {
  const { id } = row;
  const at = timeAfter(served.clock, row.updatedAt);
  const next = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: row.doc, at }),
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: at,
    deletedAt: null,
  });
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const result = { created: false, location, modifiedAt: at, validated: true };
  const made = madeOf(served, ask.principal, next, result);
  const isUpdate = event === 'updated';
  const changes = [{ table: served.collection.name, id, expect: { rev: row.rev }, next }];
  const events = [eventOf(served, event, { id, row: next }, at, isUpdate ? row.doc : undefined)];
  const judgement = isUpdate
    ? mayMove(served, ask.principal, row, next)
    : mayCreate(served, ask.principal, next);
  return whenKnown(judgement, (found) =>
    found.permitted
      ? commitUnit(served, ask, { changes, events }, made, [row], [...restsOn, ...found.restsOn])
      : closedTo(ask.principal),
  );
}

/**
 * PUT (§4.5): replaces the whole resource, or creates it if the collection allows that. The response has no validators,
 * because the server adds members to the content (RFC 9110 §9.3.4).
 */
export function replaceOperation(served: Served): Operation<MemberStanding, unknown, FieldsProposal> {
  const { collection } = served;
  return {
    permission: (principal) => {
      const update = permission(collection.access.update, 'update', principal);
      if (!collection.putCreates || update === 'granted') return update;
      const create = permission(collection.access.create, 'create', principal);
      return update === 'denied' && create === 'denied' ? 'denied' : 'depends';
    },
    contentTypes: bodyTypes(collection),
    idempotent: true,
    asynchronous: true,
    longContent: served.longContent,
    createsHere: collection.putCreates,
    matchRequired: collection.requireMatch,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'replace', bytes, mediaType),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    chains: chains(served),
    standing: (ask) => replacedStanding(served, ask),
    makesOf: ({ row }) => changeOctets(row),
    propose: (ask, standing, content) => proposal(served, ask, standing, content),
    validators: (_ask, standing) => memberValidators(standing),
    act: async (ask, standing, proposed) =>
      proposed?.unchanged === true
        ? leaveAsItIs(served, ask, standing, false)
        : withHooks(served, ask, writeOfPut(standing, proposed?.fields ?? {}), put),
  };
}

function proposal(
  served: Served,
  ask: Ask,
  standing: MemberStanding,
  content: unknown,
): MaybePromise<FieldsProposal> {
  const message = standing.exists ? undefined : idFault(served.collection, standing.id);
  if (message !== undefined) {
    return { problem: { code: 'validation_failed', errors: [{ pointer: '/id', message }] }, fields: {} };
  }
  const current = standing.exists ? standing.row?.doc : undefined;
  const owner = current === undefined ? makersOwner(served, ask.principal) : (standing.row?.owner ?? null);
  return proposeFields(served, ask, { change: 'replace', id: standing.id, current, owner }, content);
}

type Put = Patch & { readonly row: Row | undefined };

function writeOfPut({ id, exists, row, restsOn }: MemberStanding, fields: FieldsOrWritten): Put {
  const before = exists ? row : undefined;
  return { action: exists ? 'update' : 'create', id, before, fields, row, restsOn };
}

function put(
  served: Served,
  ask: Ask,
  { id, row, before: replaced, restsOn }: Put,
  fields: FieldsOrWritten,
): MaybePromise<Result> {
  const at = timeAfter(served.clock, row?.updatedAt ?? 0);
  const next = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: replaced?.doc, at }),
    owner: replaced === undefined ? makersOwner(served, ask.principal) : replaced.owner,
    createdAt: replaced?.createdAt ?? at,
    updatedAt: at,
    deletedAt: null,
  });
  const created = replaced === undefined;
  const moved = created ? tenantProblem(served, row, next) : undefined;
  if (moved !== undefined) return { refused: moved };
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const made = madeOf(served, ask.principal, next, { created, location, modifiedAt: at, validated: false });
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const kind = made.created ? 'created' : 'updated';
  const events = [eventOf(served, kind, { id, row: next }, at, replaced?.doc)];
  const changes = [{ table: served.collection.name, id, expect, next }];
  const judgement = created
    ? mayCreate(served, ask.principal, next)
    : mayMove(served, ask.principal, replaced, next);
  return whenKnown(judgement, (found) =>
    found.permitted
      ? commitUnit(served, ask, { changes, events }, made, [replaced], [...restsOn, ...found.restsOn])
      : closedTo(ask.principal),
  );
}
