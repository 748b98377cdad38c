/**
 * Create, patch and replace operations of a collection (§4.4 to §4.6), the content that they accept, and how it becomes
 * fields: on the event loop if content and resource are short, otherwise on a thread (content-threads). Both give the
 * same results.
 */

import type { Problem } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Parsed } from '../../kernel/content/content-shape.ts';
import type { Ask, Operation, Proposal, Result, Standing, Understood } from '../../kernel/resource.ts';
import { changeOctets } from '../../memory/work-rules.ts';
import { permission } from '../../model/access.ts';
import type { BodyFormat, Collection } from '../../model/collection.ts';
import { idFault } from '../../model/id.ts';
import { type Principal, principalIdOf } from '../../model/principal.ts';
import type { Change, MaybePromise, Row } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import type { CollectionThreads } from '../content-threads/content-threads.ts';
import { CheckedContent, type Outcome, type ProposalTarget, propose } from '../content-threads/job.ts';
import { closingsFor } from '../document/closed-members.ts';
import { isUnchanged } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import { commitUnit, leaveAsItIs, madeOf } from './commit.ts';
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
} from './member.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import { openStanding, type ProposedWrite, ReceivedForm, type Served } from './served-collection.ts';
import { withStamps } from './server-fields.ts';

export type FieldsProposal = Proposal & {
  readonly fields: FieldsOrWritten;
  /** The resource already has these fields. */
  readonly unchanged?: boolean | undefined;
};

/** Parses the content, or only checks long content on a thread and keeps its octets. */
function understandContent(
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

const multipart = 'multipart/form-data';

/** Of a collection with files: a form is taken as it arrives. */
function formStages(
  served: Served,
  isPatch = false,
): Pick<Operation<Standing, unknown>, 'receive' | 'receives' | 'receivedBytesMax' | 'discard'> {
  const { files, collection, serving } = served;
  if (files === undefined || (!isPatch && !collection.formats.has('multipart'))) return {};
  return {
    receives: ({ type }) => type === multipart,
    receive: (ask, content, mediaType) => files.receiveForm(served, ask, { content, mediaType, isPatch }),
    receivedBytesMax: files.formBytesMax(collection, serving.settings.bodyBytesMax),
    discard: (content) => {
      if (content instanceof ReceivedForm) content.discard();
    },
  };
}

/** @param content as returned by `understandContent` or `receiveForm` */
export function proposeFields(
  served: Served,
  ask: Ask,
  target: ProposalTarget & { readonly owner: string | null },
  content: unknown,
): MaybePromise<FieldsProposal> {
  if (content instanceof ReceivedForm) {
    return content
      .read()
      .then((read) =>
        read.ok ? proposeFields(served, ask, target, read.value) : { problem: read.problem, fields: {} },
      );
  }
  const { change, id, current, owner } = target;
  const { threads, collection } = served;
  const { principal } = ask;
  if (threads === undefined || !isLong(threads, target, content)) {
    const proposed = propose(served, target, { principal, owner }, content);
    return proposed.ok
      ? { problem: null, fields: proposed.fields, unchanged: proposed.unchanged }
      : { problem: proposed.problem, fields: {} };
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

function writtenOf(outcome: Outcome): FieldsProposal {
  if (!outcome.ok) return { problem: outcome.problem, fields: {} };
  if (outcome.fields === undefined) throw new Error('a content thread returned neither a problem nor fields');
  return { problem: null, fields: new WrittenFields(outcome.fields), unchanged: outcome.unchanged };
}

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
    ...formStages(served),
    standing: () => openStanding,
    propose: (ask, _standing, content) => {
      const owner = makersOwner(served, ask.principal);
      return proposeFields(served, ask, { change: 'create', id: '', current: undefined, owner }, content);
    },
    // The target of a POST is the collection, whose representation is its list (RFC 9110 §13.1).
    validators: async (ask) => ({ tag: await served.listing.tag(ask.principal), modifiedAt: null }),
    act: (ask, _standing, proposal) =>
      writeFields(served, ask, {
        ...{ action: 'create', id: served.newId(), row: undefined, before: undefined, kept: undefined },
        ...{ fields: proposal?.fields ?? {}, restsOn: [], validated: true },
      }),
  };
}

/** A write of the fields of one resource. */
type FieldsWrite = ProposedWrite & {
  readonly fields: FieldsOrWritten;
  /** The row in the store, softly deleted or not; undefined: there is none. */
  readonly row: Row | undefined;
  /** The row whose owner, `createdAt` and stamps stay; undefined: the resource is new. */
  readonly kept: Row | undefined;
  /** Expectations of rows beyond references, by which the caller may make the write. */
  readonly restsOn: readonly Change[];
  /** The response has validators. */
  readonly validated: boolean;
};

/** Makes the write, in one unit with what the hooks of the collection write. */
export function writeFields(served: Served, ask: Ask, write: FieldsWrite): MaybePromise<Result> {
  if (served.files === undefined) return writeSettled(served, ask, write);
  return whenKnown(served.files.settle(served, ask, write), (settled) =>
    'refused' in settled
      ? settled
      : whenKnown(writeSettled(served, ask, { ...write, fields: settled.fields }), (result) => {
          if ('made' in result) served.files?.taken(settled);
          return result;
        }),
  );
}

function writeSettled(served: Served, ask: Ask, write: FieldsWrite): MaybePromise<Result> {
  const { logic } = served;
  if (logic === undefined) return commitFields(served, ask, write, write.fields);
  return logic.write(served, ask, [write], (within, own, [fields = write.fields]) =>
    commitFields(within, own, write, fields),
  );
}

/** Gives the resource these fields, if the caller may create or update it so. */
function commitFields(
  served: Served,
  ask: Ask,
  { action, id, row, before, kept, restsOn, validated }: FieldsWrite,
  fields: FieldsOrWritten,
): MaybePromise<Result> {
  const at = timeAfter(served.clock, row?.updatedAt ?? 0);
  const next = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: kept?.doc, at }),
    owner: kept === undefined ? makersOwner(served, ask.principal) : kept.owner,
    createdAt: kept?.createdAt ?? at,
    updatedAt: at,
    deletedAt: null,
  });
  const created = kept === undefined;
  const moved = created ? tenantProblem(served, row, next) : undefined;
  if (moved !== undefined) return { refused: moved };
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const made = madeOf(served, ask.principal, next, { created, location, modifiedAt: at, validated });
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const kind = action === 'create' ? 'created' : 'updated';
  const events = [eventOf(served, kind, { id, row: next }, at, before?.doc)];
  const changes = [{ table: served.collection.name, id, expect, next }];
  const judgement =
    before === undefined
      ? mayCreate(served, ask.principal, next)
      : mayMove(served, ask.principal, before, next);
  return whenKnown(judgement, (found) =>
    found.permitted
      ? commitUnit(served, ask, { changes, events }, made, [kept], [...restsOn, ...found.restsOn])
      : closedTo(ask.principal),
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
    contentTypes: collection.files === undefined ? patchTypes : [...patchTypes, multipart],
    idempotent: true,
    asynchronous: true,
    longContent: served.longContent,
    matchRequired: collection.requireMatch,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'patch', bytes, mediaType),
    ...formStages(served, true),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    chains: chains(served),
    standing: (ask) => memberStanding(served, ask, 'update'),
    makesOf: ({ row }) => changeOctets(row),
    propose: (ask, standing, content) => {
      const { id, row } = standing;
      if (content === undefined || row === undefined)
        throw new Error('a patch requires the row of its resource');
      const { doc: current, owner } = row;
      return proposeFields(served, ask, { change: 'patch', id, current, owner }, content);
    },
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing, proposed) =>
      proposed?.unchanged === true
        ? leaveAsItIs(served, ask, standing, true)
        : writeFields(served, ask, writeOf(standing, proposed, true)),
  };
}

function writeOf(
  { id, exists, row, restsOn }: MemberStanding,
  proposed: FieldsProposal | undefined,
  validated: boolean,
): FieldsWrite {
  const before = exists ? row : undefined;
  const action = exists ? 'update' : 'create';
  return { action, id, row, before, kept: before, fields: proposed?.fields ?? {}, restsOn, validated };
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
    ...formStages(served),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    chains: chains(served),
    standing: (ask) => replacedStanding(served, ask),
    makesOf: ({ row }) => changeOctets(row),
    propose: (ask, standing, content) => proposal(served, ask, standing, content),
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing, proposed) =>
      proposed?.unchanged === true
        ? leaveAsItIs(served, ask, standing, false)
        : writeFields(served, ask, writeOf(standing, proposed, false)),
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

// The content that a collection accepts for each method (§4.4.1, §4.6), and its parsing.

export const mediaTypeOf: Readonly<Record<BodyFormat, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  text: 'text/plain',
};

/** Media types of a complete resource, for POST and PUT. */
function bodyTypes(collection: Collection): readonly string[] {
  return [...collection.formats].map((format) => mediaTypeOf[format]);
}

/** `application/json` means a merge patch. */
const patchTypes: readonly string[] = [
  'application/merge-patch+json',
  'application/json-patch+json',
  'application/json',
];

/** Parses a complete resource; its format no longer matters afterwards. */
export function understandBody(
  served: Served,
  bytes: Uint8Array,
  mediaType: MediaType,
): MaybePromise<Understood<unknown>> {
  return whenKnown(served.parse(bytes, mediaType), toValue);
}

function toValue(parsed: Parsed): Understood<unknown> {
  return parsed.ok ? { ok: true, value: parsed.value } : { ok: false, problem: parsed.problem };
}

// Wraps an operation of a collection so that a built-in resource can check and change the new fields before preconditions and the store:
// for rules beyond a schema, such as a time that must be in the future.

export type NewFields = Readonly<Record<string, unknown>>;

type Revision = {
  readonly ask: Ask;
  /** The current row; undefined if the request creates the resource. */
  readonly before: Row | undefined;
  /** As parsed: an object for POST and PUT, format and value of a patch for PATCH. */
  readonly content: unknown;
  /** Valid by the schema. */
  readonly fields: NewFields;
};

export type Revise = (revision: Revision) => MaybePromise<Revised | { readonly refused: Problem }>;

/**
 * `secret`: stored with the fields but not served; its type is known to the operation that revises them. `hasNewSecret`: it differs from what is
 * stored, which is a change, although the document does not contain it.
 */
type Revised = {
  readonly fields: NewFields;
  readonly secret?: unknown;
  readonly hasNewSecret?: boolean;
};

export type RevisedProposal = Proposal & Revised & { readonly unchanged?: boolean };

/** Members with the value undefined count as absent. */
function saysTheSame(fields: NewFields, { doc, deletedAt }: Row): boolean {
  const kept = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return deletedAt === null && isUnchanged(kept, JSON.parse(doc) as NewFields);
}

/** @param operation POST, PUT or PATCH of a collection, whose proposals have `fields` */
export function revised(operation: Operation, revise: Revise): Operation {
  const { propose } = operation;
  if (propose === undefined) throw new Error('a revised operation requires a propose stage');
  return {
    ...operation,
    // A revision may depend on other rows as they are committed.
    chains: false,
    propose: async (ask, standing, content) => {
      const proposal = (await propose(ask, standing, content)) as RevisedProposal;
      if (proposal.problem !== null) return proposal;
      const { row: before } = standing as Standing & { readonly row?: Row };
      const found = await revise({ ask, before, content, fields: proposal.fields });
      if ('refused' in found) return { ...proposal, problem: found.refused, fields: {} };
      const unchanged =
        before !== undefined && found.hasNewSecret !== true && saysTheSame(found.fields, before);
      return { ...proposal, ...found, unchanged };
    },
  };
}
