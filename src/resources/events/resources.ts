/**
 * `events` and `events/{id}` (§6): the log of everything that happened, as a list, one by one, and as a stream.
 */
import type { Collection } from '../../model/collection.ts';
import { allOf, anyOf, type Filter } from '../../model/filter.ts';
import type { Store } from '../../store/store.ts';
import { eventsTable } from '../../store/store.ts';
import type { ListProposal } from '../collection/list.ts';
import { type ListOptions, listOperation, proposeList } from '../collection/list.ts';
import type { Operation, Resource, Standing } from '../resource.ts';
import { openEventStream, type StreamLimits } from './stream.ts';
import { eventFields, visibleEvents } from './visibility.ts';

type EventStanding = Standing & { readonly doc: string; readonly rev: number };

const missing: EventStanding = { exists: false, visible: false, permitted: false, doc: '', rev: 0 };
const cacheControl = 'private, no-cache';

export type EventsOptions = {
  readonly store: Store;
  readonly path: string;
  readonly collections: readonly Collection[];
  readonly list: Omit<ListOptions, 'permission' | 'cacheControl' | 'path'>;
  readonly streamLimits: StreamLimits;
};

export function eventResources(options: EventsOptions): readonly Resource[] {
  return [
    {
      pattern: options.path,
      operations: new Map([['GET', logOperation(options) as Operation]]),
      constantFields: [],
      offers: ['application/json', 'text/event-stream'],
    },
    {
      pattern: `${options.path}/{id}`,
      operations: new Map([['GET', eventOperation(options) as Operation]]),
      constantFields: [],
      offers: ['application/json'],
    },
  ];
}

/** Open to anyone: what a principal may see of the log is decided event by event. */
function logOperation(options: EventsOptions): Operation<Standing, never, ListProposal> {
  const { store, path, collections, streamLimits } = options;
  const list: ListOptions = { ...options.list, path, cacheControl, permission: () => 'granted' };
  return {
    ...listOperation(list),
    stream: (ask) => {
      const proposal = proposeList(list, ask.query ?? '');
      const asked = proposal.list?.prepared.asked.filter ?? { op: 'always' };
      const filter = allOf([visibleEvents(collections, ask.principal), asked]);
      return openEventStream(store, filter, ask.request.fields.lastEventId, streamLimits);
    },
  };
}

function eventOperation(options: EventsOptions): Operation<EventStanding> {
  const { store, collections } = options;
  return {
    permission: () => 'depends',
    // A read by id must apply the same filter as the list, so it asks the store the same way.
    standing: async (ask) => {
      const id = ask.captures[0] ?? '';
      const row = await store.read(eventsTable, id);
      if (row === undefined) return missing;
      const field = eventFields.get('id');
      if (field === undefined) return missing;
      const only: Filter = { op: 'eq', field, value: id };
      const filter = allOf([visibleEvents(collections, ask.principal), anyOf([only])]);
      const visible = (await store.count(eventsTable, filter)) > 0;
      return { exists: true, visible, permitted: visible, doc: row.doc, rev: row.rev };
    },
    validators: (_ask, standing) => ({ tag: String(standing.rev), modifiedAt: null, cacheControl }),
    represent: (_ask, standing) => ({
      content: standing.doc,
      mediaType: 'application/json',
      validators: { tag: String(standing.rev), modifiedAt: null },
      cacheControl,
    }),
  };
}
