/** The dashboard: reads what the API offers, asks for a credential, and shows the view that the address names. */
import { type JSX, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { DifferencesBanner } from './components/about-server.tsx';
import { description, type Listed, readDescription } from './description.ts';
import { AccessPage } from './pages/access-page.tsx';
import { AccountPage } from './pages/account-page.tsx';
import { ExplainPage } from './pages/explain-page.tsx';
import { FirstRunPage } from './pages/first-run-page.tsx';
import { ListPage } from './pages/list-page.tsx';
import { LivePage } from './pages/live-page.tsx';
import { LoginPage } from './pages/login-page.tsx';
import { MemberPage } from './pages/member-page.tsx';
import { isCollection, OverviewPage } from './pages/overview-page.tsx';
import { QueryPage } from './pages/query-page.tsx';
import { SystemPage } from './pages/system-page.tsx';
import { linkTo, route } from './route.ts';
import { caller, findCaller, isAdministrator, isFirstRun, logOut, mustEnrol, readable } from './session.ts';
import { linkOfList, listOfView, viewOf, webhooksView } from './webhooks/dashboard-views.tsx';

const sections: readonly (readonly [title: string, tags: readonly string[]])[] = [
  ['Webhooks out', ['endpoints', 'deliveries', 'recoveries', 'event-types', 'events']],
  ['Webhooks in', ['senders', 'received']],
  ['Functions', ['subscribers', 'jobs', 'mails']],
  ['Access', ['users', 'keys', 'portal-links', 'audit']],
];

const callerNames: Readonly<Record<string, string>> = {
  administrator: 'Administrator key',
  key: 'API key',
  external: 'External account',
};

function Dashboard(): JSX.Element {
  const [failure, setFailure] = useState('');
  useEffect(() => {
    readDescription()
      .then(findCaller)
      .catch((error: Error) => setFailure(error.message));
  }, []);
  if (failure !== '') return <p role="alert" class="problem">{`The API could not be read: ${failure}`}</p>;
  if (description.value === undefined || caller.value === undefined)
    return (
      <p class="loading" aria-live="polite">
        Loading…
      </p>
    );
  if (caller.value === null) return <LoginPage />;
  if (isFirstRun.value) return <FirstRunPage />;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <Navigation lists={description.value.lists.filter(({ path }) => readable.value.has(path))} />
      <main id="main" tabIndex={-1}>
        {isAdministrator() ? <DifferencesBanner /> : null}
        <View />
      </main>
    </>
  );
}

function View(): JSX.Element {
  const { view, query } = route.value;
  const path = query.get('path') ?? '';
  useEffect(() => {
    document.title = `${path === '' ? view || 'Overview' : path} – ${description.value?.title ?? 'Comity'}`;
  }, [view, path]);
  if (view === 'account' || mustEnrol.value) return <AccountPage />;
  if (view === 'access') return <AccessPage />;
  if (view === 'list') return <ListPage path={path} />;
  if (view === 'member') return <MemberPage path={path} id={query.get('id') ?? ''} />;
  if (view === 'query') return <QueryPage query={query} />;
  if (view === 'explain') return <ExplainPage query={query} />;
  if (view === 'live') return <LivePage />;
  if (view === 'system') return <SystemPage />;
  return webhooksView(route.value) ?? <OverviewPage />;
}

function Navigation({ lists }: { readonly lists: readonly Listed[] }): JSX.Element {
  const { view, query } = route.value;
  const here = query.get('path');
  const item = (link: string, text: string, isHere: boolean) => (
    <li key={link}>
      <a href={link} aria-current={isHere ? 'page' : undefined}>
        {text}
      </a>
    </li>
  );
  const itemOf = (list: Listed) =>
    item(
      linkOfList(list),
      list.name,
      viewOf(list) === listOfView(view) || ((view === 'list' || view === 'member') && here === list.path),
    );
  return (
    <nav class="side" aria-label="Dashboard">
      <details class="menu" open={matchMedia('(min-width: 50rem)').matches}>
        <summary>{description.value?.title}</summary>
        <ul>
          {item(linkTo(''), 'Overview', view === '')}
          {item(linkTo('live'), 'Live', view === 'live')}
          {isAdministrator() ? item(linkTo('system'), 'System', view === 'system') : null}
          {item(linkTo('query'), 'Query', view === 'query')}
          {item(linkTo('explain'), 'Requests explained', view === 'explain')}
        </ul>
        <h2>Data</h2>
        <ul>{lists.filter(isCollection).map(itemOf)}</ul>
        {sections.map(([title, tags]) => {
          const shown = lists.filter(({ tag }) => tags.includes(tag));
          if (shown.length === 0) return null;
          return (
            <div key={title}>
              <h2>{title}</h2>
              <ul>
                {shown.map(itemOf)}
                {title === 'Access' ? item(linkTo('access'), 'sign-in and limits', view === 'access') : null}
              </ul>
            </div>
          );
        })}
        <p class="who">
          <a href={linkTo('account')} aria-current={view === 'account' ? 'page' : undefined}>
            {caller.value?.email ?? callerNames[caller.value?.kind ?? ''] ?? caller.value?.kind}
          </a>{' '}
          <button type="button" class="small" onClick={logOut}>
            Log out
          </button>
        </p>
      </details>
    </nav>
  );
}

const root = document.getElementById('app');
if (root !== null) render(<Dashboard />, root);
