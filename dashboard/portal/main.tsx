/** The portal of a tenant: exchanges its link for a session, and shows the pages of webhooks with it. */
import { type JSX, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { linkTo, route } from '../route.ts';
import { prefix, send } from '../send.ts';
import { type Api, ApiContext } from '../webhooks/api.ts';
import { DeliveriesPage } from '../webhooks/delivery-list.tsx';
import { DeliveryPage } from '../webhooks/delivery-page.tsx';
import { EndpointPage } from '../webhooks/endpoint-page.tsx';
import { EndpointsPage } from '../webhooks/endpoints-page.tsx';
import { EventTypesPage } from '../webhooks/event-types-page.tsx';
import { applyBrand, brand } from './brand.ts';
import { forgetSession, openSession, type Session } from './portal-session.ts';

type Entrance = Session | 'opening' | 'none' | 'refused' | 'over';

function Portal(): JSX.Element {
  const [entrance, setEntrance] = useState<Entrance>('opening');
  useEffect(() => {
    openSession(`${prefix}${brand.base}`)
      .then((opened) => setEntrance(opened ?? 'none'))
      .catch(() => setEntrance('refused'));
  }, []);
  const end = () => {
    forgetSession();
    setEntrance('over');
  };
  useEnd(typeof entrance === 'string' ? undefined : entrance, end);
  if (typeof entrance === 'string') return <Closed entrance={entrance} />;
  return (
    <ApiContext.Provider value={apiOf(entrance, end)}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <Navigation tenant={entrance.tenant} />
      <main id="main" tabIndex={-1}>
        <View />
      </main>
    </ApiContext.Provider>
  );
}

/** Longer times overflow the timer of browsers. */
const timerMsMax = 2 ** 31 - 1;

function useEnd(session: Session | undefined, end: () => void): void {
  useEffect(() => {
    if (session === undefined) return undefined;
    const ms = Date.parse(session.expiresAt) - Date.now();
    if (ms > timerMsMax) return undefined;
    const timer = setTimeout(end, Math.max(ms, 0));
    return () => clearTimeout(timer);
  }, [session]);
}

/** Sends the token in `Authorization` and no cookie: a session of the dashboard in this browser has no part in it. */
function apiOf({ token }: Session, end: () => void): Api {
  return {
    async send(method, path, options = {}) {
      const headers = { ...options.headers, Authorization: `Bearer ${token}` };
      const reply = await send(method, brand.base + path, { ...options, anonymous: true, headers });
      if (reply.status === 401) end();
      // How an answer came about is the operator's business.
      return { ...reply, request: undefined };
    },
  };
}

const closed: Readonly<Record<'none' | 'refused' | 'over', readonly [title: string, text: string]>> = {
  none: ['This page needs a link', 'Open the portal from your account again: it gives you a new link.'],
  refused: [
    'This link does not work',
    'A link works once, and for a limited time. Open the portal from your account again: it gives you a new link.',
  ],
  over: ['Your session has ended', 'Open the portal from your account again: it gives you a new link.'],
};

function Closed({ entrance }: { readonly entrance: Exclude<Entrance, Session> }): JSX.Element {
  if (entrance === 'opening') {
    return (
      <p class="loading" aria-live="polite">
        Opening…
      </p>
    );
  }
  const [title, text] = closed[entrance];
  return (
    <main class="closed">
      <h1>{title}</h1>
      <p role="alert">{text}</p>
    </main>
  );
}

function View(): JSX.Element {
  const { view, query } = route.value;
  const id = query.get('id') ?? '';
  const isShown = useRef(false);
  useEffect(() => {
    const title = titles.find(([name]) => name === (view || 'endpoints'))?.[1] ?? 'Webhooks';
    document.title = `${title} – ${brand.name}`;
    // A new view begins where it is read; the first leaves the focus before the navigation.
    if (isShown.current) document.getElementById('main')?.focus();
    isShown.current = true;
  }, [view, id]);
  if (view === 'endpoint') return <EndpointPage key={id} id={id} hasTenant={false} />;
  if (view === 'deliveries') return <DeliveriesPage key={String(query)} query={query} />;
  if (view === 'delivery') return <DeliveryPage key={id} id={id} />;
  if (view === 'event-types') return <EventTypesPage />;
  return <EndpointsPage hasTenant={false} />;
}

const titles = [
  ['endpoints', 'Endpoints'],
  ['deliveries', 'Deliveries'],
  ['event-types', 'Event types'],
] as const;

function Navigation({ tenant }: { readonly tenant: string }): JSX.Element {
  const { view } = route.value;
  const isHere = (name: string) =>
    view === name ||
    `${view}s` === name ||
    (view === 'delivery' && name === 'deliveries') ||
    (view === '' && name === 'endpoints');
  return (
    <header class="top">
      <p class="brand">
        {brand.name} <span class="quiet">{tenant}</span>
      </p>
      <nav aria-label="Webhooks">
        <ul>
          {titles.map(([name, title]) => (
            <li key={name}>
              <a href={linkTo(name)} aria-current={isHere(name) ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
    </header>
  );
}

applyBrand();
const root = document.getElementById('app');
if (root !== null) render(<Portal />, root);
