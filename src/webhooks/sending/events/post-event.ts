/**
 * POST to `/events`: an event that the application posts. 202, because it is delivered after the response; a repeated
 * event with the same id is the same event, 200.
 *
 * It belongs to the principal that posts it, and to the tenant that it names. Only administrators may post events with
 * the types of collection writes: a receiver that trusts `products.created` must not receive it from any client.
 */

import { type TObject, Type } from 'typebox';
import type { Configuration } from '../../../config/configuration.ts';
import {
  collectionOfType,
  eventTypeFault,
  eventTypeSpelling,
  isOperationalType,
} from '../../../config/event-types.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import type { Json } from '../../../http/syntax/json.ts';
import { parseContent } from '../../../kernel/content/parse-content.ts';
import { closeSchema, compileValidator, type Validator } from '../../../kernel/content/validator.ts';
import { type Item, json, named, type OperationDocumentation } from '../../../kernel/documentation.ts';
import {
  type Ask,
  caused,
  type Made,
  type Operation,
  type Proposal,
  type Result,
  type Standing,
} from '../../../kernel/resource.ts';
import { refusalOf } from '../../../logic/refusal.ts';
import { askOf, contentOf } from '../../../logic/transaction/carry-out.ts';
import type { EmitEvent } from '../../../logic/transaction/transaction.ts';
import { permission } from '../../../model/access.ts';
import { withoutCause } from '../../../model/actor.ts';
import { eventDocument, eventTypeCharactersMax, noCollection } from '../../../model/event.ts';
import { idFor } from '../../../model/id.ts';
import { equalJson, isMembers, type Members } from '../../../model/json-value.ts';
import { isAdministrator, type Principal, principalIdOf, tenantOf } from '../../../model/principal.ts';
import { eventSchema } from '../../../resources/events/event-log-routes.ts';
import type { Services } from '../../../store/capabilities.ts';
import { type Commit, type EventEntry, eventsTable, Overtaken, type Store } from '../../../store/store.ts';
import type { EventTypes } from '../event-types/event-types.ts';

type Posted = {
  readonly type: string;
  readonly object: Members;
  readonly id?: string;
  readonly tenant?: string;
};

type PostedValidators = {
  /** Validates the envelope. */
  read(content: unknown): { readonly posted: Posted } | { readonly problem: Problem };
  /** Validates the object by the schema of its type. */
  payloadProblem(posted: Posted): Problem | undefined;
};

const tenantCharactersMax = 200;
const objectPointer = '/data/object';

/**
 * The content of a posted event: the envelope, whose faults are reported like those of any content, and the object in
 * it, which must fit the schema of its type if one is declared. A fault in the object is always 422.
 */
const eventIdCharactersMax = 128;
/** No full stop: it separates the id from the time in the signed content of Standard Webhooks. */
const eventIdSpelling = /^[A-Za-z0-9_~-]+$/;

const envelope = Type.Object(
  {
    type: Type.String({
      minLength: 1,
      description: '`endpoint` and types that begin with `endpoint.` are reserved for Comity.',
    }),
    data: Type.Object({
      object: Type.Object({}, { additionalProperties: true, description: 'The object of the event.' }),
    }),
    id: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'A repeated request with the same id posts the event only once. By default the server assigns an id.',
      }),
    ),
    tenant: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: tenantCharactersMax,
        description:
          'Tenant of the event. For callers that belong to a tenant: only their own, which is the default.',
      }),
    ),
  },
  { description: 'An event to post.' },
);

/** With the patterns of types and ids, which `nameProblem` checks with better messages. */
const postingSchema: Item = named('EventPosting', {
  ...(closeSchema(envelope) as unknown as Item),
  properties: {
    ...(closeSchema(envelope) as typeof envelope).properties,
    type: {
      ...envelope.properties.type,
      maxLength: eventTypeCharactersMax,
      pattern: eventTypeSpelling.source,
    },
    id: {
      ...envelope.properties.id,
      maxLength: eventIdCharactersMax,
      pattern: eventIdSpelling.source,
    },
  },
});

function createPostedValidators(eventTypes: EventTypes, errorsMax: number): PostedValidators {
  // Compiled with the first event of a type; the types of a collection share one schema. All of them took 10 ms of each start.
  const compiled = new Map<object, Validator>();
  const validatorOf = (schema: TObject): Validator => {
    const validator = compiled.get(schema) ?? compileValidator({ schema, textBounds: [] }, errorsMax);
    compiled.set(schema, validator);
    return validator;
  };
  return {
    read(content) {
      if (!isMembers(content)) {
        const errors = [{ pointer: '', message: 'must be an object' }];
        return { problem: { code: 'validation_failed', errors } };
      }
      const { missing, invalid } = validatorOf(envelope).check(content);
      if (missing.length + invalid.length === 0) return { posted: postedOf(content) };
      const code = missing.length > 0 ? 'field_missing' : 'validation_failed';
      return { problem: { code, errors: [...missing, ...invalid].slice(0, errorsMax) } };
    },
    payloadProblem({ type, object }) {
      const schema = eventTypes.get(type)?.schema;
      if (schema === undefined) return undefined;
      const faults = validatorOf(schema as unknown as TObject).check(object);
      const errors = [...faults.missing, ...faults.invalid].slice(0, errorsMax);
      if (errors.length === 0) return undefined;
      const placed = errors.map(({ pointer, message }) => ({ pointer: objectPointer + pointer, message }));
      return { code: 'validation_failed', errors: placed };
    },
  };
}

/** The event of content that fits the envelope's schema. */
function postedOf(content: Members): Posted {
  const { type, data, id, tenant } = content as { type: string; data: { object: Json } } & Members;
  return {
    type,
    object: data.object as Members,
    ...(typeof id === 'string' ? { id } : {}),
    ...(typeof tenant === 'string' ? { tenant } : {}),
  };
}

type Declared = {
  /** `/api/v1` */
  readonly base: string;
  /** Names of the declared collections. */
  readonly collections: { has(name: string): boolean };
};

export type ProposedEvent = Proposal & { readonly posted: Posted | undefined };

const open: Standing = { exists: true, visible: true, permitted: true };

const documentation: OperationDocumentation = {
  id: 'postEvent',
  summary: 'Post an event',
  description:
    'Comity delivers the event after the response, to every endpoint with a matching pattern. A repeated event with the same id is answered 200, a different event with that id 409. The object must match the schema of the type, if it has one. Comity posts the events of writes to collections itself; only administrators may post events of their types.',
  takes: json(postingSchema, {
    type: 'invoice.paid',
    data: { object: { id: 'inv_1', amount: 3950, currency: 'eur' } },
  }),
  gives: { queued: json(eventSchema), changed: json(eventSchema) },
  queues: 'sometimes',
  madeFields: ['Content-Location'],
  codes: ['field_missing', 'forbidden', 'validation_failed', 'event_id_used'],
};

/** Called once, at start: compiles the schemas of the types. */
export function postEventOperation(
  services: Services,
  { base, collections }: Declared,
  eventTypes: EventTypes,
): Operation<Standing, unknown, ProposedEvent> {
  const { settings } = services;
  const { webhookContentBytesMax: bytesMax } = settings;
  const validators = createPostedValidators(eventTypes, settings.validationErrorsMax);
  return {
    documentation,
    permission: (principal) => permission({ bearing: 'webhooks', rule: 'principal' }, 'create', principal),
    contentTypes: ['application/json'],
    contentBytesMax: bytesMax,
    idempotent: true,
    understand: (_ask, bytes, mediaType) => {
      // Decoded content may exceed the bound although the coded content did not.
      if (bytes.length > bytesMax) {
        const message = `an event may have at most ${bytesMax} bytes`;
        return { ok: false, problem: { code: 'content_too_large', message } };
      }
      return parseContent(bytes, mediaType, undefined, settings);
    },
    standing: () => open,
    propose: ({ principal }, _standing, content) => propose(collections, validators, principal, content),
    act: (ask, _standing, proposal) => {
      if (proposal?.posted === undefined) throw new Error('a posted event requires its proposal');
      return append(services, `${base}/events`, ask, proposal.posted);
    },
  };
}

function propose(
  collections: Declared['collections'],
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
  collections: Declared['collections'],
): Problem | undefined {
  const errors: FieldError[] = [];
  const fault =
    eventTypeFault(type) ??
    (isOperationalType(type)
      ? 'is reserved for Comity; it must not be endpoint or begin with endpoint.'
      : undefined);
  if (fault !== undefined) errors.push({ pointer: '/type', message: fault });
  if (id !== undefined && !isEventId(id)) {
    errors.push({ pointer: '/id', message: 'must be 1 to 128 letters, digits, _, ~ or -, and not expunge' });
  }
  if (errors.length > 0) return { code: 'validation_failed', errors };
  if (isAdministrator(principal) || collectionOfType(type, collections) === undefined) return undefined;
  return {
    code: 'forbidden',
    message: 'only administrators may post events of the types that writes to a collection post',
  };
}

/** `expunge` is the path of an action. */
function isEventId(id: string): boolean {
  return id.length <= eventIdCharactersMax && eventIdSpelling.test(id) && id !== 'expunge';
}

/** A member of a tenant may post only for that tenant. */
function tenantProblem({ tenant }: Posted, principal: Principal): Problem | undefined {
  if (isAdministrator(principal) || principal.kind === 'anonymous') return undefined;
  if (tenant === undefined || principal.tenant === null || tenant === principal.tenant) return undefined;
  return { code: 'forbidden', message: 'tenant must be your own tenant' };
}

function withTenant(posted: Posted, principal: Principal): Posted {
  if (posted.tenant !== undefined || isAdministrator(principal)) return posted;
  const own = tenantOf(principal);
  return own === null ? posted : { ...posted, tenant: own };
}

async function append(
  { store, clock, newId }: Services,
  path: string,
  ask: Ask,
  posted: Posted,
): Promise<Result> {
  const at = clock();
  const id = posted.id ?? idFor('event', newId);
  const event = postedEntry(posted, { id, at, owner: principalIdOf(ask.principal) });
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
  const commit = await store.commit({ changes, events: caused([event], ask) });
  if (commit.outcome === 'committed') return { made, rev: commit.rev };
  if (commit.outcome !== 'superseded') throw new Error(`the event could not be stored: ${commit.outcome}`);
  // A superseded companion means that another process took this request over and responds to it.
  if (commit.change < changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  return again(store, ask, event, commit, { ...made, created: false, queued: false });
}

/** The event as stored. `at` in milliseconds since the epoch. */
function postedEntry(
  { type, tenant, object }: Posted,
  { id, at, owner }: { readonly id: string; readonly at: number; readonly owner: string | null },
): EventEntry {
  const doc = eventDocument(id, type, at, JSON.stringify(object), tenant);
  return { id, type, collection: noCollection, owner, doc, createdAt: at };
}

/** Responds when the id is taken: by this very event, or by another. */
async function again(
  store: Store,
  ask: Ask,
  event: EventEntry,
  { current }: Extract<Commit, { outcome: 'superseded' }>,
  made: Made,
): Promise<Result> {
  const row = current ?? (await store.read(eventsTable, event.id));
  // Purged in between: the walk runs again and posts it.
  if (row === undefined) return new Overtaken({ table: eventsTable, id: event.id });
  if (row.owner !== event.owner || !isSame(withoutCause(row.doc), event.doc))
    return { refused: { code: 'event_id_used' } };
  const same = { ...made, doc: withoutCause(row.doc) };
  const changes = ask.companions.map((companion) => companion(same));
  if (changes.length === 0) return { made: same, rev: row.rev };
  const commit = await store.commit({ changes, events: [] });
  return commit.outcome === 'committed'
    ? { made: same, rev: commit.rev }
    : { refused: { code: 'idempotency_key_in_use' } };
}

/** Compares everything but the time, which is that of the first. */
function isSame(one: string, other: string): boolean {
  const [{ created: _first, ...left }, { created: _second, ...right }] = [
    JSON.parse(one),
    JSON.parse(other),
  ] as [Record<string, unknown>, Record<string, unknown>];
  return equalJson(left, right);
}

/* An event that an application's function emits: checked like a POST to `/events`, and appended with the function's unit. */

/** The schemas of event types are compiled when a function first emits. */
export function createEmitEvent(
  services: Services,
  configuration: Pick<Configuration, 'base' | 'collections'>,
  eventTypes: EventTypes,
): EmitEvent {
  let operation: ReturnType<typeof postEventOperation> | undefined;
  return async ({ type, tenant, object: given }, principal) => {
    operation ??= postEventOperation(services, configuration, eventTypes);
    const ask = askOf(principal, []);
    const object: unknown = typeof given === 'string' ? JSON.parse(given) : given;
    const content = JSON.stringify({ type, data: { object }, ...(tenant === undefined ? {} : { tenant }) });
    const understood = await contentOf(operation, ask, content);
    const proposal = await operation.propose?.(ask, await operation.standing(ask), understood);
    if (proposal === undefined || proposal.problem !== null)
      throw refusalOf(proposal?.problem ?? { code: 'internal' });
    const { posted } = proposal;
    if (posted === undefined) throw new Error('a proposed event requires its content');
    // Without an owner, like resources that a handler creates; administrators and the members of its tenant see it.
    const at = services.clock();
    return { entry: (id) => postedEntry(posted, { id, at, owner: null }), characters: content.length };
  };
}
