/**
 * The query console: QUERY of a list as JSON or SQL (§4.9) with completion, its result as a table, the resource that repeats it, and the
 * same as curl or code. The address holds the query, so that it can be kept and sent as a link.
 */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { PlainTable } from '../components/plain-table.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { codeOf, curlOf } from '../components/query-copies.ts';
import { QueryEditor } from '../components/query-editor.tsx';
import { ReferenceLink } from '../components/reference-link.tsx';
import { Badge, CopyButton, Json } from '../components/value.tsx';
import { belowPrefix, description, type Listed, listOf } from '../description.ts';
import { go, linkTo } from '../route.ts';
import { isObject, prefix, problemOf, type Reply, send } from '../send.ts';

const mediaTypes = { json: 'application/json', sql: 'application/sql' } as const;
type Language = keyof typeof mediaTypes;

const languageWords: Readonly<Record<Language, readonly string[]>> = {
  json: [
    ...['filter', 'sort', 'limit', 'cursor', 'fields', 'q', 'expand', 'aggregate', 'groupBy', 'having'],
    ...['and', 'or', 'not', 'eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'count', 'sum', 'avg', 'min', 'max'],
  ],
  sql: [
    ...['SELECT', 'FROM', 'WHERE', 'ORDER BY', 'GROUP BY', 'HAVING', 'LIMIT', 'OFFSET', 'AND', 'OR', 'NOT'],
    ...['IN', 'BETWEEN', 'LIKE', 'IS NULL', 'ASC', 'DESC', 'COUNT', 'SUM', 'AVG', 'MIN', 'MAX'],
  ],
};

export function QueryPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const lists = (description.value?.lists ?? []).filter(({ searchable }) => searchable);
  const list = listOf(query.get('path') ?? '') ?? lists[0];
  if (list === undefined) return <p role="alert">The API has no list that takes QUERY.</p>;
  return (
    <section aria-labelledby="query-title">
      <h1 id="query-title">Query</h1>
      <label>
        List{' '}
        <select
          value={list.path}
          onChange={(event) => go(linkTo('query', { path: event.currentTarget.value }))}
        >
          {lists.map((each) => (
            <option key={each.path} value={each.path}>
              {each.name}
            </option>
          ))}
        </select>
      </label>
      <Console list={list} query={query} />
    </section>
  );
}

type ConsoleProps = { readonly list: Listed; readonly query: URLSearchParams };

function Console({ list, query }: ConsoleProps): JSX.Element {
  const linked = query.get('text');
  const { language, setLanguage, texts, setTexts } = useTexts(list, query);
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const text = texts[language];
  const type = mediaTypes[language];
  const members = Object.keys(list.schema.properties ?? {});
  const run = async (event?: Event) => {
    event?.preventDefault();
    // The address changes without a step in the history for each run.
    const link = linkTo('query', { path: list.path, language, text });
    history.replaceState(null, '', link);
    setReply(await send('QUERY', list.path, { text, headers: { 'Content-Type': type, Prefer: 'plan' } }));
  };
  useEffect(() => {
    setReply(undefined);
    if (linked !== null) void run();
  }, [list.path]);
  const write = (next: string) => setTexts({ ...texts, [language]: next });
  return (
    <form onSubmit={run}>
      <fieldset class="choice">
        <legend>Language</legend>
        {(['json', 'sql'] as const).map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="language"
              checked={language === each}
              onChange={() => setLanguage(each)}
            />{' '}
            {each.toUpperCase()}
          </label>
        ))}
      </fieldset>
      <QueryEditor text={text} words={[...members, ...languageWords[language]]} onText={write} />
      <p class="members-line">
        Members:{' '}
        {members.map((name) => (
          <button
            type="button"
            class="small"
            key={name}
            onClick={() => write(`${text}${language === 'sql' ? ` ${name}` : `"${name}"`}`)}
          >
            {name}
          </button>
        ))}
      </p>
      <div class="buttons">
        <button type="submit" class="primary">
          Run <kbd>Ctrl Enter</kbd>
        </button>
        <CopyButton
          text={location.href.replace(/#.*$/, '') + linkTo('query', { path: list.path, language, text })}
          label="Copy link"
        />
        <CopyButton text={curlOf({ path: list.path, type, text })} label="Copy as curl" />
        <CopyButton text={codeOf({ path: list.path, type, text })} label="Copy as code" />
      </div>
      {reply === undefined ? null : <Result list={list} reply={reply} />}
    </form>
  );
}

/** The text in each language. It stays when another list is chosen, which SQL then reads from. */
function useTexts(list: Listed, query: URLSearchParams) {
  const [language, setLanguage] = useState<Language>(query.get('language') === 'sql' ? 'sql' : 'json');
  const linked = query.get('text');
  const [texts, setTexts] = useState({
    json: '{\n  "sort": ["-createdAt"],\n  "limit": 20\n}',
    sql: `SELECT * FROM ${list.name} ORDER BY createdAt DESC LIMIT 20`,
    ...(linked === null ? {} : { [language]: linked }),
  });
  const before = useRef(list.name);
  useLayoutEffect(() => {
    const { current } = before;
    before.current = list.name;
    if (current !== list.name) setTexts({ ...texts, sql: readingFrom(texts.sql, current, list.name) });
  }, [list.name]);
  return { language, setLanguage, texts, setTexts };
}

function readingFrom(sql: string, before: string, after: string): string {
  const from = new RegExp(`(\\bfrom\\s+"?)${before}(?![\\w-])`, 'i');
  return sql.replace(from, (_, start: string) => start + after);
}

function Result({ list, reply }: { readonly list: Listed; readonly reply: Reply }): JSX.Element {
  const rows =
    isObject(reply.json) && Array.isArray(reply.json.items) ? reply.json.items.filter(isObject) : undefined;
  if (rows === undefined) return <ProblemNote problem={problemOf(reply)} />;
  const repeats = reply.headers.get('Location');
  const cell = (name: string, row: Readonly<Record<string, unknown>>) => {
    const target = name === 'id' ? list.path : list.references.get(name);
    const value = row[name];
    return target === undefined || typeof value !== 'string' || list.member === undefined ? undefined : (
      <ReferenceLink path={target} id={value} isId={name === 'id'} />
    );
  };
  return (
    <div class="result">
      <p role="status">
        {`${rows.length} rows in ${reply.durationMs.toFixed(1)} ms`}
        {repeats === null ? null : (
          <>
            {'. '}
            <a href={prefix + belowPrefix(repeats)} target="_blank" rel="noreferrer">
              The resource that repeats this query
            </a>
          </>
        )}
      </p>
      <PlanNote field={reply.headers.get('Comity-Plan')} />
      <PlainTable rows={rows} label="Result" cell={cell} />
      <details>
        <summary>JSON</summary>
        <Json value={reply.json} label="The result as JSON" />
      </details>
    </div>
  );
}

const planField = /^([a-z]+);words="([^"]*)"$/;

/** The plan by which the server read the list, which it names to administrators, and in development to everyone. */
function PlanNote({ field }: { readonly field: string | null }): JSX.Element | null {
  const [, token = '', words = ''] = planField.exec(field ?? '') ?? [];
  if (words === '') return null;
  return (
    <p class="plan">
      <Badge text={token} /> {words}
    </p>
  );
}
