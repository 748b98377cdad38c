/** The search, the filters and the choice of columns above a list. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Listed } from '../description.ts';

export type Changes = Readonly<Record<string, string | undefined>>;

type FiltersProps = {
  readonly list: Listed;
  readonly query: URLSearchParams;
  readonly columns: readonly string[];
  readonly onChange: (changes: Changes) => void;
};

export function Filters({ list, query, columns, onChange }: FiltersProps): JSX.Element {
  const active = [...query].filter(([each]) => list.filters.includes(each.split(/[.[]/, 1)[0] ?? ''));
  return (
    <div class="filters">
      {list.searchable ? <Search name={list.name} text={query.get('q') ?? ''} onChange={onChange} /> : null}
      {list.filters.length === 0 ? null : <NewFilter members={list.filters} onChange={onChange} />}
      <Columns members={Object.keys(list.schema.properties ?? {})} columns={columns} onChange={onChange} />
      {active.map(([each, filter]) => (
        <button
          type="button"
          class="chip"
          key={`${each}=${filter}`}
          onClick={() => onChange({ [each]: undefined })}
        >
          {`${each} = ${filter}`} <span aria-hidden="true">×</span>
          <span class="hidden">, remove this filter</span>
        </button>
      ))}
    </div>
  );
}

type SearchProps = {
  readonly name: string;
  readonly text: string;
  readonly onChange: (changes: Changes) => void;
};

function Search({ name, text, onChange }: SearchProps): JSX.Element {
  const find = (event: Event) => {
    event.preventDefault();
    const found = new FormData(event.currentTarget as HTMLFormElement).get('q');
    onChange({ q: typeof found === 'string' ? found : undefined });
  };
  return (
    <form onSubmit={find}>
      <input name="q" type="search" aria-label={`Search ${name}`} placeholder="Search" value={text} />
      <button type="submit">Search</button>
    </form>
  );
}

const operators = [
  ['eq', '='],
  ['ne', '≠'],
  ['gt', '>'],
  ['gte', '≥'],
  ['lt', '<'],
  ['lte', '≤'],
  ['in', 'one of'],
] as const;

type NewFilterProps = {
  readonly members: readonly string[];
  readonly onChange: (changes: Changes) => void;
};

function NewFilter({ members, onChange }: NewFilterProps): JSX.Element {
  const [name, setName] = useState(members[0] ?? '');
  const [operator, setOperator] = useState('eq');
  const [value, setValue] = useState('');
  const add = (event: Event) => {
    event.preventDefault();
    onChange({ [operator === 'eq' ? name : `${name}[${operator}]`]: value });
    setValue('');
  };
  const input = (use: (text: string) => void) => (event: Event) =>
    use((event.currentTarget as HTMLInputElement).value);
  return (
    <form onSubmit={add} aria-label="Add a filter">
      <select aria-label="Member" value={name} onChange={input(setName)}>
        {members.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <select aria-label="Comparison" value={operator} onChange={input(setOperator)}>
        {operators.map(([each, sign]) => (
          <option key={each} value={each}>
            {sign}
          </option>
        ))}
      </select>
      <input aria-label="Value" value={value} onInput={input(setValue)} />
      <button type="submit">Filter</button>
    </form>
  );
}

type ColumnsProps = {
  readonly members: readonly string[];
  readonly columns: readonly string[];
  readonly onChange: (changes: Changes) => void;
};

function Columns({ members, columns, onChange }: ColumnsProps): JSX.Element {
  const toggle = (name: string) => {
    const changed = columns.includes(name) ? columns.filter((each) => each !== name) : [...columns, name];
    onChange({ columns: changed.join(',') });
  };
  return (
    <details class="columns">
      <summary>Columns</summary>
      <fieldset>
        <legend>Shown members</legend>
        {members.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={columns.includes(name)} onChange={() => toggle(name)} />
            {name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}
