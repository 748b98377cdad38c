/** The rows of a list as a table, and what can be done with those that are marked. */
import type { JSX } from 'preact';
import type { Listed } from '../description.ts';
import { linkTo } from '../route.ts';
import { problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';
import type { Changes } from './filters.tsx';
import { Value } from './value.tsx';

type Row = Readonly<Record<string, unknown>>;

type RowsProps = {
  readonly list: Listed;
  readonly items: readonly Row[];
  readonly columns: readonly string[];
  /** `price` or `-price`; empty: the order of the server. */
  readonly sort: string;
  readonly onSort: (changes: Changes) => void;
  readonly marked: ReadonlySet<string>;
  readonly onMark: (marked: ReadonlySet<string>) => void;
};

export function Rows(props: RowsProps): JSX.Element {
  const { list, items, columns, marked, onMark } = props;
  const mark = (id: string) => {
    const changed = new Set(marked);
    if (!changed.delete(id)) changed.add(id);
    onMark(changed);
  };
  if (items.length === 0) return <p class="empty">No {list.name} match this view.</p>;
  const idName = list.member?.parameter ?? 'id';
  return (
    <section class="scroll" tabIndex={0} aria-label={`Table of ${list.name}`}>
      <table>
        <Head {...props} />
        <tbody>
          {items.map((row) => {
            const id = String(row[idName] ?? row.id ?? '');
            return (
              <tr key={id}>
                {list.member?.canDelete ? (
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Mark ${id}`}
                      checked={marked.has(id)}
                      onChange={() => mark(id)}
                    />
                  </td>
                ) : null}
                <Cells list={list} row={row} id={id} columns={columns} />
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Head({ list, columns, sort, onSort }: RowsProps): JSX.Element {
  const order = (name: string) =>
    sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined;
  const arrows = { ascending: '▲', descending: '▼' } as const;
  return (
    <thead>
      <tr>
        {list.member?.canDelete ? (
          <th>
            <span class="hidden">Marked</span>
          </th>
        ) : null}
        {columns.map((name) => {
          const now = order(name);
          const next = now === 'ascending' ? `-${name}` : name;
          return (
            <th key={name} aria-sort={now}>
              {list.sortKeys.includes(name) ? (
                <button type="button" class="sort" onClick={() => onSort({ sort: next })}>
                  {name} <span aria-hidden="true">{now === undefined ? '' : arrows[now]}</span>
                </button>
              ) : (
                name
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

type CellsProps = {
  readonly list: Listed;
  readonly row: Row;
  readonly id: string;
  readonly columns: readonly string[];
};

/** The first cell is the link to the member. */
function Cells({ list, row, id, columns }: CellsProps): JSX.Element {
  return (
    <>
      {columns.map((name, index) => (
        <td key={name}>
          {index === 0 && list.member !== undefined ? (
            <a class="id" href={linkTo('member', { path: list.path, id })}>
              <Value value={row[name] ?? id} />
            </a>
          ) : (
            <Value value={row[name]} />
          )}
        </td>
      ))}
    </>
  );
}

type MarkedRowsProps = {
  readonly list: Listed;
  readonly marked: ReadonlySet<string>;
  readonly onDone: () => void;
};

export function MarkedRows({ list, marked, onDone }: MarkedRowsProps): JSX.Element | null {
  if (marked.size === 0) return null;
  const remove = async () => {
    const reply = await send('POST', `${list.path}/bulk-delete`, { json: { ids: [...marked] } });
    if (reply.status < 400) onDone();
    return problemOf(reply);
  };
  return (
    <div class="marked" role="status">
      {`${marked.size} marked`} <ConfirmButton action="Delete" question="Delete them?" onConfirm={remove} />
    </div>
  );
}
