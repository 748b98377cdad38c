/** The query console: QUERY of a list as JSON or SQL (§4.9), its result as a table, the resource that repeats it, and the same as curl. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ProblemNote } from '../components/problem.tsx';
import { CopyButton, Json, Value } from '../components/value.tsx';
import { description, type Listed, listOf } from '../description.ts';
import { go, linkTo } from '../route.ts';
import { isObject, prefix, problemOf, type Reply, send } from '../send.ts';

const mediaTypes = { json: 'application/json', sql: 'application/sql' } as const;
type Language = keyof typeof mediaTypes;

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
      <Console key={list.path} list={list} />
    </section>
  );
}

function Console({ list }: { readonly list: Listed }): JSX.Element {
  const [language, setLanguage] = useState<Language>('json');
  const [texts, setTexts] = useState({
    json: '{\n  "sort": ["-createdAt"],\n  "limit": 20\n}',
    sql: `SELECT * FROM ${list.name} ORDER BY createdAt DESC LIMIT 20`,
  });
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const text = texts[language];
  const run = async (event: Event) => {
    event.preventDefault();
    setReply(await send('QUERY', list.path, { text, headers: { 'Content-Type': mediaTypes[language] } }));
  };
  const insert = (name: string) =>
    setTexts({ ...texts, [language]: `${text}${language === 'sql' ? ` ${name}` : `"${name}"`}` });
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
      <label class="block">
        Query
        <textarea
          class="code"
          rows={8}
          spellcheck={false}
          value={text}
          onInput={(event) => setTexts({ ...texts, [language]: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey))
              event.currentTarget.form?.requestSubmit();
          }}
        />
      </label>
      <p class="members-line">
        Members:{' '}
        {Object.keys(list.schema.properties ?? {}).map((name) => (
          <button type="button" class="small" key={name} onClick={() => insert(name)}>
            {name}
          </button>
        ))}
      </p>
      <div class="buttons">
        <button type="submit" class="primary">
          Run <kbd>Ctrl Enter</kbd>
        </button>
        <CopyButton text={curlOf(list.path, mediaTypes[language], text)} label="Copy as curl" />
      </div>
      {reply === undefined ? null : <Result list={list} reply={reply} />}
    </form>
  );
}

function Result({ list, reply }: { readonly list: Listed; readonly reply: Reply }): JSX.Element {
  const rows =
    isObject(reply.json) && Array.isArray(reply.json.items) ? reply.json.items.filter(isObject) : undefined;
  if (rows === undefined) return <ProblemNote problem={problemOf(reply)} />;
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const repeats = reply.headers.get('Location');
  return (
    <div class="result">
      <p role="status">
        {`${rows.length} rows in ${reply.durationMs.toFixed(1)} ms`}
        {repeats === null ? null : (
          <>
            {'. '}
            <a href={prefix + repeats} target="_blank" rel="noreferrer">
              The resource that repeats this query
            </a>
          </>
        )}
      </p>
      <section class="scroll" tabIndex={0} aria-label="Result">
        <table>
          <thead>
            <tr>
              {columns.map((name) => (
                <th key={name}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={String(row.id ?? index)}>
                {columns.map((name) => (
                  <td key={name}>
                    {name === 'id' && list.member !== undefined ? (
                      <a class="id" href={linkTo('member', { path: list.path, id: String(row.id) })}>
                        {String(row.id)}
                      </a>
                    ) : (
                      <Value value={row[name]} />
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <details>
        <summary>JSON</summary>
        <Json value={reply.json} label="The result as JSON" />
      </details>
    </div>
  );
}

/** In quotes of a POSIX shell. */
function curlOf(path: string, type: string, text: string): string {
  const quote = (each: string) => `'${each.replaceAll("'", `'\\''`)}'`;
  return `curl -X QUERY -H "X-API-Key: $COMITY_ADMIN_KEY" -H ${quote(`Content-Type: ${type}`)} -d ${quote(text)} ${location.origin}${prefix}${path}`;
}
