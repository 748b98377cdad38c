/**
 * POST to `/events` (surface "Webhooks out"): an event that the application posts itself. 202, because what is announced is delivered after
 * the answer; an event that comes again under its own id is the same event, 200.
 *
 * It belongs to who posted it, and to the tenant that it names. What reads as a write of a resource is for administrators alone: a
 * receiver that trusts `products.created` must not be told so by whoever may post events.
 */
import { collectionOfType, eventTypeFault, isOperationalType } from '../../../config/event-types.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import { permission } from '../../../model/access.ts';
import { eventDocument } from '../../../model/event.ts';
import { noCollection } from '../../../model/event-access.ts';
import { isAdministrator, type Principal } from '../../../model/principal.ts';
import { type Commit, type EventEntry, eventsTable, Overtaken, type Store } from '../../../store/store.ts';
import type { EventTypes } from '../../../webhooks/outbound/event-types/event-types.ts';
import { ownerOf } from '../../collection/create.ts';
import type { ContentLimits } from '../../content/content-limits.ts';
import { parseContent } from '../../content/parse-content.ts';
import { equalJson } from '../../document/json-value.ts';
import type { Ask, Made, Operation, Proposal, Result, Standing } from '../../resource.ts';
import { createPostedValidators, type Posted, type PostedValidators } from './posted-event.ts';

export type PostEventOptions = {
  /** Whose commits make the deliveries. */
  readonly store: Store;
  /** `/api/v1/events` */
  readonly path: string;
  readonly clock: () => number;
  readonly newId: () => string;
  readonly eventTypes: EventTypes;
  /** Names of the declared ones. */
  readonly collections: { has(name: string): boolean };
  readonly contentLimits: ContentLimits;
  readonly validationErrorsMax: number;
  readonly webhookContentBytesMax: number;
};

export type ProposedEvent = Proposal & { readonly posted: Posted | undefined };

const open: Standing = { exists: true, visible: true, permitted: true };

/** Made once, at start: the schemas of the types are compiled here. */
export function postEventOperation(options: PostEventOptions): Operation<Standing, unknown, ProposedEvent> {
  const validators = createPostedValidators(options.eventTypes, options.validationErrorsMax);
  const { contentLimits, webhookContentBytesMax: bytesMax } = options;
  return {
    permission: (principal) => permission({ bearing: 'webhooks', rule: 'principal' }, 'create', principal),
    contentTypes: ['application/json'],
    contentBytesMax: bytesMax,
    idempotent: true,
    understand: (_ask, bytes, mediaType) => {
      // What was within the bound as it came may be beyond it without its content coding.
      if (bytes.length > bytesMax) {
        const message = `an event may have at most ${bytesMax} bytes`;
        return { ok: false, problem: { code: 'content_too_large', message } };
      }
      return parseContent(bytes, mediaType, undefined, contentLimits);
    },
    standing: () => open,
    propose: ({ principal }, _standing, content) => propose(options, validators, principal, content),
    act: (ask, _standing, proposal) => {
      if (proposal?.posted === undefined) throw new Error('an event without a proposal');
      return append(options, ask, proposal.posted);
    },
  };
}

function propose(
  { collections }: PostEventOptions,
  validators: PostedValidators,
  principal: Principal,
  content: unknown,
): ProposedEvent {
  const read = validators.read(content);
  if ('problem' in read) return { problem: read.problem, posted: undefined };
  const problem =
    nameProblem(read.posted, principal, collections) ??
    tenantProblem(read.posted, principal) ??
    validators.payloadProblem(read.posted);
  return problem === undefined
    ? { problem: null, posted: withTenant(read.posted, principal) }
    : { problem, posted: undefined };
}

function nameProblem(
  { type, id }: Posted,
  principal: Principal,
  collections: PostEventOptions['collections'],
): Problem | undefined {
  const errors: FieldError[] = [];
  const fault =
    eventTypeFault(type) ?? (isOperationalType(type) ? 'is kept for the program itself' : undefined);
  if (fault !== undefined) errors.push({ pointer: '/type', message: fault });
  if (id !== undefined && !isEventId(id)) {
    errors.push({ pointer: '/id', message: 'must be 1 to 128 letters, digits, _ ~ or -' });
  }
  if (errors.length > 0) return { code: 'validation_failed', errors };
  if (isAdministrator(principal) || collectionOfType(type, collections) === undefined) return undefined;
  return {
    code: 'forbidden',
    message: 'events of the writes of a collection are posted by administrators alone',
  };
}

const idCharactersMax = 128;
/** No full stop: it parts the id from the time in what Standard Webhooks signs. */
const idCharacters = /^[A-Za-z0-9_~-]+$/;

/** `expunge` stands where an event of that id would. */
function isEventId(id: string): boolean {
  return id.length <= idCharactersMax && idCharacters.test(id) && id !== 'expunge';
}

/** Who belongs to a tenant tells nobody else's. */
function tenantProblem({ tenant }: Posted, principal: Principal): Problem | undefined {
  if (isAdministrator(principal) || principal.kind === 'anonymous') return undefined;
  if (tenant === undefined || principal.tenant === null || tenant === principal.tenant) return undefined;
  return { code: 'forbidden', message: 'events are posted for the own tenant alone' };
}

function withTenant(posted: Posted, principal: Principal): Posted {
  if (posted.tenant !== undefined || isAdministrator(principal)) return posted;
  const own = principal.kind === 'authenticated' ? principal.tenant : null;
  return own === null ? posted : { ...posted, tenant: own };
}

async function append(options: PostEventOptions, ask: Ask, posted: Posted): Promise<Result> {
  const { store, path, clock } = options;
  const at = clock();
  const id = posted.id ?? `evt_${options.newId()}`;
  const event = postedEntry(posted, { id, at, owner: ownerOf(ask.principal) });
  const { doc } = event;
  const location = `${path}/${id}`;
  const made: Made = {
    outcome: 'made',
    created: true,
    queued: true,
    location,
    doc,
    modifiedAt: null,
    validated: false,
  };
  const changes = ask.companions.map((companion) => companion(made));
  const commit = await store.commit({ changes, events: [event] });
  if (commit.outcome === 'committed') return { made, rev: commit.rev };
  if (commit.outcome !== 'superseded') throw new Error(`an event could not be kept: ${commit.outcome}`);
  // A companion that was superseded means that another process took this request over: it answers, not we.
  if (commit.change < changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  return again(store, ask, event, commit, { ...made, created: false, queued: false });
}

/** The event as it is kept. `at` in milliseconds since the epoch. */
export function postedEntry(
  { type, tenant, object }: Posted,
  { id, at, owner }: { readonly id: string; readonly at: number; readonly owner: string | null },
): EventEntry {
  const doc = eventDocument(id, type, at, JSON.stringify(object), tenant);
  return { id, type, collection: noCollection, owner, doc, createdAt: at };
}

/** The id is taken: by this very event, or by another. */
async function again(
  store: Store,
  ask: Ask,
  event: EventEntry,
  { current }: Extract<Commit, { outcome: 'superseded' }>,
  made: Made,
): Promise<Result> {
  const row = current ?? (await store.read(eventsTable, event.id));
  // Purged between the two: the walk looks again, and posts it.
  if (row === undefined) return new Overtaken({ table: eventsTable, id: event.id });
  if (row.owner !== event.owner || !isSame(row.doc, event.doc)) return { refused: { code: 'event_id_used' } };
  const same = { ...made, doc: row.doc };
  const changes = ask.companions.map((companion) => companion(same));
  if (changes.length === 0) return { made: same, rev: row.rev };
  const commit = await store.commit({ changes, events: [] });
  return commit.outcome === 'committed'
    ? { made: same, rev: commit.rev }
    : { refused: { code: 'idempotency_key_in_use' } };
}

/** Everything but the time, which is that of the first. */
function isSame(one: string, other: string): boolean {
  const [{ created: _first, ...left }, { created: _second, ...right }] = [
    JSON.parse(one),
    JSON.parse(other),
  ] as [Record<string, unknown>, Record<string, unknown>];
  return equalJson(left, right);
}
