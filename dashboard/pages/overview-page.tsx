/** The first view: health, what the store holds, and the latest events as they come. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ReferenceLink } from '../components/reference-link.tsx';
import { Value } from '../components/value.tsx';
import { base, description, type Listed, listOf, pathOf } from '../description.ts';
import { linkTo } from '../route.ts';
import { isObject, prefix, type Reply, send } from '../send.ts';

const refreshMs = 3000;
const eventsShown = 12;

export function OverviewPage(): JSX.Element {
  const lists = description.value?.lists ?? [];
  return (
    <section aria-labelledby="overview-title">
      <h1 id="overview-title">{description.value?.title}</h1>
      <Health />
      <h2>Collections</h2>
      <ul class="cards">
        {lists.filter(isCollection).map((list) => (
          <CollectionCard key={list.path} list={list} />
        ))}
      </ul>
      <LatestEvents />
      <p class="quiet">
        <a href={`${prefix}/docs`}>API reference</a> · <a href={`${prefix}/openapi.json`}>OpenAPI document</a>
      </p>
    </section>
  );
}

/** A collection of the application: the operations of a built-in resource have its tag among those below. */
export function isCollection(list: Listed): boolean {
  return !builtIn.has(list.tag);
}

const builtIn: ReadonlySet<string> = new Set([
  ...[
    'users',
    'keys',
    'audit',
    'portal-links',
    'portal',
    'accounts',
    'endpoints',
    'deliveries',
    'recoveries',
    'event-types',
    'received',
    'senders',
  ],
  ...[
    'subscribers',
    'jobs',
    'mails',
    'hold',
    'queries',
    'operations',
    'events',
    'realtime',
    'service',
    'webhooks',
    'actions',
  ],
]);

function Health(): JSX.Element {
  const reply = useReply('/health/ready');
  if (reply === undefined) return <p role="status">Health: …</p>;
  const isReady = reply.status === 200;
  return (
    <p role="status" class={isReady ? 'saved' : 'problem'}>
      {isReady ? 'Ready.' : `Not ready: ${reply.status}.`}{' '}
      {isObject(reply.json) && typeof reply.json.error === 'string' ? reply.json.error : ''}
    </p>
  );
}

function CollectionCard({ list }: { readonly list: Listed }): JSX.Element {
  const [total, setTotal] = useState<string | null>(null);
  useEffect(() => {
    void send('GET', `${list.path}?limit=1`, { headers: { Prefer: 'count=exact' } }).then((reply) =>
      setTotal(reply.headers.get('X-Total-Count')),
    );
  }, [list.path]);
  return (
    <li>
      <a href={linkTo('list', { path: list.path })}>
        <strong>{list.name}</strong>
        <span>{total ?? '–'}</span>
      </a>
    </li>
  );
}

function LatestEvents(): JSX.Element | null {
  const reply = useReply(`${base.value}/events?limit=${eventsShown}&sort=-id`);
  const items =
    isObject(reply?.json) && Array.isArray(reply.json.items) ? reply.json.items.filter(isObject) : [];
  if (items.length === 0) return null;
  return (
    <>
      <h2>Latest events</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Time</th>
              <th>Type</th>
              <th>Resource</th>
            </tr>
          </thead>
          <tbody>
            {items.map((event) => (
              <tr key={String(event.id)}>
                <td>
                  <Value
                    value={
                      typeof event.created === 'number' ? new Date(event.created * 1000).toISOString() : null
                    }
                  />
                </td>
                <td>{String(event.type)}</td>
                <td>
                  <EventResource event={event} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function EventResource({ event }: { readonly event: Record<string, unknown> }): JSX.Element {
  const id = objectId(event);
  const path = pathOf(String(event.type).split('.', 1)[0] ?? '');
  return typeof id === 'string' && listOf(path)?.member !== undefined ? (
    <ReferenceLink path={path} id={id} />
  ) : (
    <Value value={id} />
  );
}

function objectId(event: Record<string, unknown>): unknown {
  const { data } = event;
  return isObject(data) && isObject(data.object) ? data.object.id : undefined;
}

/** The response to a GET, asked for again while the view is shown. */
function useReply(path: string): Reply | undefined {
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const given = await send('GET', path).catch(() => undefined);
      if (!isShown) return;
      setReply(given);
      timer = window.setTimeout(ask, refreshMs);
    };
    void ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [path]);
  return reply;
}
