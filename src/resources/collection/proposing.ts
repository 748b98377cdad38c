/**
 * Content to the fields of a resource: on the event loop where content and resource are short, on a thread where they are not
 * (content-threads). Both give the same answers.
 */
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { MaybePromise } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { CollectionThreads } from '../content-threads/content-threads.ts';
import { CheckedContent, type Outcome, type ProposalTarget, propose } from '../content-threads/job.ts';
import type { Proposed } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import { closingsFor } from '../document/withheld.ts';
import type { Ask, Proposal, Understood } from '../resource.ts';
import type { Served } from './served.ts';

export type FieldsProposal = Proposal & {
  readonly fields: FieldsOrWritten;
  /** The resource has these fields already. */
  readonly unchanged?: boolean | undefined;
};

/** The content as a value, or as octets that are known to be good. */
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

/** @param content as `understandContent` gave it */
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

/** Copies that are looked at: beyond so many the product is long for any document. */
const copiesMax = 16;

/** How many times the length of the resource a JSON Patch may take: a move takes it once, a copy may double it. */
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
  if (outcome.fields === undefined) throw new Error('a thread proposed nothing');
  return { problem: null, fields: new WrittenFields(outcome.fields), unchanged: outcome.unchanged };
}
