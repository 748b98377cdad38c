/**
 * GET and HEAD of a member (§4.2, §4.3): the stored bytes, or the members that `fields` selects. A selection does not
 * change the entity tag: it is part of the target URI, and a later If-Match must still match. What `expand` and `counts`
 * add (§4.16) does change it, because it changes without the resource.
 */
import type { Problem } from '../../http/problem.ts';
import type { Ask, Operation, Proposal, Validators } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { tagFieldOf } from '../../model/collection.ts';
import type { Field } from '../../model/field.ts';
import { type MaybePromise, whenKnown } from '../../store/store.ts';
import { projection, withMember, withMemberAt } from '../query/project.ts';
import { readSelection, type Selected } from '../query/selection.ts';
import type { Related } from '../relations/related.ts';
import type { Served } from './served.ts';
import { type MemberStanding, memberStanding, memberValidators } from './standing.ts';
import { tagMember } from './view.ts';

type Selection = Proposal &
  Selected & {
    readonly related: Related | undefined;
  };

const everything: Selection = { problem: null, select: undefined, related: undefined };

export function readOperation(served: Served): Operation<MemberStanding, never, Selection> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.read, 'read', principal),
    standing: (ask) => memberStanding(served, ask, 'read'),
    propose: (ask, standing) =>
      ask.query === undefined ? everything : propose(served, ask, standing, ask.query),
    validators: (_ask, standing, proposal) => ({
      ...validatorsOf(standing, proposal),
      cacheControl: collection.cacheControl,
    }),
    // An answer that rows of other tables decided is not given again by the revision of its own row.
    restsOn: ({ row, restsOn }, proposal) =>
      proposal?.related === undefined && restsOn.length === 0 ? { table: collection.name, row } : undefined,
    represent: (_ask, standing, proposal) => {
      const doc = docOf(standing);
      const selected = proposal?.select === undefined ? doc : projection(proposal.select)(doc);
      const owned = withOwner(selected, proposal?.owner, standing);
      return {
        content: withRelated(withTag(owned, proposal?.tag, standing), proposal?.related),
        mediaType: 'application/json',
        validators: validatorsOf(standing, proposal),
        cacheControl: collection.cacheControl,
      };
    },
  };
}

function propose(
  served: Served,
  { principal, party }: Ask,
  standing: MemberStanding,
  query: string,
): MaybePromise<Selection> {
  const { relations, readRelated, expansionLimits } = served;
  const selection = readSelection(
    query,
    { fields: served.view(principal).fields, relations, tag: tagFieldOf(served.collection) },
    expansionLimits,
  );
  if (!selection.ok) return refused(selection.message);
  const { select, owner, tag, expansion } = selection;
  const selected = { ...everything, select, owner, tag };
  if (expansion === undefined || relations === undefined) return selected;
  const expanding = { of: relations, docs: [docOf(standing)], principal, party, tagged: tag !== undefined };
  return whenKnown(readRelated(expansion, expanding), (related) =>
    'fault' in related ? refused(related.fault.message) : { ...selected, related },
  );
}

function docOf({ seen, row }: MemberStanding): string {
  return seen?.doc ?? row?.doc ?? '{}';
}

function withOwner(doc: string, owner: Field | undefined, { row }: MemberStanding): string {
  return owner === undefined
    ? doc
    : withMember(doc, `${JSON.stringify(owner.name)}:${JSON.stringify(row?.owner ?? null)}`);
}

function withTag(doc: string, tag: Field | undefined, standing: MemberStanding): string {
  const value = tag === undefined ? null : memberValidators(standing).tag;
  return tag === undefined || value === null ? doc : withMemberAt(doc, tag.path, tagMember(tag, value));
}

function withRelated(doc: string, related: Related | undefined): string {
  if (related === undefined) return doc;
  return doc === '{}' ? `{${related.text.slice(1)}}` : `${doc.slice(0, -1)}${related.text}}`;
}

function validatorsOf(standing: MemberStanding, proposal: Selection | undefined): Validators {
  const { tag, modifiedAt } = memberValidators(standing);
  const related = proposal?.related;
  if (related === undefined) return { tag, modifiedAt };
  const isDated = modifiedAt !== null && related.modifiedAt !== null;
  return {
    tag: `${tag}-${related.mark()}`,
    modifiedAt: isDated ? Math.max(modifiedAt, related.modifiedAt) : null,
  };
}

function refused(message: string): Selection {
  const problem: Problem = { code: 'query_parameter_invalid', message };
  return { ...everything, problem };
}
