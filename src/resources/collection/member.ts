/**
 * A member of a collection: its standing, which says if it exists and if the principal may see and change it (§4.7.1,
 * §5.1), and GET (§4.2, §4.3). A softly deleted resource does not exist (§4.7.4), but the next change is computed from its row.
 */
import type { TObject } from 'typebox';
import type { Problem } from '../../http/problem.ts';
import { valueAt } from '../../http/syntax/json-members.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Action as DeclaredAction } from '../../kernel/action.ts';
import { pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Operation, Proposal, Standing, Validators } from '../../kernel/resource.ts';
import { type Action, permission, permits, type Rule, type Subject } from '../../model/access.ts';
import { tagFieldOf } from '../../model/collection.ts';
import type { Field } from '../../model/field.ts';
import type { Principal } from '../../model/principal.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import type { Change, MaybePromise, Row } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import { projection, readSelection, type Selected, withMember, withMemberAt } from '../query/selection.ts';
import type { Related } from '../relations/related.ts';
import type { Served } from './served-collection.ts';
import { type Seen, seenBy, subjectOf, tagMember, tagOfSeen } from './view.ts';

export type MemberStanding = Standing & {
  readonly id: string;
  readonly row: Row | undefined;
  /** The representation for the principal; undefined if it equals the stored one. */
  readonly seen: Seen | undefined;
  /** The rows beyond references by which the rules decided: a unit that follows from it expects them. */
  readonly restsOn: readonly Change[];
};

/** What rules decided, with the rows beyond references by which they did. */
export type Judgement = { readonly permitted: boolean; readonly restsOn: readonly Change[] };

const nothing: readonly Change[] = [];

export function memberStanding(served: Served, ask: Ask, action: Action): MaybePromise<MemberStanding> {
  const id = ask.captures[0] ?? '';
  const { store, collection } = served;
  if (ask.isChained === true) {
    return whenKnown(store.readNewest(collection.name, id), ({ row, isProvisional }) =>
      whenKnown(judge(served, ask.principal, action, id, row), (judged) => ({ ...judged, isProvisional })),
    );
  }
  return whenKnown(store.read(collection.name, id), (row) => judge(served, ask.principal, action, id, row));
}

/**
 * The standing of a member for a PUT. Where PUT creates, one at the id of a softly deleted member ends its restoration: as a deletion and a
 * creation in its place would, it needs the right to read and delete the member as it was.
 */
export function replacedStanding(served: Served, ask: Ask): MaybePromise<MemberStanding> {
  return whenKnown(memberStanding(served, ask, 'update'), (standing) => {
    const { id, row, exists } = standing;
    if (exists || row === undefined || !served.collection.putCreates) return standing;
    const asItWas = judge(served, ask.principal, 'delete', id, { ...row, deletedAt: null });
    return whenKnown(asItWas, (found) =>
      found.permitted ? { ...standing, restsOn: found.restsOn } : { ...standing, ...found },
    );
  });
}

/** Refuses to create a member for another tenant than that of the softly deleted one whose id it takes: no id moves between tenants. */
export function tenantProblem(
  { collection: { tenantField } }: Pick<Served, 'collection'>,
  deleted: Pick<Row, 'doc'> | undefined,
  next: Pick<Row, 'doc'>,
): Problem | undefined {
  if (tenantField === undefined || deleted === undefined || !differ(deleted, next, tenantField))
    return undefined;
  const message = 'must be the tenant of the deleted resource, whose id belongs to it';
  return { code: 'field_unpatchable', errors: [{ pointer: formatJsonPointer([tenantField]), message }] };
}

/** The standing of a softly deleted member for its restoration: as it was before the deletion. A live one does not exist here. */
export function deletedStanding(served: Served, ask: Ask): MaybePromise<MemberStanding> {
  const id = ask.captures[0] ?? '';
  const { store, collection } = served;
  return whenKnown(store.read(collection.name, id), (row) =>
    row === undefined || row.deletedAt === null
      ? {
          exists: false,
          visible: true,
          permitted: true,
          id,
          row: undefined,
          seen: undefined,
          restsOn: nothing,
        }
      : judge(served, ask.principal, 'delete', id, { ...row, deletedAt: null }),
  );
}

/** The standing of a member for an action of an application, whose rule is not one of the four of the collection. */
export function actionStanding(
  { store, collection }: Pick<Served, 'store' | 'collection'>,
  ask: Ask,
  rule: Rule,
  action: Action,
): MaybePromise<Standing & Pick<MemberStanding, 'row' | 'restsOn'>> {
  return whenKnown(store.read(collection.name, ask.captures[0] ?? ''), (row) => {
    if (row === undefined || row.deletedAt !== null)
      return { exists: false, visible: true, permitted: true, row: undefined, restsOn: nothing };
    const rows = new RelatedRows(store);
    const subject = subjectOf(row, rows);
    const decide = () => {
      const visible = permits(collection.access.read, 'read', ask.principal, subject);
      const permitted = visible && permits(rule, action, ask.principal, subject);
      return { exists: true, visible: visible || !collection.conceal, permitted, row };
    };
    return whenKnown(judged(rows, decide), (standing) => ({ ...standing, restsOn: rows.expectations() }));
  });
}

/** Changes that accompany one may name the revision of its row, and functions and files may read it: it must then be a real one. */
export function chains(served: Pick<Served, 'accompany' | 'logic' | 'files'>): boolean {
  return served.accompany === undefined && served.logic === undefined && served.files === undefined;
}

function judge(
  served: Served,
  principal: Principal,
  action: Action,
  id: string,
  row: Row | undefined,
): MaybePromise<MemberStanding> {
  const { access, conceal, relates } = served.collection;
  if (row === undefined || row.deletedAt !== null) {
    const permitted = permission(access.create, 'create', principal) !== 'denied';
    return { exists: false, visible: true, permitted, id, row, seen: undefined, restsOn: nothing };
  }
  const rows = relates === true ? new RelatedRows(served.store) : undefined;
  const subject = subjectOf(row, rows);
  const decide = (): MemberStanding => {
    const visible = permits(access.read, 'read', principal, subject);
    return {
      exists: true,
      visible: visible || !conceal,
      permitted: visible && (action === 'read' || permits(access[action], action, principal, subject)),
      id,
      row,
      seen: visible ? seenOf(served, principal, row) : undefined,
      restsOn: nothing,
    };
  };
  if (rows === undefined) return decide();
  return whenKnown(judged(rows, decide), (standing) => ({ ...standing, restsOn: rows.expectations() }));
}

/** Returns the representation for the principal; undefined if it equals the stored one. */
export function seenOf(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
): Seen | undefined {
  const view = served.view(principal);
  if (view.mark === '') return undefined;
  const seen = seenBy(view, row.doc, row.owner);
  return seen.mark === '' ? undefined : seen;
}

/** The refusal of a proposal that an access rule denies (§5.1). */
export function closedTo(principal: Principal): { readonly refused: Problem } {
  return { refused: { code: principal.kind === 'anonymous' ? 'no_token_provided' : 'forbidden' } };
}

/** Applies the access rule for creation, which may depend on the proposed fields. */
export function mayCreate(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
): MaybePromise<Judgement> {
  return judgeRow(
    served,
    (subject) => permits(served.collection.access.create, 'create', principal, subject),
    row,
  );
}

/**
 * Applies the access rule for updates to a row whose references change: its conditions on what they name must hold for what the new document
 * names too. Those on the fields of the resource itself are about the resource as it is.
 */
export function mayMove(
  served: Served,
  principal: Principal,
  before: Pick<Row, 'doc' | 'owner'>,
  next: Pick<Row, 'doc'>,
): MaybePromise<Judgement> {
  const { references, relates, access } = served.collection;
  const changed = relates === true ? references.filter(({ field }) => differ(before, next, field)) : [];
  if (changed.length === 0) return { permitted: true, restsOn: nothing };
  const names = new Set(changed.map(({ field }) => field));
  return judgeRow(
    served,
    (subject) => {
      const moved: Subject = {
        ...subject,
        member: (name) => valueAt(names.has(name) ? next.doc : before.doc, [name]),
      };
      return permits(access.update, 'update', principal, moved);
    },
    before,
  );
}

function differ(one: Pick<Row, 'doc'>, other: Pick<Row, 'doc'>, name: string): boolean {
  return valueAt(one.doc, [name]) !== valueAt(other.doc, [name]);
}

function judgeRow(
  { store, collection }: Pick<Served, 'store' | 'collection'>,
  permitted: (subject: Subject) => boolean,
  row: Pick<Row, 'doc' | 'owner'>,
): MaybePromise<Judgement> {
  if (collection.relates !== true) return { permitted: permitted(subjectOf(row)), restsOn: nothing };
  const rows = new RelatedRows(store);
  const subject = subjectOf(row, rows);
  return whenKnown(
    judged(rows, () => permitted(subject)),
    (found) => ({ permitted: found, restsOn: rows.expectations() }),
  );
}

/** Judges if the principal may both see and delete the row; it may not for a softly deleted one. */
export function mayDelete(served: Served, principal: Principal, row: Row): MaybePromise<Judgement> {
  const { access } = served.collection;
  return judgeRow(
    served,
    (subject) =>
      row.deletedAt === null &&
      permits(access.read, 'read', principal, subject) &&
      permits(access.delete, 'delete', principal, subject),
    row,
  );
}

/** A principal that sees fewer members gets another entity tag, because the tag is strong (RFC 9110 §8.8.1). */
export function memberValidators(standing: MemberStanding): Validators {
  const { row, seen } = standing;
  if (row === undefined) return { tag: null, modifiedAt: null };
  return { tag: tagOfSeen(row.rev, seen?.mark ?? ''), modifiedAt: row.updatedAt };
}

/** The part of an action's declaration that places it on a member of a collection. */
type MemberPlace = Required<
  Pick<
    DeclaredAction<TObject, MemberStanding>,
    'path' | 'parameters' | 'tag' | 'permission' | 'standing' | 'member'
  >
>;

/**
 * Spread into the declaration of an action on a member of a collection.
 * @param rest of the path, after the id
 * @param access the access rule of the collection that applies
 * @param described the description of the id: `Of the endpoint.`
 */
export function onMember(served: Served, rest: string, access: Action, described: string): MemberPlace {
  const { collection } = served;
  return {
    path: `${served.path}/{id}/${rest}`,
    parameters: [pathParameter('id', described)],
    tag: collection,
    permission: (principal) => permission(collection.access[access], access, principal),
    standing: (ask) => memberStanding(served, ask, access),
    member: { collection, action: access },
  };
}

// GET and HEAD of a member (§4.2, §4.3): the stored bytes, or the members that `fields` selects. A selection does not change the entity
// tag: it is part of the target URI, and a later If-Match must still match. What `expand` and `counts` add (§4.16) does change it,
// because it changes without the resource.

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
  const { relations, serving } = served;
  const selection = readSelection(
    query,
    { fields: served.view(principal).fields, relations, tag: tagFieldOf(served.collection) },
    serving.settings,
  );
  if (!selection.ok) return refused(selection.message);
  const { select, owner, tag, expansion } = selection;
  const selected = { ...everything, select, owner, tag };
  if (expansion === undefined || relations === undefined) return selected;
  const expanding = { of: relations, docs: [docOf(standing)], principal, party, tagged: tag !== undefined };
  return whenKnown(serving.readRelated(expansion, expanding), (related) =>
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
