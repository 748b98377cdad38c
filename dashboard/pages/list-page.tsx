/**
 * A list of the API as a table: filters, search, sort, columns, pages by cursor, and what can be done with the marked rows. The address
 * holds the state, so a view can be bookmarked and the back button works.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Version } from '../change-document.ts';
import { Invitation, mayInvite } from '../components/account-invite.tsx';
import { Actions } from '../components/action-panel.tsx';
import { Creation } from '../components/creation.tsx';
import { DeletedRows } from '../components/deleted-rows.tsx';
import { isEditable, tagMemberOf } from '../components/editable-cells.tsx';
import { ExportButtons } from '../components/export-rows.tsx';
import { type Changes, Filters } from '../components/filters.tsx';
import { kindOf } from '../components/form-values.ts';
import { MarkedRows } from '../components/marked-rows.tsx';
import { undone } from '../components/notice.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { Rows } from '../components/rows.tsx';
import { hasViews, SavedViews } from '../components/saved-views.tsx';
import { type Listed, listOf, resolve } from '../description.ts';
import { displayOf, groupsOf, nameOf } from '../presentation.ts';
import { idOf, membersOfTitle } from '../reference-titles.ts';
import { rightsIn } from '../rights.ts';
import { go, linkTo, route } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { findImportable, importable } from '../session.ts';

type Page = {
  readonly items: readonly Record<string, unknown>[];
  readonly nextCursor: string | null;
  /** From `Prefer: count=exact`. */
  readonly total: string | null;
  readonly readAt: number;
};

const rowsDefault = '50';
/** Tags of lists that people read from the end; the order of ids is that of creation. */
const newestFirst: ReadonlySet<string> = new Set(['audit', 'events', 'mails']);
const rowChoices = ['20', '50', '200', '1000'];
/** Besides the time of creation. */
const columnsMax = 6;

export function ListPage({ path }: { readonly path: string }): JSX.Element {
  const list = listOf(path);
  if (list === undefined) return <p role="alert">The API has no list at {path}.</p>;
  return <Listing key={path} list={list} />;
}

function Listing({ list }: { readonly list: Listed }): JSX.Element {
  const { query } = route.value;
  const request = requestOf(list, query);
  const { page, problem, reload, replace } = usePage(list, request);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setMarked(new Set()), [page?.readAt]);
  const columns = columnsOf(list, query);
  const isOfDeleted = query.get('deleted') === 'yes';
  const change = (changes: Changes) =>
    go(linkTo('list', { ...Object.fromEntries(query), cursor: undefined, ...changes }));
  const rights = rightsIn(list);
  const isCreating = query.get('new') === 'yes';
  const endCreation = () => {
    change({ new: undefined });
    reload();
  };
  return (
    <section aria-labelledby="list-title">
      <header class="head">
        <h1 id="list-title">{nameOf(list)}</h1>
        <p class="quiet">{(page?.total ?? null) === null ? list.summary : `${page?.total} in this view`}</p>
        <div class="buttons">
          {hasViews(list) ? <SavedViews list={list} query={query} /> : null}
          {list.create === undefined || rights?.may('create') !== true ? null : (
            <button
              type="button"
              class={mayInvite(list) ? undefined : 'primary'}
              onClick={() => change({ new: 'yes', cursor: query.get('cursor') ?? undefined })}
              aria-expanded={isCreating}
            >
              New
            </button>
          )}
          {mayInvite(list) ? (
            <button type="button" class="primary" onClick={() => change({ new: 'invitation' })}>
              Invite
            </button>
          ) : null}
          <ImportLink list={list} />
          {list.keepsDeleted && !isOfDeleted && rights?.may('delete') === true ? (
            <a class="button" href={linkTo('list', { path: list.path, deleted: 'yes' })}>
              Deleted
            </a>
          ) : null}
          <button type="button" onClick={reload}>
            Reload
          </button>
        </div>
      </header>
      <Actions steps={list.actions.filter((step) => rights?.mayCall(step) === true)} onDone={reload} />
      {isCreating ? <Creation list={list} onDone={endCreation} /> : null}
      {query.get('new') === 'invitation' && mayInvite(list) ? (
        <Invitation list={list} onDone={endCreation} />
      ) : null}
      {isOfDeleted ? (
        <DeletedRows list={list} />
      ) : (
        <Live
          {...{ list, query, columns, change, request, marked, setMarked }}
          pageOf={{ page, problem, reload, replace }}
        />
      )}
    </section>
  );
}

function ImportLink({ list }: { readonly list: Listed }): JSX.Element | null {
  useEffect(() => void findImportable(list), [list]);
  // Who may only change documents does so where they are.
  if (importable.value.get(list.path) !== true || rightsIn(list)?.may('create') !== true) return null;
  return (
    <a class="button" href={linkTo('import', { path: list.path })}>
      Import
    </a>
  );
}

type LiveProps = {
  readonly list: Listed;
  readonly query: URLSearchParams;
  readonly columns: readonly string[];
  readonly change: (changes: Changes) => void;
  readonly request: string;
  readonly pageOf: ReturnType<typeof usePage>;
  readonly marked: ReadonlySet<string>;
  readonly setMarked: (marked: ReadonlySet<string>) => void;
};

/** The filters and the rows that match them. */
function Live({ list, query, columns, change, request, pageOf, marked, setMarked }: LiveProps): JSX.Element {
  const { page, problem, reload, replace } = pageOf;
  return (
    <>
      <Filters list={list} query={query} columns={columns} onChange={change} />
      <ProblemNote problem={problem} />
      {page === undefined && problem === undefined ? <p aria-live="polite">Loading…</p> : null}
      {page === undefined ? null : (
        <>
          <MarkedRows {...{ list, marked }} items={page.items} onDone={reload} />
          <Rows
            {...{ list, columns, marked }}
            items={page.items}
            sort={query.get('sort') ?? ''}
            onSort={change}
            onMark={setMarked}
            onChanged={replace}
          />
          <Pager query={query} nextCursor={page.nextCursor} onChange={change}>
            <ExportButtons path={request} name={list.name} columns={columns} />
          </Pager>
        </>
      )}
    </>
  );
}

/** The page of a request, read anew when the request changes and by `reload`. */
function usePage(list: Listed, request: string) {
  const [page, setPage] = useState<Page | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const tagged = isEditable(list) ? `${request}&fields=*,${tagMemberOf(list)}` : request;
    void send('GET', tagged, { headers: { Prefer: 'count=exact' } }).then((reply) => {
      if (!isCurrent) return;
      setProblem(problemOf(reply));
      if (isObject(reply.json) && Array.isArray(reply.json.items)) {
        const { items, nextCursor } = reply.json as unknown as Page;
        setPage({ items, nextCursor, total: reply.headers.get('X-Total-Count'), readAt: performance.now() });
      }
    });
    return () => {
      isCurrent = false;
    };
  }, [request, round, undone.value]);
  const reload = () => setRound((before) => before + 1);
  /** Shows the document as it is now, where the list has it. */
  const replace = (id: string, version: Version | undefined) => {
    if (version === undefined) return reload();
    const now = { ...version.document, [tagMemberOf(list)]: version.tag };
    setPage(
      (shown) =>
        shown && { ...shown, items: shown.items.map((item) => (idOf(list, item) === id ? now : item)) },
    );
  };
  return { page, problem, reload, replace };
}

type PagerProps = {
  readonly query: URLSearchParams;
  readonly nextCursor: string | null;
  readonly onChange: (changes: Changes) => void;
  readonly children: JSX.Element;
};

function Pager({ query, nextCursor, onChange, children }: PagerProps): JSX.Element {
  const linkAt = (cursor: string | undefined) => linkTo('list', { ...Object.fromEntries(query), cursor });
  return (
    <nav class="pager" aria-label="Pages">
      {query.get('cursor') === null ? null : <a href={linkAt(undefined)}>First page</a>}
      {nextCursor === null ? null : <a href={linkAt(nextCursor)}>Next page</a>}
      <label>
        Rows{' '}
        <select
          value={query.get('limit') ?? rowsDefault}
          onChange={(event) => onChange({ limit: event.currentTarget.value })}
        >
          {rowChoices.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      {children}
    </nav>
  );
}

/** The request that the address of the view stands for: its members that the list knows, as they are. */
export function requestOf(list: Listed, query: URLSearchParams): string {
  if (!list.isPaged) return list.path;
  const sent = new URLSearchParams();
  for (const [name, value] of query) {
    const isFilter = list.filters.some(
      (each) => name === each || name.startsWith(`${each}[`) || name.startsWith(`${each}.`),
    );
    if (isFilter || ['q', 'sort', 'cursor', 'limit'].includes(name)) sent.append(name, value);
  }
  if (!sent.has('limit')) sent.set('limit', rowsDefault);
  if (!sent.has('sort') && newestFirst.has(list.tag) && list.sortKeys.includes('id')) sent.set('sort', '-id');
  return `${list.path}?${sent}`;
}

function columnsOf(list: Listed, query: URLSearchParams): readonly string[] {
  const members = Object.keys(list.schema.properties ?? {});
  const named = query.get('columns')?.split(',') ?? [];
  const chosen = named.filter((name) => members.includes(name));
  return chosen.length > 0 ? chosen : columnsDefault(list);
}

/** The members that name a document, others that are short, and when it was created. */
function columnsDefault(list: Listed): readonly string[] {
  const { schema } = list;
  const { properties = {} } = schema;
  const members = groupsOf(schema, Object.keys(properties)).flatMap((group) => group.members);
  const made = ['id', 'createdAt', 'updatedAt', 'deletedAt'];
  const short = members.filter((name) => {
    const kind = kindOf(resolve(properties[name]));
    if (displayOf(schema, name).inLists === false) return false;
    return name === 'actor' || (!made.includes(name) && kind !== 'json' && kind !== 'long');
  });
  const isList = (name: string) => ['texts', 'choices'].includes(kindOf(resolve(properties[name])));
  const ordered = new Set([
    ...membersOfTitle(list).filter((name) => short.includes(name)),
    ...short.toSorted((one, other) => Number(isList(one)) - Number(isList(other))),
  ]);
  const shown = [
    ...[...ordered].slice(0, columnsMax),
    ...(members.includes('createdAt') ? ['createdAt'] : []),
  ];
  return ordered.size > 0 ? shown : members.slice(0, columnsMax);
}
