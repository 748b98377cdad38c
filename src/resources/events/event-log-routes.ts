/**
 * The resources `events` and `events/{id}` (§6): the event log as a list, event by event, and as a stream. Another
 * feature provides the POST that publishes events.
 */
import { hash } from 'node:crypto';
import { json, type OperationDocumentation, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import { asksForStream } from '../../kernel/message-facts.ts';
import type {
  Ask,
  Operation,
  Representation,
  Resource,
  Standing,
  Validators,
} from '../../kernel/resource.ts';
import type { Collection } from '../../model/collection.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
import { audienceOf, type Principal, principalIdOf } from '../../model/principal.ts';
import type { OpenConnections } from '../../observe/open-connections.ts';
import {
  eventsTable,
  type LogPosition,
  type MaybePromise,
  type Store,
  whenKnown,
} from '../../store/store.ts';
import {
  type ListOptions,
  type ListProposal,
  listOperation,
  proposeList,
} from '../collection/list-answer.ts';
import { projection, withMemberAt } from '../query/project.ts';
import type { Selected } from '../query/selection.ts';
import { eventExample, eventSchema, eventsTag } from './event-schema.ts';
import { readFeed, readFeedQuery, streamProblem } from './feed.ts';
import { reachOf } from './leaving.ts';
import { expired, type LogPlaces } from './log-places.ts';
import { eventTag, type LogView, seenEvent, typeOf } from './seen-event.ts';
import { type BatchReader, createSharedBatches, streamFilter } from './shared-batches.ts';
import { openEventStream, positionAfter, type StreamLimits, WriteTurns } from './stream.ts';
import { allEventFields, eventFields, visibleEvents } from './visibility.ts';
import { type WithholdsFrom, withoutText } from './withheld-text.ts';

type EventStanding = Standing & { readonly doc: string; readonly tag: string };

const missing: EventStanding = { exists: false, visible: false, permitted: false, doc: '', tag: '' };
const cacheControl = 'private, no-cache';
/** Events that a stream reads from the log at a time. */
const batchEventsMax = 100;

export type EventsOptions = {
  readonly store: Store;
  readonly path: string;
  readonly collections: readonly Collection[];
  readonly list: Omit<ListOptions, 'permission' | 'cacheControl' | 'path'>;
  readonly streamLimits: StreamLimits;
  /** The view that a principal has of events. */
  readonly views: (principal: Principal) => LogView;
  /** The same for streams, which go on where a hook fails. */
  readonly streamViews: (principal: Principal) => LogView;
  readonly withholds: WithholdsFrom;
  readonly places: LogPlaces;
  /** Seconds for which an empty page of the feed is held at most. */
  readonly eventsWaitSecondsMax: number;
  readonly connections: Pick<OpenConnections, 'enter'>;
  /** The POST of an event; absent: 405. */
  readonly post?: Operation | undefined;
};

export function eventResources(options: EventsOptions): readonly Resource[] {
  const { post } = options;
  return [
    {
      pattern: options.path,
      documentation: { name: 'Events', noun: 'the events', tag: eventsTag },
      operations: new Map([
        ['GET', logOperation(options) as Operation],
        ...(post === undefined ? [] : [['POST', post] as const]),
      ]),
      constantFields: [],
      offers: ['application/json', 'text/event-stream'],
    },
    {
      pattern: `${options.path}/{id}`,
      documentation: {
        name: 'Event',
        noun: 'an event',
        tag: eventsTag,
        parameters: [pathParameter('id', 'Id of the event.')],
      },
      operations: new Map([['GET', eventOperation(options) as Operation]]),
      constantFields: [],
      offers: ['application/json'],
    },
  ];
}

function logDocumentation(limits: ListOptions['limits'], waitSecondsMax: number): OperationDocumentation {
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
    listed: { fields: allEventFields, tag: eventTag.name, limits },
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
    representationFields: ['Comity-Plan', 'Comity-Position', 'Link', 'X-Total-Count'],
    codes: ['query_parameter_invalid', 'position_expired'],
  };
}

type LogProposal = ListProposal & { readonly feed?: { readonly from: LogPosition; readonly rest: string } };

/** Open to every caller: visibility is decided for each event. */
function logOperation(options: EventsOptions): Operation<Standing, never, LogProposal> {
  const { store, path, places, streamLimits } = options;
  const list: ListOptions = { ...options.list, path, cacheControl, permission: () => 'granted' };
  const { batchBytesMax } = streamLimits;
  const batches = createSharedBatches({ store, batchEventsMax, batchBytesMax });
  const turns = new WriteTurns();
  const whole = listOperation(list);

  const following = (ask: Ask, query: string) => follow(options, list, ask, query);

  return {
    ...whole,
    documentation: logDocumentation(options.list.limits, options.eventsWaitSecondsMax),
    propose: (ask) => {
      const isStream = asksForStream(ask.request.fields.accept);
      const meaningless = isStream ? streamProblem(ask.query ?? '') : undefined;
      if (meaningless !== undefined) return { ...unread, problem: meaningless };
      const feed = readFeedQuery(ask.query ?? '');
      if (feed === undefined) return whole.propose?.(ask, open, undefined) ?? unread;
      if ('problem' in feed) return { ...unread, ...feed };
      const { problem } = proposeList(list, feed.rest, ask.principal);
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
      const { asked, reader, onEnd, stands, enter } = following(ask, rest);
      const page = { limit: asked?.limit ?? options.list.limits.listLimitDefault };
      const isHead = ask.request.method === 'HEAD';
      const waitSeconds = isHead ? 0 : Math.min(ask.preferences.waitSeconds, options.eventsWaitSecondsMax);
      return readFeed(
        { store, places, batches, turns, path, limits: streamLimits },
        {
          ...{ from, rest, waitSeconds, onEnd, stands, enter },
          reader: { ...reader, key: `page ${reader.key}`, page },
          memory: ask.request.memory,
        },
      );
    },
    stream: (ask) => {
      const feed = readFeedQuery(ask.query ?? '');
      const { after, rest } =
        feed === undefined || 'problem' in feed ? { after: 'now', rest: ask.query ?? '' } : feed;
      return openEventStream(store, {
        ...following(ask, rest),
        ...{ batches, turns, places, limits: streamLimits },
        // A browser that reconnects repeats the first request with the field.
        after: ask.request.fields.lastEventId ?? after,
      });
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
function follow(options: EventsOptions, list: ListOptions, ask: Ask, query: string) {
  const { known } = ask;
  const asked = proposeList(list, query, ask.principal).list?.prepared.asked;
  const reach = reachOf(options.collections, ask.principal);
  const requested = asked?.filter ?? always;
  const reader: BatchReader = {
    key: `${audienceOf(ask.principal)} ${query}`,
    filter: streamFilter(reach, requested),
    shown: shownOf(asked),
    ...{ reach, requested },
    view: options.streamViews(ask.principal),
    withholds: options.withholds(ask.principal),
    party: ask.party,
  };
  return {
    asked,
    reader,
    stands: known?.stands,
    onEnd: known === undefined ? undefined : (listener: () => void) => known.onEnd(listener),
    enter: (octets: () => number) =>
      options.connections.enter({
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

const open: Standing = { exists: true, visible: true, permitted: true };
const unread: LogProposal = { problem: null, list: undefined };
/** A page of the feed is read once. */
const noValidators: Validators = { tag: null, modifiedAt: null, cacheControl: 'no-store' };

function eventOperation(options: EventsOptions): Operation<EventStanding> {
  const { store, collections } = options;
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
      const [isWithheld] = (await options.withholds(ask.principal)?.([{ type, doc: row.doc }])) ?? [];
      const text = isWithheld === true ? withoutText(row.doc) : row.doc;
      const doc = seenEvent(options.views(ask.principal), type, text, row.owner);
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
