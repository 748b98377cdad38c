/**
 * The resources `events` and `events/{id}` (§6): the event log as a list, event by event, and as a stream. Another
 * feature provides the POST that publishes events.
 */
import { hash } from 'node:crypto';
import { json, type OperationDocumentation, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import type { Operation, Resource, Standing } from '../../kernel/resource.ts';
import type { Collection } from '../../model/collection.ts';
import { allOf, anyOf, type Filter } from '../../model/filter.ts';
import { audienceOf, type Principal, principalIdOf } from '../../model/principal.ts';
import type { OpenConnections } from '../../observe/open-connections.ts';
import { eventsTable, type Store } from '../../store/store.ts';
import {
  type ListOptions,
  type ListProposal,
  listOperation,
  proposeList,
} from '../collection/list-answer.ts';

import { eventExample, eventSchema, eventsTag } from './event-schema.ts';
import { reachOf } from './leaving.ts';
import { type LogView, seenEvent, typeOf } from './seen-event.ts';
import { createSharedBatches, streamFilter } from './shared-batches.ts';
import { openEventStream, type StreamLimits, WriteTurns } from './stream.ts';
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

function logDocumentation(limits: ListOptions['limits']): OperationDocumentation {
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
      'With `Accept: text/event-stream` the response streams new events, after Last-Event-ID or from now on; events of the types `left` and `entered` name resources that the caller may no longer read, or may read from now on. Contains only events about resources that the caller may read. Only administrators may name `actor` and `requestId`.',
    listed: { fields: allEventFields, limits },
    gives: {
      representation: json(page, { items: [eventExample], nextCursor: null }),
      stream: { 'text/event-stream': { itemSchema } },
    },
    representationFields: ['Comity-Plan', 'Link', 'X-Total-Count'],
    codes: ['query_parameter_invalid'],
  };
}

/** Open to every caller: visibility is decided for each event. */
function logOperation(options: EventsOptions): Operation<Standing, never, ListProposal> {
  const { store, path, collections, streamLimits } = options;
  const list: ListOptions = { ...options.list, path, cacheControl, permission: () => 'granted' };
  const { batchBytesMax } = streamLimits;
  const batches = createSharedBatches({ store, batchEventsMax, batchBytesMax });
  const turns = new WriteTurns();
  return {
    ...listOperation(list),
    documentation: logDocumentation(options.list.limits),
    stream: (ask) => {
      const { known } = ask;
      const proposal = proposeList(list, ask.query ?? '', ask.principal);
      const reach = reachOf(collections, ask.principal);
      const requested = proposal.list?.prepared.asked.filter ?? { op: 'always' };
      return openEventStream(store, {
        reader: {
          key: `${audienceOf(ask.principal)} ${ask.query ?? ''}`,
          filter: streamFilter(reach, requested),
          ...{ reach, requested },
          view: options.streamViews(ask.principal),
          withholds: options.withholds(ask.principal),
          party: ask.party,
        },
        ...{ batches, turns },
        lastEventId: ask.request.fields.lastEventId,
        onEnd: known === undefined ? undefined : (listener) => known.onEnd(listener),
        limits: streamLimits,
        enter: (octets) =>
          options.connections.enter({
            ...{ kind: 'stream', principal: principalIdOf(ask.principal), peer: ask.request.peer },
            about: () => ask.query ?? '',
            octets,
          }),
      });
    },
  };
}

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
