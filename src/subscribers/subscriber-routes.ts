/** `/subscribers`: the declared subscribers and how far they are, for administrators. Their messages are at `/received`. */
import type { Configuration } from '../config/configuration.ts';
import type { DeclaredSubscriber } from '../config/subscribers.ts';
import { type Item, json, named, pageSchema, pathParameter, type Tag } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import { type Permission, permission } from '../model/access.ts';
import type { Filter } from '../model/filter.ts';
import type { Principal } from '../model/principal.ts';
import type { Received } from '../model/received.ts';
import type { Services } from '../store/capabilities.ts';
import { receivedCollection } from '../webhooks/receiving/received-tables.ts';
import { type DeclaredItem, declaredList } from '../webhooks/routes/declared-list.ts';
import { missing, shown, shownResource } from '../webhooks/routes/shown-resource.ts';
import { DueRows, dueIndexOf } from '../work/due-rows.ts';

export type DeclaredSubscribers = Pick<Configuration, 'base' | 'subscribers'>;

export type ShownSubscriber = {
  readonly name: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly ordered: boolean;
  readonly schedule: readonly number[];
  readonly inFlightMax: number | null;
  readonly pending: number;
  readonly failed: number;
  readonly lagSeconds: number;
};

export const subscribersTag: Tag = {
  name: 'subscribers',
  description: 'The declared subscribers and how far they are.',
};
export const subscriberParameter = pathParameter('name', 'Name of the subscriber, as in the configuration.');

const count: Item = { type: 'integer', minimum: 0 };

const subscriberSchema = named('Subscriber', {
  description: 'A declared subscriber.',
  type: 'object',
  properties: {
    name: { type: 'string' },
    description: { type: 'string' },
    events: { type: 'array', items: { type: 'string' }, description: 'Patterns of event types.' },
    ordered: { type: 'boolean', description: '`true`: events with the same key are handled in their order.' },
    schedule: {
      type: 'array',
      items: { type: 'number' },
      description: 'Seconds from each failed attempt to the next.',
    },
    inFlightMax: {
      type: ['integer', 'null'],
      description: 'Null: `COMITY_SENDER_IN_FLIGHT_DEFAULT` applies.',
    },
    pending: { ...count, description: 'Messages that are not processed yet.' },
    failed: { ...count, description: 'Messages without a further attempt.' },
    lagSeconds: {
      type: 'number',
      minimum: 0,
      description: 'For how long the first of the pending messages has been due.',
    },
  },
  required: [
    ...['name', 'description', 'events', 'ordered', 'schedule', 'inFlightMax'],
    ...['pending', 'failed', 'lagSeconds'],
  ],
});

const subscriberExample: ShownSubscriber = {
  name: 'reopen',
  description: 'Reopens a ticket with a new comment.',
  events: ['comments.created'],
  ordered: true,
  schedule: [5, 30, 120, 300, 1800, 7200, 18_000, 72_000],
  inFlightMax: null,
  pending: 3,
  failed: 0,
  lagSeconds: 0.2,
};

export function subscriberResources(
  services: Services,
  { base, subscribers }: DeclaredSubscribers,
): readonly Resource[] {
  const path = `${base}/subscribers`;
  const textOf = subscriberTexts(services);
  const items = (): Promise<readonly DeclaredItem[]> =>
    Promise.all(
      [...subscribers.values()].map(async (each) => ({ name: each.name, text: await textOf(each) })),
    );
  return [
    declaredList(path, mayRead, items, services.settings, {
      ...{ name: 'Subscribers', noun: 'the subscribers', tag: subscribersTag },
      list: {
        id: 'listSubscribers',
        summary: 'List the declared subscribers',
        gives: {
          representation: json(
            pageSchema('Subscribers', 'A page of declared subscribers.', subscriberSchema),
            {
              items: [subscriberExample],
              nextCursor: null,
            },
          ),
        },
      },
    }),
    shownResource(
      `${path}/{name}`,
      mayRead,
      async ({ captures: [name = ''] }) => {
        const subscriber = subscribers.get(name);
        return subscriber === undefined ? missing : shown(await textOf(subscriber));
      },
      {
        ...{ name: 'Subscriber', noun: 'a subscriber', tag: subscribersTag },
        parameters: [subscriberParameter],
        read: {
          id: 'readSubscriber',
          summary: 'Read a subscriber',
          gives: { representation: json(subscriberSchema, subscriberExample) },
        },
      },
    ),
  ];
}

function mayRead(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}

function subscriberTexts({ store, clock }: Services): (subscriber: DeclaredSubscriber) => Promise<string> {
  const [sender, status] = [fieldOf('sender'), fieldOf('status')];
  const index = dueIndexOf(receivedCollection, 'sender', 1);
  const messagesOf = (source: string, value: string): Filter => ({
    op: 'and',
    filters: [
      { op: 'eq', field: sender, value: source },
      { op: 'eq', field: status, value },
    ],
  });
  return async ({ name, description, events, orderBy, source }) => {
    const { schedule, inFlightMax } = source;
    const [pending, failed, [first]] = await Promise.all([
      store.count(receivedCollection.name, messagesOf(source.name, 'pending')),
      store.count(receivedCollection.name, messagesOf(source.name, 'failed')),
      new DueRows(store, index, source.name).first(1),
    ]);
    const dueAt =
      first === undefined ? undefined : Date.parse((JSON.parse(first.doc) as Received).dueAt ?? '');
    const item: ShownSubscriber = {
      ...{ name, description, events, ordered: orderBy !== undefined, schedule },
      ...{ inFlightMax: inFlightMax ?? null, pending, failed },
      lagSeconds: dueAt === undefined ? 0 : Math.max(0, clock() - dueAt) / 1000,
    };
    return JSON.stringify(item);
  };
}

function fieldOf(name: string) {
  const field = receivedCollection.fields.get(name);
  if (field === undefined) throw new Error(`the inbox has no field ${name}`);
  return field;
}
