/** The dashboard: reads what the API offers, asks for a credential, and shows the view that the address names. */
import { type ComponentChildren, type JSX, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { DifferencesBanner } from './components/about-server.tsx';
import { nameOfStep, titleOf } from './components/action-panel.tsx';
import { Notices } from './components/notice.tsx';
import { Palette } from './components/palette.tsx';
import { description, isCollection, type Listed, readDescription } from './description.ts';
import { AccessPage } from './pages/access-page.tsx';
import { AccountPage } from './pages/account-page.tsx';
import { ActionsPage, freeActions } from './pages/actions-page.tsx';
import { ExplainPage } from './pages/explain-page.tsx';
import { FirstRunPage } from './pages/first-run-page.tsx';
import { HomePage } from './pages/home-page.tsx';
import { ImportPage } from './pages/import-page.tsx';
import { ListPage } from './pages/list-page.tsx';
import { LivePage } from './pages/live-page.tsx';
import { LoginPage } from './pages/login-page.tsx';
import { MemberPage } from './pages/member-page.tsx';
import { QueryPage } from './pages/query-page.tsx';
import { RulesPage } from './pages/rules-page.tsx';
import { SystemPage } from './pages/system-page.tsx';
import { nameOf } from './presentation.ts';
import { go, linkTo, route } from './route.ts';
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
        {isAdministrator() && route.value.view !== '' ? <DifferencesBanner /> : null}
        <View />
      </main>
      <Notices />
    </>
  );
}

function View(): JSX.Element {
  const { view, query } = route.value;
  const path = query.get('path') ?? '';
  useEffect(() => {
    document.title = `${path === '' ? view || 'Home' : path} – ${description.value?.title ?? 'Comity'}`;
  }, [view, path]);
  if (view === 'account' || mustEnrol.value) return <AccountPage />;
  if (view === 'access') return <AccessPage />;
  if (view === 'rules') return <RulesPage query={query} />;
  if (view === 'list') return <ListPage path={path} />;
  if (view === 'import') return <ImportPage path={path} />;
  if (view === 'member') return <MemberPage path={path} id={query.get('id') ?? ''} />;
  if (view === 'query') return <QueryPage query={query} />;
  if (view === 'explain') return <ExplainPage query={query} />;
  if (view === 'live') return <LivePage />;
  if (view === 'system') return <SystemPage />;
  if (view === 'actions') return <ActionsPage />;
  return webhooksView(route.value) ?? <HomePage />;
}

function Navigation({ lists }: { readonly lists: readonly Listed[] }): JSX.Element {
  const { view, query } = route.value;
  const here = query.get('path');
  const item = (link: string, text: string, isHere: boolean) => (
    <li key={link}>
      <a href={link} aria-current={isHere ? 'page' : undefined} onClick={foldOnPhone}>
        {text}
      </a>
    </li>
  );
  const itemOf = (list: Listed) =>
    item(
      linkOfList(list),
      nameOf(list),
      viewOf(list) === listOfView(view) ||
        (['list', 'member', 'import'].includes(view) && here === list.path),
    );
  const pages = pagesOf();
  return (
    <nav class="side" aria-label="Dashboard">
      <details class="menu" open={isWide()}>
        <summary>{description.value?.title}</summary>
        <ul>{pages.map(([name, text]) => item(linkTo(name), text, view === name))}</ul>
        <Section title="Data">{lists.filter(isCollection).map(itemOf)}</Section>
        {sections.map(([title, tags]) => {
          const shown = lists.filter(({ tag }) => tags.includes(tag));
          if (shown.length === 0) return null;
          return (
            <Section key={title} title={title}>
              {shown.map(itemOf)}
              {title === 'Access' && isAdministrator()
                ? item(linkTo('rules'), 'Access rules', view === 'rules')
                : null}
              {title === 'Access' ? item(linkTo('access'), 'Sign-in and limits', view === 'access') : null}
            </Section>
          );
        })}
      </details>
      <div class="who">
        <Palette
          lists={lists}
          pages={[
            ...[...pages, ['account', 'Account']].map(([name = '', text = '']) => ({
              ...{ text, kind: 'Page' },
              run: () => go(linkTo(name)),
            })),
            ...freeActions().map((step) => ({
              ...{ text: titleOf(step), kind: 'Action' },
              run: () => go(linkTo('actions', { $action: nameOfStep(step) })),
            })),
          ]}
        />
        <a href={linkTo('account')} aria-current={view === 'account' ? 'page' : undefined}>
          {caller.value?.email ?? callerNames[caller.value?.kind ?? ''] ?? caller.value?.kind}
        </a>
        <button type="button" class="small" onClick={logOut}>
          Log out
        </button>
      </div>
    </nav>
  );
}

/** The navigation is beside the page, and not above it. */
function isWide(): boolean {
  return matchMedia('(min-width: 50rem)').matches;
}

/** On a phone, the open menu would leave the chosen page below the fold. */
function foldOnPhone({ currentTarget }: Event): void {
  const menu = currentTarget instanceof Element ? currentTarget.closest('details.menu') : null;
  if (menu instanceof HTMLDetailsElement && !isWide()) menu.open = false;
}

/** Views with their names. */
function pagesOf(): readonly (readonly [view: string, text: string])[] {
  return [
    ['', 'Home'],
    ['live', 'Live'],
    ...(isAdministrator() ? [['system', 'System'] as const] : []),
    ...(freeActions().length > 0 ? [['actions', 'Actions'] as const] : []),
    ['query', 'Query'],
    ['explain', 'Requests explained'],
  ];
}

/** Outlines of 16 by 16. */
const icons: Readonly<Record<string, string>> = {
  Data: 'M2 4c0-3 12-3 12 0v8c0 3-12 3-12 0zM2 4c0 3 12 3 12 0M2 8c0 3 12 3 12 0',
  'Webhooks out': 'M3 13 13 3M6 3h7v7',
  'Webhooks in': 'M13 3 3 13M10 13H3V6',
  Functions: 'm9 1-6 8h5l-1 6 6-8H8z',
  Access: 'M3 7h10v7H3zM5 7V5a3 3 0 0 1 6 0v2',
};

type SectionProps = { readonly title: string; readonly children: ComponentChildren };

/** A part of the navigation that folds, and stays so in this browser. */
function Section({ title, children }: SectionProps): JSX.Element {
  const name = `comity-folded-${title}`;
  const [isOpen] = useState(() => localStorage.getItem(name) === null);
  // `toggle` comes later, when a reload may have begun.
  const fold = (event: Event) => {
    if ((event.currentTarget as HTMLElement).closest('details')?.open === true)
      localStorage.setItem(name, 'yes');
    else localStorage.removeItem(name);
  };
  return (
    <details class="section" open={isOpen}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is the button of its details. */}
      <summary onClick={fold}>
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          <path d={icons[title] ?? ''} fill="none" stroke="currentColor" stroke-width="1.5" />
        </svg>{' '}
        {title}
      </summary>
      <ul>{children}</ul>
    </details>
  );
}

const root = document.getElementById('app');
if (root !== null) render(<Dashboard />, root);
