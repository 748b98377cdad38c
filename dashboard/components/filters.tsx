/** The search, the filters and the choice of columns above a list. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type Listed, resolve } from '../description.ts';
import { inWords, labelOf, nameOf, timeText } from '../presentation.ts';
import { titleOfReference } from '../reference-titles.ts';
import { parametersOf, relativeChoices, relativeText } from '../relative-times.ts';
import { Control } from './form-field.tsx';
import { kindOf } from './form-values.ts';

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
      {list.searchable ? (
        <Search name={nameOf(list)} text={query.get('q') ?? ''} onChange={onChange} />
      ) : null}
      {list.filters.length === 0 ? null : <NewFilter list={list} onChange={onChange} />}
      <Columns list={list} columns={columns} onChange={onChange} />
      {active.map(([each, filter]) => (
        <button
          type="button"
          class="chip"
          key={`${each}=${filter}`}
          onClick={() => onChange({ [each]: undefined })}
        >
          {chipText(list, each, filter)} <span aria-hidden="true">×</span>
          <span class="hidden">, remove this filter</span>
        </button>
      ))}
    </div>
  );
}

function chipText(list: Listed, name: string, filter: string): string {
  const [, member = name, operator = 'eq'] = /^([^[]+)(?:\[(\w+)\])?$/.exec(name) ?? [];
  const sign = operators.find(([each]) => each === operator)?.[1] ?? operator;
  const target = list.references.get(member);
  const label = member.includes('.') ? member : labelOf(list.schema, member);
  if (target !== undefined) return `${label} ${sign} ${titleOfReference(target, filter) ?? filter}`;
  const schema = resolve(list.schema.properties?.[member]);
  const kind = kindOf(schema);
  if (kind === 'time' || kind === 'date')
    return `${label} ${sign} ${relativeText(filter) ?? (kind === 'time' ? timeText(filter) : filter)}`;
  return `${label} ${sign} ${kind === 'choice' ? inWords(filter) : filter}`;
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
  readonly list: Listed;
  readonly onChange: (changes: Changes) => void;
};

/** Members that the server sets come last: people filter by their own more often. */
function NewFilter({ list, onChange }: NewFilterProps): JSX.Element {
  const made = ['id', 'createdAt', 'updatedAt', 'deletedAt'];
  const members = [...list.filters].sort((one, other) => made.indexOf(one) - made.indexOf(other));
  const [name, setName] = useState(members[0] ?? '');
  const [operator, setOperator] = useState('eq');
  const [value, setValue] = useState('');
  const schema = resolve(list.schema.properties?.[name]);
  const isList = operator === 'in';
  const kind = isList ? 'text' : kindOf(schema);
  const hasTimes = ['date', 'time'].includes(kindOf(schema));
  const isRelative = relativeChoices.includes(operator);
  const add = (event: Event) => {
    event.preventDefault();
    if (isRelative) onChange(parametersOf(name, operator, kind));
    if (isRelative || value === '') return;
    onChange({ [operator === 'eq' ? name : `${name}[${operator}]`]: value });
    setValue('');
  };
  const common = {
    id: `filter-${list.name}`,
    'aria-label': 'Value',
    value,
    onInput: (event: Event) => setValue((event.currentTarget as HTMLInputElement).value),
  };
  return (
    <form onSubmit={add} aria-label="Add a filter">
      <select
        aria-label="Member"
        value={name}
        onChange={(event) => {
          setName(event.currentTarget.value);
          setValue('');
          if (isRelative) setOperator('eq');
        }}
      >
        {members.map((each) => (
          <option key={each} value={each}>
            {each.includes('.') ? each : labelOf(list.schema, each)}
          </option>
        ))}
      </select>
      <select
        aria-label="Comparison"
        value={operator}
        onChange={(event) => setOperator(event.currentTarget.value)}
      >
        {operators.map(([each, sign]) => (
          <option key={each} value={each}>
            {sign}
          </option>
        ))}
        {hasTimes ? (
          <optgroup label="Relative to now">
            {relativeChoices.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </optgroup>
        ) : null}
      </select>
      {isRelative ? null : ['choice', 'boolean', 'reference', 'date', 'time'].includes(kind) ? (
        <Control key={name} schema={schema} common={common} onText={setValue} />
      ) : (
        <input {...common} placeholder={isList ? 'one,another' : ''} />
      )}
      <button type="submit">Filter</button>
    </form>
  );
}

type ColumnsProps = {
  readonly list: Listed;
  readonly columns: readonly string[];
  readonly onChange: (changes: Changes) => void;
};

function Columns({ list, columns, onChange }: ColumnsProps): JSX.Element {
  const toggle = (name: string) => {
    const changed = columns.includes(name) ? columns.filter((each) => each !== name) : [...columns, name];
    onChange({ columns: changed.join(',') });
  };
  return (
    <details class="columns">
      <summary>Columns</summary>
      <fieldset>
        <legend>Shown members</legend>
        {Object.keys(list.schema.properties ?? {}).map((name) => (
          <label key={name} title={name}>
            <input type="checkbox" checked={columns.includes(name)} onChange={() => toggle(name)} />
            {labelOf(list.schema, name)}
          </label>
        ))}
      </fieldset>
    </details>
  );
}
