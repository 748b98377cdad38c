/** The rows of a list as a table: marks, sort by column, links to members and to what they refer to. Long tables show the rows in view. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { type Listed, resolve } from '../description.ts';
import { linkTo } from '../route.ts';
import { isObject } from '../send.ts';
import { Actor, type ActorValue } from './actor.tsx';
import type { Changes } from './filters.tsx';
import { choicesOf } from './form-values.ts';
import { listOfId, ReferenceLink } from './reference-link.tsx';
import { useWindow } from './use-window.ts';
import { Badge, Time, Value } from './value.tsx';

export type Row = Readonly<Record<string, unknown>>;

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

export function idOf(list: Listed, row: Row): string {
  return String(row[list.member?.parameter ?? 'id'] ?? row.id ?? '');
}

export function Rows(props: RowsProps): JSX.Element {
  const { list, items, columns, marked, onMark } = props;
  const { scroller, window } = useWindow(items.length);
  const { first, end, rowPixels } = window;
  const mark = useCallback(
    (id: string) => {
      const changed = new Set(marked);
      if (!changed.delete(id)) changed.add(id);
      onMark(changed);
    },
    [marked, onMark],
  );
  if (items.length === 0) return <p class="empty">No {list.name} match this view.</p>;
  return (
    <section class="scroll" tabIndex={0} aria-label={`Table of ${list.name}`} ref={scroller}>
      <table class="rows" aria-rowcount={items.length + 1}>
        <Head {...props} />
        <tbody>
          <Space pixels={first * rowPixels} />
          {items.slice(first, end).map((row, index) => {
            const id = idOf(list, row);
            return (
              <tr
                key={id || first + index}
                aria-rowindex={first + index + 2}
                class={(first + index) % 2 === 1 ? 'odd' : undefined}
              >
                {list.deletesMany ? (
                  <td class="mark">
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
          <Space pixels={(items.length - end) * rowPixels} />
        </tbody>
      </table>
    </section>
  );
}

/** Stands for the rows out of view. */
function Space({ pixels }: { readonly pixels: number }): JSX.Element | null {
  if (pixels === 0) return null;
  return (
    <tr class="space">
      <td style={{ height: `${pixels}px` }} />
    </tr>
  );
}

function Head({ list, items, columns, sort, onSort, marked, onMark }: RowsProps): JSX.Element {
  const ids = items.map((row) => idOf(list, row));
  const isAll = ids.every((id) => marked.has(id));
  return (
    <thead>
      <tr>
        {list.deletesMany ? (
          <th class="mark">
            <input
              type="checkbox"
              aria-label="Mark all rows"
              checked={isAll}
              onChange={() => onMark(new Set(isAll ? [] : ids))}
            />
          </th>
        ) : null}
        {columns.map((name) => (
          <HeadCell
            key={name}
            name={name}
            isSorted={list.sortKeys.includes(name)}
            sort={sort}
            onSort={onSort}
          />
        ))}
      </tr>
    </thead>
  );
}

type HeadCellProps = Pick<RowsProps, 'sort' | 'onSort'> & {
  readonly name: string;
  readonly isSorted: boolean;
};

const arrows = { ascending: '↑', descending: '↓' } as const;

function HeadCell({ name, isSorted, sort, onSort }: HeadCellProps): JSX.Element {
  const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined;
  const next = order === 'ascending' ? `-${name}` : name;
  return (
    <th aria-sort={order}>
      {isSorted ? (
        <button type="button" class="sort" onClick={() => onSort({ sort: next })}>
          {name} <span>{order === undefined ? '' : arrows[order]}</span>
        </button>
      ) : (
        name
      )}
    </th>
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
          <Cell {...{ list, name, id }} value={row[name]} isFirst={index === 0} />
        </td>
      ))}
    </>
  );
}

type CellProps = {
  readonly list: Listed;
  readonly name: string;
  readonly id: string;
  readonly value: unknown;
  readonly isFirst: boolean;
};

function Cell({ list, name, id, value, isFirst }: CellProps): JSX.Element {
  if (isFirst && list.member !== undefined)
    return (
      <a class="id" href={linkTo('member', { path: list.path, id })}>
        <Value value={value ?? id} />
      </a>
    );
  if (typeof value === 'string') {
    const target = list.references.get(name) ?? listOfId(value);
    if (target !== undefined) return <ReferenceLink path={target} id={value} />;
    if (choicesOf(resolve(list.schema.properties?.[name])).length > 0) return <Badge text={value} />;
  }
  // Seconds since the epoch (§6.2).
  if (name === 'created' && typeof value === 'number')
    return <Time value={new Date(value * 1000).toISOString()} />;
  if (name === 'actor' && isObject(value)) return <Actor actor={value as unknown as ActorValue} />;
  return <Value value={value} />;
}
