/**
 * A list of the API as a table: filters, search, sort, columns, pages by cursor, and what can be done with the marked rows. The address
 * holds the state, so a view can be bookmarked and the back button works.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Creation } from '../components/creation.tsx';
import { DeletedRows } from '../components/deleted-rows.tsx';
import { ExportButtons } from '../components/export-rows.tsx';
import { type Changes, Filters } from '../components/filters.tsx';
import { kindOf } from '../components/form-values.ts';
import { MarkedRows } from '../components/marked-rows.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { Rows } from '../components/rows.tsx';
import { titleMembers } from '../components/value.tsx';
import { type Listed, listOf, resolve } from '../description.ts';
import { go, linkTo, route } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';

type Page = {
  readonly items: readonly Record<string, unknown>[];
  readonly nextCursor: string | null;
  /** From `Prefer: count=exact`. */
  readonly total: string | null;
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
  const { page, problem, reload } = usePage(request);
  const [isCreating, setCreating] = useState(false);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setMarked(new Set()), [page]);
  const columns = columnsOf(list, query);
  const isOfDeleted = query.get('deleted') === 'yes';
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
          {list.keepsDeleted && !isOfDeleted ? (
            <a class="button" href={linkTo('list', { path: list.path, deleted: 'yes' })}>
              Deleted
            </a>
          ) : null}
          <button type="button" onClick={reload}>
            Reload
          </button>
        </div>
      </header>
      {isCreating ? <Creation list={list} onDone={endCreation} /> : null}
      {isOfDeleted ? (
        <DeletedRows list={list} />
      ) : (
        <Live
          {...{ list, query, columns, change, request, marked, setMarked }}
          pageOf={{ page, problem, reload }}
        />
      )}
    </section>
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
  const { page, problem, reload } = pageOf;
  return (
    <>
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
          <Pager query={query} nextCursor={page.nextCursor} onChange={change}>
            <ExportButtons path={request} name={list.name} columns={columns} />
          </Pager>
        </>
      )}
    </>
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
function requestOf(list: Listed, query: URLSearchParams): string {
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

/** The member that names a document, others that are short, and when it was created. */
function columnsDefault({ schema: { properties = {} } }: Listed): readonly string[] {
  const members = Object.keys(properties);
  const made = ['id', 'createdAt', 'updatedAt', 'deletedAt'];
  const short = members.filter((name) => {
    const kind = kindOf(resolve(properties[name]));
    return name === 'actor' || (!made.includes(name) && kind !== 'json' && kind !== 'long');
  });
  const title = titleMembers.find((name) => short.includes(name));
  const ordered = title === undefined ? short : [title, ...short.filter((name) => name !== title)];
  const shown = [...ordered.slice(0, columnsMax), ...(members.includes('createdAt') ? ['createdAt'] : [])];
  return ordered.length > 0 ? shown : members.slice(0, columnsMax);
}
