/** The pages of webhooks as views of the dashboard: their links, and the context in which they send with the caller's credential. */
import type { JSX } from 'preact';
import { base, type Listed } from '../description.ts';
import { linkTo, type Route } from '../route.ts';
import { send } from '../send.ts';
import { type Api, ApiContext } from './api.ts';
import { DeliveriesPage } from './delivery-list.tsx';
import { DeliveryPage } from './delivery-page.tsx';
import { EndpointPage } from './endpoint-page.tsx';
import { EndpointsPage } from './endpoints-page.tsx';
import { EventTypesPage } from './event-types-page.tsx';
import { InboxPage } from './inbox-page.tsx';
import { MessagePage } from './received.tsx';
import { SendersPage } from './senders-page.tsx';

const api: Api = {
  send: (method, path, options) => send(method, base.value + path, options),
};

/** The view that has a page of its own for a list of the API; undefined: the list is shown like any other. */
export function viewOf({ tag }: Pick<Listed, 'tag'>): string | undefined {
  return lists.get(tag);
}

const lists: ReadonlyMap<string, string> = new Map([
  ['endpoints', 'endpoints'],
  ['deliveries', 'deliveries'],
  ['event-types', 'event-types'],
  ['senders', 'senders'],
  ['received', 'inbox'],
]);

/** The list to which a view belongs in the navigation. */
export function listOfView(view: string): string | undefined {
  return members.get(view) ?? view;
}

const members: ReadonlyMap<string, string> = new Map([
  ['endpoint', 'endpoints'],
  ['delivery', 'deliveries'],
  ['message', 'inbox'],
]);

export function linkOfList(list: Listed): string {
  return linkTo(viewOf(list) ?? 'list', viewOf(list) === undefined ? { path: list.path } : {});
}

/** @returns undefined for a view that is none of webhooks */
export function webhooksView({ view, query }: Route): JSX.Element | undefined {
  const page = pageOf(view, query);
  return page === undefined ? undefined : <ApiContext.Provider value={api}>{page}</ApiContext.Provider>;
}

function pageOf(view: string, query: URLSearchParams): JSX.Element | undefined {
  const id = query.get('id') ?? '';
  switch (view) {
    case 'endpoints':
      return <EndpointsPage hasTenant />;
    case 'endpoint':
      return <EndpointPage key={id} id={id} hasTenant />;
    case 'deliveries':
      return <DeliveriesPage key={String(query)} query={query} />;
    case 'delivery':
      return <DeliveryPage key={id} id={id} />;
    case 'event-types':
      return <EventTypesPage />;
    case 'senders':
      return <SendersPage path={`${base.value}/senders`} />;
    case 'inbox':
      return <InboxPage key={String(query)} query={query} />;
    case 'message':
      return <MessagePage key={id} id={id} />;
    default:
      return undefined;
  }
}
