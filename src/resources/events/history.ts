/**
 * GET {member}/history (§4.15): the versions of a document as far as the log has them, newest first: who made each, when, and which members
 * it changed. It obeys the rules of now: a caller that may not read the document has no history of it, versions that the caller may not read
 * are left out, and members that are hidden from it, in the version or in the document as it is now, do not occur.
 *
 * Administrators also read the history of a deleted document. A page costs the reads of its events, which an index finds, and of what was
 * before each; long versions are compared with pauses for other work.
 */
import { cutMembers, valueAt } from '../../http/syntax/json-members.ts';
import { json, named, pageSchema, pascalCase, pathParameter } from '../../kernel/documentation.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import { permission, permits } from '../../model/access.ts';
import { actorKinds, causeOf } from '../../model/actor.ts';
import type { Collection } from '../../model/collection.ts';
import { objectSpan } from '../../model/event.ts';
import { type Field, idField } from '../../model/field.ts';
import { allOf, type Filter } from '../../model/filter.ts';
import { equalJson } from '../../model/json-value.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import { eventsTable, type Row, whenKnown } from '../../store/store.ts';
import {
  type ListProposal,
  listFields,
  proposeList,
  repeatedFields,
  representList,
} from '../collection/list-answer.ts';
import type { Listing, Narrowed } from '../collection/listing.ts';
import { type MemberStanding, memberStanding } from '../collection/member.ts';
import { formerOwnerMember } from '../collection/row.ts';
import { deprecationFields } from '../collection/serve-collection.ts';
import type { Served } from '../collection/served-collection.ts';
import { hiddenMembers, type ShowDocs, type View, withoutHidden } from '../collection/view.ts';
import type { QueryTextLimits } from '../query/list-query.ts';
import type { LogView } from './seen-event.ts';
import { visibleEvents } from './visible-events.ts';

/** Versions of one page: each may be as long as a document, and is compared with the one before. */
const versionsPerPageMax = 100;

const collectionField: Field = { name: 'collection', path: [], type: 'string', column: 'collection' };
const documentField: Field = { name: 'document', path: [], type: 'string', column: 'document' };
const revField: Field = { name: 'rev', path: [], type: 'integer', column: 'rev' };
const noFields: ReadonlyMap<string, Field> = new Map();
const cacheControl = 'private, no-cache';

type Views = (principal: Principal) => LogView;

export function historyResource(served: Served, views: Views): Resource {
  return {
    pattern: `${served.path}/{id}/history`,
    documentation: {
      name: `${pascalCase(served.collection.name)}History`,
      tag: served.collection,
      parameters: [pathParameter('id', 'Id of the document.')],
    },
    operations: new Map([['GET', historyOperation(served, views) as Operation]]),
    constantFields: deprecationFields(served.collection),
    offers: ['application/json'],
  };
}

type HistoryProposal = ListProposal & { readonly listing: Listing | undefined };

function historyOperation(served: Served, views: Views): Operation<MemberStanding, never, HistoryProposal> {
  const { collection, store, serving } = served;
  const { settings } = serving;
  const limits = {
    ...settings,
    listLimitMax: Math.min(settings.listLimitMax, versionsPerPageMax),
    listLimitDefault: Math.min(settings.listLimitDefault, versionsPerPageMax),
  };
  return {
    documentation: documentationOf(collection, limits),
    permission: (principal) => permission(collection.access.read, 'read', principal),
    standing: (ask) =>
      whenKnown(memberStanding(served, ask, 'read'), (standing) =>
        standing.exists || !isAdministrator(ask.principal)
          ? standing
          : whenKnown(
              store.count(eventsTable, eventsOf(collection.name, standing.id), ask.party),
              (count) => ({ ...standing, exists: count > 0, permitted: true }),
            ),
      ),
    propose: (ask, { id, row }) => {
      const listing = serving.listingOf({
        ...{ table: eventsTable, fields: noFields, searched: false, limits, cacheControl },
        path: `${served.path}/${encodeURIComponent(id)}/history`,
        permission: () => 'granted',
        visibility: (principal) => visibleEvents([collection], principal),
        ...(collection.relates === true ? { related: { seen: (filter: Filter) => filter } } : {}),
        view: (principal) => ({
          mark: 'history',
          fields: noFields,
          show: showVersions(served, views, principal, row),
        }),
        narrowed: newestFirst(eventsOf(collection.name, id)),
      });
      return { ...proposeList(listing, ask), listing };
    },
    validators: async (ask, _standing, proposal) => {
      const { listing } = proposal ?? {};
      const fields = listing === undefined ? [] : repeatedFields(listing);
      const tag = listing === undefined ? null : await listing.tag(ask.principal);
      return { tag, modifiedAt: null, cacheControl, fields };
    },
    represent: (ask, _standing, proposal) => {
      if (proposal?.list === undefined || proposal.listing === undefined)
        throw new Error('a history requires its query');
      return representList(ask, { listing: proposal.listing, ...proposal.list });
    },
  };
}

function eventsOf(collection: string, id: string): Filter {
  return allOf([
    { op: 'eq', field: collectionField, value: collection },
    { op: 'eq', field: documentField, value: id },
  ]);
}

/** Queries of this document alone, newest first. */
function newestFirst(filter: Filter): Narrowed {
  return {
    key: `history ${JSON.stringify(filter)}`,
    compiled: (asked) => {
      if (asked.source?.some(([name]) => name === 'order') === true) {
        const message = 'a history is newest first; leave out order';
        return { ok: false, faults: [{ kind: 'unprocessable', message, parameter: 'order' }] };
      }
      const sort = [
        { field: revField, direction: 'desc' },
        { field: idField, direction: 'desc' },
      ] as const;
      return { ok: true, asked: { ...asked, filter, sort } };
    },
  };
}

/** @param row the document as it is now; undefined if it was removed */
function showVersions(served: Served, views: Views, principal: Principal, row: Row | undefined): ShowDocs {
  const { collection, store, turns } = served;
  const view = served.view(principal);
  const hiddenNow = new Set(
    row === undefined ? [] : hiddenMembers(view, row.doc, row.owner).map(({ name }) => name),
  );
  const { shows } = views(principal);
  return async (docs) => {
    const shown: string[] = [];
    for (const doc of docs) {
      const id = valueAt(doc, ['id']) as string;
      const event = await store.read(eventsTable, id);
      const former = event === undefined ? null : await store.former(id);
      const version = { doc, ...formerOf(former, event?.owner ?? null), at: event?.createdAt };
      const rows = new RelatedRows(store);
      const seeing = { version, view, hiddenNow, shows, related: rows.find };
      shown.push(await judged(rows, () => versionText(collection, principal, seeing)));
      await turns.nextOfBegun();
    }
    return { docs: shown };
  };
}

/** The representation before an update, apart from the owner of then. */
function formerOf(
  former: string | null,
  owner: string | null,
): Pick<Version, 'former' | 'formerOwner' | 'owner'> {
  if (former === null) return { former, formerOwner: owner, owner };
  const other = valueAt(former, [formerOwnerMember]);
  const text = other === undefined ? former : cutMembers(former, [formerOwnerMember]).json;
  return { former: text, formerOwner: typeof other === 'string' ? other : owner, owner };
}

type Version = {
  /** The event. */
  readonly doc: string;
  readonly former: string | null;
  readonly formerOwner: string | null;
  readonly owner: string | null;
  /** Undefined: the event was removed since the page was read. */
  readonly at: number | undefined;
};

type Seeing = {
  readonly version: Version;
  readonly view: View;
  readonly hiddenNow: ReadonlySet<string>;
  readonly shows: LogView['shows'];
  readonly related: RelatedRows['find'];
};

function versionText(
  collection: Collection,
  principal: Principal,
  { version, view, hiddenNow, shows, related }: Seeing,
): string {
  const { doc, former, formerOwner, owner, at } = version;
  const type = valueAt(doc, ['type']) as string;
  const cause = causeOf(doc);
  const much = cause === undefined ? 'none' : shows(type, cause);
  const change = type.slice(collection.name.length + 1);
  const { kind, id } = cause?.actor ?? {};
  return JSON.stringify({
    id: valueAt(doc, ['id']),
    change,
    at: new Date(at ?? 1000 * Number(valueAt(doc, ['created']))).toISOString(),
    ...(much === 'whole' ? cause : much === 'who' ? { actor: { kind, id } } : {}),
    changes: change === 'deleted' ? {} : changesOf(),
  });

  function changesOf(): Readonly<Record<string, unknown>> {
    const after = seen(objectOf(doc), owner);
    const before = former !== null && mayRead(former) ? seen(former, formerOwner) : undefined;
    const isKnown = change === 'created' || before !== undefined;
    return changedMembers(before ?? {}, after, { isKnown, hides: hiddenNow });
  }

  function mayRead(state: string): boolean {
    const member = (name: string): unknown => valueAt(state, [name]);
    return permits(collection.access.read, 'read', principal, { owner: formerOwner, member, related });
  }

  function seen(state: string, of: string | null): Members {
    return JSON.parse(view.mark === '' ? state : withoutHidden(view, state, of).doc) as Members;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** Set by every write, and shown by the version itself. */
const untold: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt']);

/**
 * Members that differ, each with its values; a member that was or became absent lacks that value.
 * @param isKnown false: the state before is not shown, so the members are those of the version, without the values before
 */
function changedMembers(
  before: Members,
  after: Members,
  { isKnown, hides }: { readonly isKnown: boolean; readonly hides: ReadonlySet<string> },
): Readonly<Record<string, unknown>> {
  const names = new Set([...Object.keys(after), ...Object.keys(before)]);
  const changes: [string, unknown][] = [];
  for (const name of names) {
    if (untold.has(name) || hides.has(name)) continue;
    const had = Object.hasOwn(before, name);
    const has = Object.hasOwn(after, name);
    if (isKnown && had && has && equalJson(before[name], after[name])) continue;
    changes.push([
      name,
      { ...(had ? { before: before[name] } : {}), ...(has ? { after: after[name] } : {}) },
    ]);
  }
  return Object.fromEntries(changes);
}

function objectOf(doc: string): string {
  const object = objectSpan(doc);
  return object === undefined ? '{}' : doc.slice(object.start, object.end);
}

const versionSchema = named('Version', {
  description: 'A version of a document.',
  type: 'object',
  properties: {
    id: { type: 'string', description: 'Id of the event.' },
    change: { enum: ['created', 'updated', 'deleted'] },
    at: { type: 'string', format: 'date-time' },
    actor: {
      type: 'object',
      description: 'Who made it, as far as the caller is shown.',
      properties: {
        kind: { enum: [...actorKinds] },
        id: { type: ['string', 'null'] },
        keyId: { type: 'string' },
      },
      required: ['kind', 'id'],
    },
    requestId: { type: 'string' },
    changes: {
      type: 'object',
      description: 'The changed members, by name. A value that is absent was or became absent.',
      additionalProperties: { type: 'object', properties: { before: {}, after: {} } },
    },
  },
  required: ['id', 'change', 'at', 'changes'],
});

const versionExample = {
  id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
  change: 'updated',
  at: '2026-11-21T10:04:12.116Z',
  changes: { name: { before: 'Kitchen', after: 'Cookery' } },
};

function documentationOf(collection: Collection, limits: QueryTextLimits) {
  const { name } = collection;
  const page = pageSchema('History', 'A page of the history of a document.', versionSchema);
  return {
    id: `list${pascalCase(name)}History`,
    summary: `List the versions of a document of ${name}`,
    description:
      'Newest first, while the events are kept. Versions that the caller may not read are left out.',
    paged: limits,
    mayBeMissing: true,
    mayBeHidden: true,
    gives: { representation: json(page, { items: [versionExample], nextCursor: null }) },
    representationFields: listFields,
    codes: ['query_parameter_invalid' as const],
  } as const;
}
