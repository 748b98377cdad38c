/** The first view: what needs a person now, how things go, and then what the store holds and the latest events as they come. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ActivityCharts } from '../components/activity.tsx';
import { EventResource } from '../components/event-resource.tsx';
import { Value } from '../components/value.tsx';
import { base, description, type Listed } from '../description.ts';
import { type Finding, hasLooks, useFindings } from '../findings.ts';
import { nameOf } from '../presentation.ts';
import { linkTo } from '../route.ts';
import { isObject, prefix, type Reply, send } from '../send.ts';
import { isAdministrator } from '../session.ts';
import { Ago } from '../webhooks/clock.tsx';
import { NewDocuments, OwnWork, readableCollections } from './own-work.tsx';

const refreshMs = 3000;
const eventsShown = 12;

export function HomePage(): JSX.Element {
  const lists = readableCollections();
  return (
    <section aria-labelledby="home-title">
      <header class="head">
        <h1 id="home-title">{description.value?.title}</h1>
        <NewDocuments lists={lists} />
      </header>
      <NeedsYou />
      <OwnWork />
      {isAdministrator() ? <ActivityCharts /> : null}
      <h2>Collections</h2>
      <ul class="cards">
        {lists.map((list) => (
          <CollectionCard key={list.path} list={list} />
        ))}
      </ul>
      {isAdministrator() ? <LatestEvents /> : null}
      <p class="quiet">
        <a href={`${prefix}/docs`}>API reference</a> · <a href={`${prefix}/openapi.json`}>OpenAPI document</a>
      </p>
    </section>
  );
}

function NeedsYou(): JSX.Element | null {
  const { items, failures } = useFindings();
  if (!hasLooks()) return null;
  return (
    <section aria-labelledby="needs-title">
      <h2 id="needs-title">Needs you now</h2>
      <div role="status">
        {items === undefined ? <p class="loading">Looking…</p> : null}
        {items?.length === 0 && failures === 0 ? <p class="saved">Nothing needs you.</p> : null}
      </div>
      {items === undefined || items.length === 0 ? null : (
        <ul class="findings">
          {items.map((finding) => (
            <FindingItem key={finding.text} finding={finding} />
          ))}
        </ul>
      )}
      {failures === 0 ? null : (
        <p class="problem">
          {failures === 1 ? 'One fact' : `${failures} facts`} could not be read. The page tries again by
          itself.
        </p>
      )}
    </section>
  );
}

const tones = { bad: 'Failed', warn: 'Warning' } as const;

function FindingItem({ finding }: { readonly finding: Finding }): JSX.Element {
  const { tone, text, since, detail, link } = finding;
  return (
    <li class={tone}>
      <a href={link}>
        <span class="hidden">{tones[tone]}: </span>
        {text}
      </a>
      {since === undefined ? null : (
        <span class="quiet">
          {' '}
          <Ago time={since} />
        </span>
      )}
      {detail === undefined ? null : <p class="hint">{detail}</p>}
    </li>
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
        <strong>{nameOf(list)}</strong>
        <span class="count">{total ?? '–'}</span>
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
      <ul class="event-list">
        {items.map((event) => (
          <li key={String(event.id)}>
            <EventResource type={String(event.type)} event={event} /> <code>{String(event.type)}</code>{' '}
            <span class="quiet">
              <Value
                value={
                  typeof event.created === 'number' ? new Date(event.created * 1000).toISOString() : null
                }
              />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
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
