/**
 * The resources `events` and `events/{id}` (§6): the event log as a list, event by event, and as a stream. Another
 * feature provides the POST that publishes events.
 */
import { hash } from 'node:crypto';
import {
  json,
  named,
  type OperationDocumentation,
  pageSchema,
  pathParameter,
  type Tag,
} from '../../kernel/documentation.ts';
import { asksForStream } from '../../kernel/message-facts.ts';
import type {
  Ask,
  Operation,
  Representation,
  Resource,
  Standing,
  Validators,
} from '../../kernel/resource.ts';
import { actorKinds } from '../../model/actor.ts';
import type { Collection } from '../../model/collection.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
import { audienceOf, isAdministrator, type Principal, principalIdOf } from '../../model/principal.ts';
import type { Observe } from '../../observe/observation.ts';
import type { OpenConnections } from '../../observe/open-connections.ts';
import { eventsTable, type LogPosition, type MaybePromise, whenKnown } from '../../store/store.ts';
import { type ListProposal, listFields, listOperation, proposeList } from '../collection/list-answer.ts';
import type { Listing } from '../collection/listing.ts';
import { openStanding, type Serving } from '../collection/served-collection.ts';
import type { ShowDocs } from '../collection/view.ts';
import { projection, type Selected, withMemberAt } from '../query/selection.ts';
import { reachOf } from './disclosure.ts';
import { readFeed, readFeedQuery, streamProblem } from './feed.ts';
import { createLogPlaces, expired } from './log-places.ts';
import {
  createLogViews,
  createWithholds,
  eventTag,
  type LogView,
  seenEvent,
  showEvents,
  typeOf,
  type WithholdsFrom,
  withoutText,
} from './seen-event.ts';
import { type BatchReader, createSharedBatches, streamFilter } from './shared-batches.ts';
import { openEventStream, positionAfter, type SharedLog, WriteTurns } from './stream.ts';
import { allEventFields, eventFields, visibleEvents } from './visible-events.ts';

type EventStanding = Standing & { readonly doc: string; readonly tag: string };

const missing: EventStanding = { exists: false, visible: false, permitted: false, doc: '', tag: '' };
const cacheControl = 'private, no-cache';
/** Events that a stream reads from the log at a time. */
const batchEventsMax = 100;

/** The log with what serves it; made once. */
type EventLog = SharedLog & {
  readonly path: string;
  readonly collections: readonly Collection[];
  readonly listing: Listing;
  /** The view that a principal has of events. */
  readonly views: (principal: Principal) => LogView;
  /** The same for streams, which go on where a hook fails. */
  readonly streamViews: (principal: Principal) => LogView;
  readonly withholds: WithholdsFrom;
  /** Seconds for which an empty page of the feed is held at most. */
  readonly waitSecondsMax: number;
  readonly connections: Pick<OpenConnections, 'enter'>;
};

type Surroundings = Pick<EventLog, 'connections'> & {
  readonly mac: (text: string) => string;
  /** Receives failures of hooks that no response can tell. */
  readonly observe?: Observe;
};

export function createEventLog(serving: Serving, { connections, mac, observe }: Surroundings): EventLog {
  const { store, settings } = serving;
  const collections = [...serving.collections.values()];
  const views = createLogViews(collections);
  const withholds = createWithholds(store, collections);
  const limits = { batchBytesMax: settings.eventBatchBytesMax, heartbeatMs: settings.streamHeartbeatMs };
  const path = `${serving.base}/events`;
  return {
    ...{ store, limits, path, collections, views, withholds, connections },
    streamViews: createLogViews(collections, (error) => observe?.({ kind: 'hook-failed', error })),
    waitSecondsMax: settings.eventsWaitSecondsMax,
    places: createLogPlaces(store, mac),
    batches: createSharedBatches(store, { batchEventsMax, batchBytesMax: limits.batchBytesMax }),
    turns: new WriteTurns(),
    listing: serving.listingOf({
      ...{ table: eventsTable, fields: eventFields, tag: eventTag, searched: false, path, cacheControl },
      permission: () => 'granted',
      visibility: (principal) => visibleEvents(collections, principal),
      // No path of a query leads from an event, but rules may lead beyond references.
      ...(collections.some(({ relates }) => relates === true)
        ? { related: { seen: (filter: Filter) => filter } }
        : {}),
      view: (principal) => {
        const view = views(principal);
        const isAdmin = isAdministrator(principal);
        const show = showEvents(serving, view, withholds(principal));
        return {
          mark: isAdmin ? 'a' : '',
          fields: isAdmin ? allEventFields : eventFields,
          show: isAdmin && view.hides === undefined ? asStored(show) : show,
        };
      },
    }),
  };
}

/** Shows events as they are stored, without looking at them unless their entity tags are asked for. */
function asStored(show: ShowDocs): ShowDocs {
  return (docs, heads) => (heads === undefined ? { docs } : show(docs, heads));
}

/** @param post the POST of an event; undefined: 405 */
export function eventResources(log: EventLog, post: Operation | undefined): readonly Resource[] {
  return [
    {
      pattern: log.path,
      documentation: { name: 'Events', tag: eventsTag },
      operations: new Map([
        ['GET', logOperation(log) as Operation],
        ...(post === undefined ? [] : [['POST', post] as const]),
      ]),
      constantFields: [],
      offers: ['application/json', 'text/event-stream'],
    },
    {
      pattern: `${log.path}/{id}`,
      documentation: {
        name: 'Event',
        tag: eventsTag,
        parameters: [pathParameter('id', 'Id of the event.')],
      },
      operations: new Map([['GET', eventOperation(log) as Operation]]),
      constantFields: [],
      offers: ['application/json'],
    },
  ];
}

function logDocumentation({ listing, waitSecondsMax }: EventLog): OperationDocumentation {
  const page = pageSchema('EventLog', 'A page of the event log.', eventSchema);
  // OpenAPI 3.2 describes each item of a stream; the 3.1 view describes text.
  const itemSchema = {
    type: 'object',
    properties: {
      id: { type: 'string' },
      event: { type: 'string' },
      data: { type: 'string', contentMediaType: 'application/json', contentSchema: eventSchema },
    },
    required: ['id', 'event', 'data'],
  };
  return {
    id: 'listEvents',
    summary: 'List or follow events',
    description:
      'With `Accept: text/event-stream` the response streams new events, after Last-Event-ID or from now on; events of the types `left` and `entered` name resources that the caller may no longer read, or may read from now on. A stream takes filters, `fields` and `after`. Contains only events about resources that the caller may read. Only administrators may name `actor` and `requestId`.',
    listed: { fields: allEventFields, tag: eventTag.name, limits: listing.limits },
    gives: {
      representation: json(page, { items: [eventExample], nextCursor: null }),
      stream: { 'text/event-stream': { itemSchema } },
    },
    parameters: [
      {
        name: 'after',
        in: 'query',
        description: `Reads the log in the order of commits, after this place: a \`nextCursor\` of such a page, a \`Comity-Position\` of a list, or the id of an event; empty: from the oldest event; \`now\`: the next ones. \`nextCursor\` is then always a string, from which the log goes on. A page may be short or empty while more follow, also without a \`Link\`. With \`Prefer: wait=SECONDS\` an empty page is held until something follows, at most ${waitSecondsMax} seconds. A place that is unknown or no longer kept is answered 410. Without \`sort\`, \`order\`, \`page\` and \`cursor\`.`,
        schema: { type: 'string' },
      },
    ],
    representationFields: listFields,
    codes: ['query_parameter_invalid', 'position_expired'],
  };
}

type LogProposal = ListProposal & { readonly feed?: { readonly from: LogPosition; readonly rest: string } };

/** Open to every caller: visibility is decided for each event. */
function logOperation(log: EventLog): Operation<Standing, never, LogProposal> {
  const { store, path, places, listing } = log;
  const whole = listOperation(listing);
  return {
    ...whole,
    documentation: logDocumentation(log),
    propose: (ask) => {
      const isStream = asksForStream(ask.request.fields.accept);
      const meaningless = isStream ? streamProblem(ask.query ?? '') : undefined;
      if (meaningless !== undefined) return { ...unread, problem: meaningless };
      const feed = readFeedQuery(ask.query ?? '');
      if (feed === undefined) return whole.propose?.(ask, openStanding, undefined) ?? unread;
      if ('problem' in feed) return { ...unread, ...feed };
      const { principal, now } = ask;
      const { problem } = proposeList(listing, { principal, now, query: feed.rest });
      if (problem !== null || isStream) return { ...unread, problem };
      return whenKnown(
        positionAfter(places, feed.after, () => store.head()),
        (from) =>
          from === undefined
            ? { ...unread, problem: { code: expired } }
            : { ...unread, feed: { from, rest: feed.rest } },
      );
    },
    validators: (ask, standing, proposal) =>
      proposal?.feed === undefined
        ? (whole.validators?.(ask, standing, proposal) ?? noValidators)
        : noValidators,
    represent: (ask, standing, proposal) => {
      if (proposal?.feed === undefined) return representWhole(whole, ask, standing, proposal);
      const { from, rest } = proposal.feed;
      const { asked, ...follower } = follow(log, ask, rest);
      const page = { limit: asked?.limit ?? listing.limits.listLimitDefault };
      const reader = { ...follower.reader, key: `page ${follower.reader.key}`, page };
      const isHead = ask.request.method === 'HEAD';
      const waitSeconds = isHead ? 0 : Math.min(ask.preferences.waitSeconds, log.waitSecondsMax);
      const { memory } = ask.request;
      return readFeed(log, { ...follower, reader }, path, { from, rest, waitSeconds, memory });
    },
    stream: (ask) => {
      const feed = readFeedQuery(ask.query ?? '');
      const { after, rest } =
        feed === undefined || 'problem' in feed ? { after: 'now', rest: ask.query ?? '' } : feed;
      // A browser that reconnects repeats the first request with the field.
      return openEventStream(log, follow(log, ask, rest), ask.request.fields.lastEventId ?? after);
    },
  };
}

/** Shows an event as `fields` selects its members. */
function shownOf(asked: Selected | undefined): NonNullable<BatchReader['shown']> {
  const { select, tag: tagged } = asked ?? {};
  const selected = select === undefined ? (doc: string) => doc : projection(select);
  return ({ doc, tag }) => {
    const shown = selected(doc);
    return tagged === undefined || tag === undefined ? shown : withMemberAt(shown, tagged.path, tag);
  };
}

/** The part that a stream and the feed share: the view that the caller has of the log. */
function follow(log: EventLog, ask: Ask, query: string) {
  const { known, principal, now } = ask;
  const asked = proposeList(log.listing, { principal, now, query }).list?.prepared.asked;
  const reach = reachOf(log.collections, ask.principal);
  const requested = asked?.filter ?? always;
  const reader: BatchReader = {
    key: `${audienceOf(ask.principal)} ${query}`,
    filter: streamFilter(reach, requested),
    shown: shownOf(asked),
    ...{ reach, requested },
    view: log.streamViews(ask.principal),
    withholds: log.withholds(ask.principal),
    party: ask.party,
  };
  return {
    asked,
    reader,
    stands: known?.stands,
    onEnd: known === undefined ? undefined : (listener: () => void) => known.onEnd(listener),
    enter: (octets: () => number) =>
      log.connections.enter({
        ...{ kind: 'stream', principal: principalIdOf(ask.principal), peer: ask.request.peer },
        about: () => ask.query ?? '',
        octets,
      }),
  };
}

function representWhole(
  { represent }: ReturnType<typeof listOperation>,
  ...stage: readonly [Ask, Standing, ListProposal | undefined]
): MaybePromise<Representation> {
  if (represent === undefined) throw new Error('a list has a representation');
  return represent(...stage);
}

const unread: LogProposal = { problem: null, list: undefined };
/** A page of the feed is read once. */
const noValidators: Validators = { tag: null, modifiedAt: null, cacheControl: 'no-store' };

function eventOperation(log: EventLog): Operation<EventStanding> {
  const { store, collections } = log;
  return {
    documentation: {
      id: 'readEvent',
      summary: 'Read an event',
      mayBeMissing: true,
      mayBeHidden: true,
      gives: { representation: json(eventSchema, eventExample) },
    },
    permission: () => 'depends',
    // Counting with the filter of the list guarantees the same visibility.
    standing: async (ask) => {
      const id = ask.captures[0] ?? '';
      const row = await store.read(eventsTable, id);
      if (row === undefined) return missing;
      const field = eventFields.get('id');
      if (field === undefined) return missing;
      const only: Filter = { op: 'eq', field, value: id };
      const filter = allOf([visibleEvents(collections, ask.principal), anyOf([only])]);
      const visible = (await store.count(eventsTable, filter, ask.party)) > 0;
      const type = typeOf(row.doc);
      const [isWithheld] = (await log.withholds(ask.principal)?.([{ type, doc: row.doc }])) ?? [];
      const text = isWithheld === true ? withoutText(row.doc) : row.doc;
      const doc = seenEvent(log.views(ask.principal), type, text, row.owner);
      // A principal that sees fewer members gets another entity tag, because the tag is strong (RFC 9110 §8.8.1).
      const tag =
        doc === row.doc ? String(row.rev) : `${row.rev}.${hash('sha256', doc, 'base64url').slice(0, 8)}`;
      return { exists: true, visible, permitted: visible, doc, tag };
    },
    validators: (_ask, { tag }) => ({ tag, modifiedAt: null, cacheControl }),
    represent: (_ask, standing) => ({
      content: standing.doc,
      mediaType: 'application/json',
      validators: { tag: standing.tag, modifiedAt: null },
      cacheControl,
    }),
  };
}

// The schema of an event (§2.6) in the OpenAPI document, for every resource that returns events.

export const eventsTag: Tag = {
  name: 'events',
  description: 'The event log, as a list and as a stream.',
};

export const eventSchema = named('Event', {
  description: 'An event.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { const: 'event' },
    type: {
      type: 'string',
      description:
        '`{collection}.created`, `.updated` or `.deleted`; `endpoint.*`; or the type of a posted event.',
    },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    actor: {
      type: 'object',
      description:
        'Who caused the event. Shown to administrators, to the principal itself, and, without `keyId`, to the readers of a collection that shows its actors.',
      properties: {
        kind: { enum: [...actorKinds] },
        id: {
          type: ['string', 'null'],
          description: 'Id of the principal, or name of the function; null for anonymous callers and Comity.',
        },
        keyId: { type: 'string', description: 'The API key that was used.' },
      },
      required: ['kind', 'id'],
    },
    requestId: {
      type: 'string',
      description:
        'The request that caused the event, as in the log. Shown to administrators and to its caller.',
    },
    traceparent: {
      type: 'string',
      description:
        'The span in which the event was caused (W3C Trace Context), if it was traced; shown as `requestId` is.',
    },
    tenant: { type: 'string', description: 'Tenant of the event, if it was posted for one.' },
    data: {
      type: 'object',
      properties: {
        object: {
          type: 'object',
          description: 'The resource at the time of the event, or the object of a posted event.',
        },
      },
      required: ['object'],
    },
  },
  required: ['id', 'object', 'type', 'created', 'data'],
});

const eventExample = {
  id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
  object: 'event',
  type: 'products.created',
  created: 1_785_576_600,
  data: { object: { id: '01k1jx7v2mq7w1z5x3r8t2y6pb' } },
};
