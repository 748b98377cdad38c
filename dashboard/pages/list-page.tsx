/**
 * A list of the API as a table: filters, search, sort, columns, pages by cursor, and what can be done with the marked rows. The address
 * holds the state, so a view can be bookmarked and the back button works.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ExportButtons } from '../components/export-rows.tsx';
import { type Changes, Filters } from '../components/filters.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { MarkedRows, Rows } from '../components/rows.tsx';
import { SchemaForm, withoutNulls } from '../components/schema-form.tsx';
import { Json } from '../components/value.tsx';
import { type Listed, listOf } from '../description.ts';
import { go, linkTo, route } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';

type Page = {
  readonly items: readonly Record<string, unknown>[];
  readonly nextCursor: string | null;
  /** From `Prefer: count=exact`. */
  readonly total: string | null;
};

const rowsDefault = '50';
const columnsDefault = 7;

export function ListPage({ path }: { readonly path: string }): JSX.Element {
  const list = listOf(path);
  if (list === undefined) return <p role="alert">The API has no list at {path}.</p>;
  return <Listing key={path} list={list} />;
}

function Listing({ list }: { readonly list: Listed }): JSX.Element {
  const { query } = route.value;
  const request = requestOf(list, query);
  const { page, problem, reload } = usePage(request);
  const [isCreating, setCreating] = useState(false);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setMarked(new Set()), [page]);
  const columns = columnsOf(list, query);
  const change = (changes: Changes) =>
    go(linkTo('list', { ...Object.fromEntries(query), cursor: undefined, ...changes }));
  const endCreation = () => {
    setCreating(false);
    reload();
  };
  return (
    <section aria-labelledby="list-title">
      <header class="head">
        <h1 id="list-title">{list.name}</h1>
        <p class="quiet">{(page?.total ?? null) === null ? list.summary : `${page?.total} in this view`}</p>
        <div class="buttons">
          {list.create === undefined ? null : (
            <button
              type="button"
              class="primary"
              onClick={() => setCreating(!isCreating)}
              aria-expanded={isCreating}
            >
              New
            </button>
          )}
          <button type="button" onClick={reload}>
            Reload
          </button>
        </div>
      </header>
      {isCreating ? <Creation list={list} onDone={endCreation} /> : null}
      <Filters list={list} query={query} columns={columns} onChange={change} />
      <ProblemNote problem={problem} />
      {page === undefined && problem === undefined ? <p aria-live="polite">Loading…</p> : null}
      {page === undefined ? null : (
        <>
          <MarkedRows list={list} marked={marked} onDone={reload} />
          <Rows
            {...{ list, columns, marked }}
            items={page.items}
            sort={query.get('sort') ?? ''}
            onSort={change}
            onMark={setMarked}
          />
          <Pager query={query} nextCursor={page.nextCursor}>
            <ExportButtons path={request} name={list.name} columns={columns} />
          </Pager>
        </>
      )}
    </section>
  );
}

/** The page of a request, read anew when the request changes and by `reload`. */
function usePage(request: string) {
  const [page, setPage] = useState<Page | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    void send('GET', request, { headers: { Prefer: 'count=exact' } }).then((reply) => {
      if (!isCurrent) return;
      setProblem(problemOf(reply));
      if (isObject(reply.json) && Array.isArray(reply.json.items)) {
        const { items, nextCursor } = reply.json as unknown as Page;
        setPage({ items, nextCursor, total: reply.headers.get('X-Total-Count') });
      }
    });
    return () => {
      isCurrent = false;
    };
  }, [request, round]);
  return { page, problem, reload: () => setRound((before) => before + 1) };
}

type PagerProps = {
  readonly query: URLSearchParams;
  readonly nextCursor: string | null;
  readonly children: JSX.Element;
};

function Pager({ query, nextCursor, children }: PagerProps): JSX.Element {
  const linkAt = (cursor: string | undefined) => linkTo('list', { ...Object.fromEntries(query), cursor });
  return (
    <nav class="pager" aria-label="Pages">
      {query.get('cursor') === null ? null : <a href={linkAt(undefined)}>First page</a>}
      {nextCursor === null ? null : <a href={linkAt(nextCursor)}>Next page</a>}
      {children}
    </nav>
  );
}

/** The request that the address of the view stands for: its members that the list knows, as they are. */
function requestOf(list: Listed, query: URLSearchParams): string {
  const sent = new URLSearchParams();
  for (const [name, value] of query) {
    const isFilter = list.filters.some(
      (each) => name === each || name.startsWith(`${each}[`) || name.startsWith(`${each}.`),
    );
    if (isFilter || ['q', 'sort', 'cursor', 'limit'].includes(name)) sent.append(name, value);
  }
  if (!sent.has('limit')) sent.set('limit', rowsDefault);
  return `${list.path}?${sent}`;
}

function columnsOf(list: Listed, query: URLSearchParams): readonly string[] {
  const members = Object.keys(list.schema.properties ?? {});
  const chosen =
    query
      .get('columns')
      ?.split(',')
      .filter((name) => members.includes(name)) ?? [];
  return chosen.length > 0 ? chosen : members.slice(0, columnsDefault);
}

function Creation({ list, onDone }: { readonly list: Listed; readonly onDone: () => void }): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [made, setMade] = useState<unknown>(undefined);
  if (list.create === undefined) return <p />;
  const secret = isObject(made) ? (made.key ?? made.secret) : undefined;
  if (secret !== undefined) {
    return (
      <div class="panel" role="status">
        <p>
          <strong>Only this response shows the secret. Copy it now.</strong>
        </p>
        <Json value={made} label="The new resource" />
        <button type="button" onClick={onDone}>
          Done
        </button>
      </div>
    );
  }
  const create = async (members: Record<string, unknown>) => {
    const reply = await send('POST', list.path, { json: withoutNulls(members) });
    setProblem(problemOf(reply));
    if (reply.status >= 400) return;
    setMade(reply.json);
    if (!(isObject(reply.json) && ('key' in reply.json || 'secret' in reply.json))) onDone();
  };
  return (
    <div class="panel">
      <h2>New in {list.name}</h2>
      <SchemaForm
        schema={list.create}
        submit="Create"
        problem={problem}
        onSubmit={create}
        onCancel={onDone}
      />
    </div>
  );
}
