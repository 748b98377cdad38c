/** The rows of a list as a table: marks, sort by column, links to members and to what they refer to. Long tables show the rows in view. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import type { Version } from '../change-document.ts';
import type { Listed } from '../description.ts';
import { isNumeric, labelOf, nameOf } from '../presentation.ts';
import { idOf, titleOf } from '../reference-titles.ts';
import { rightsIn } from '../rights.ts';
import { linkTo } from '../route.ts';
import {
  CellConflict,
  type Cells,
  cellOf,
  isEditable,
  type Place,
  stopOf,
  useCells,
} from './editable-cells.tsx';
import type { Changes } from './filters.tsx';
import { MemberValue } from './member-value.tsx';
import { useWindow } from './use-window.ts';

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
  readonly onChanged: (id: string, version: Version | undefined) => void;
};

export function Rows(props: RowsProps): JSX.Element {
  const { list, items, columns, marked, onMark, onChanged } = props;
  const { scroller, window } = useWindow(items.length);
  const { first, end, rowPixels } = window;
  const cells = useCells({ list, items, columns, scroller, onChanged, idOf: (row) => idOf(list, row) });
  const stop = stopOf(cells, first, end);
  const rights = rightsIn(list);
  const isGrid = isEditable(list) && rights?.may('update') === true;
  const hasMarks = list.deletesMany && rights?.may('delete') === true;
  const mark = useCallback(
    (id: string) => {
      const changed = new Set(marked);
      if (!changed.delete(id)) changed.add(id);
      onMark(changed);
    },
    [marked, onMark],
  );
  if (items.length === 0) return <p class="empty">No {nameOf(list)} match this view.</p>;
  return (
    <>
      <section class="scroll" tabIndex={0} aria-label={`Table of ${nameOf(list)}`} ref={scroller}>
        <table
          class="rows"
          role={isGrid ? 'grid' : undefined}
          aria-label={isGrid ? nameOf(list) : undefined}
          aria-describedby={isGrid ? 'grid-keys' : undefined}
          aria-rowcount={items.length + 1}
        >
          <Head {...props} hasMarks={hasMarks} />
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
                  {hasMarks ? (
                    <Mark title={titleOf(list, row)} isMarked={marked.has(id)} onMark={() => mark(id)} />
                  ) : null}
                  {columns.map((name, column) => (
                    <CellBox
                      key={name}
                      {...{ list, row, id, name }}
                      {...{ cells: isGrid ? cells : undefined, place: { row: first + index, column }, stop }}
                    />
                  ))}
                </tr>
              );
            })}
            <Space pixels={(items.length - end) * rowPixels} />
          </tbody>
        </table>
      </section>
      {isGrid ? (
        <p id="grid-keys" class="hint wide-only">
          Double-click a cell, or press Enter on it, to edit it. Arrow keys move between cells.
        </p>
      ) : null}
      <CellConflict cells={cells} />
    </>
  );
}

type MarkProps = { readonly title: string; readonly isMarked: boolean; readonly onMark: () => void };

function Mark({ title, isMarked, onMark }: MarkProps): JSX.Element {
  return (
    <td class="mark">
      <input type="checkbox" aria-label={`Mark ${title}`} checked={isMarked} onChange={onMark} />
    </td>
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

type HeadProps = RowsProps & { readonly hasMarks: boolean };

function Head({ list, items, columns, sort, onSort, marked, onMark, hasMarks }: HeadProps): JSX.Element {
  const ids = items.map((row) => idOf(list, row));
  const isAll = ids.every((id) => marked.has(id));
  return (
    <thead>
      <tr>
        {hasMarks ? (
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
            label={labelOf(list.schema, name)}
            isNumeric={isNumeric(list.schema, name)}
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
  readonly label: string;
  readonly isSorted: boolean;
  readonly isNumeric: boolean;
};

const arrows = { ascending: '↑', descending: '↓' } as const;

function HeadCell({ name, label, isSorted, isNumeric: isRight, sort, onSort }: HeadCellProps): JSX.Element {
  const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined;
  const next = order === 'ascending' ? `-${name}` : name;
  return (
    <th aria-sort={order} class={isRight ? 'number' : undefined}>
      {isSorted ? (
        <button type="button" class="sort" onClick={() => onSort({ sort: next })}>
          {label} <span>{order === undefined ? '' : arrows[order]}</span>
        </button>
      ) : (
        label
      )}
    </th>
  );
}

type CellProps = {
  readonly list: Listed;
  readonly row: Row;
  readonly id: string;
  readonly name: string;
};

type CellBoxProps = CellProps & {
  /** Undefined: no cell of the list is edited. */
  readonly cells: Cells | undefined;
  readonly place: Place;
  readonly stop: Place;
};

/** The first cell is the link to the member. */
function CellBox({ cells, place, stop, ...cell }: CellBoxProps): JSX.Element {
  const shown = <Cell {...cell} isFirst={place.column === 0} />;
  const side = isNumeric(cell.list.schema, cell.name) ? 'number' : undefined;
  if (cells === undefined) return <td class={side}>{shown}</td>;
  const { attributes, editor, note } = cellOf(cells, place, stop);
  return (
    <td {...attributes} class={[side, attributes.class].filter(Boolean).join(' ') || undefined}>
      {editor ?? shown}
      {note}
    </td>
  );
}

function Cell({ list, row, name, id, isFirst }: CellProps & { readonly isFirst: boolean }): JSX.Element {
  const value = row[name];
  if (!isFirst || list.member === undefined)
    return <MemberValue {...{ list, name, value }} document={row} isCell />;
  return (
    <a class="id" href={linkTo('member', { path: list.path, id })}>
      {value === undefined || value === null ? (
        titleOf(list, row)
      ) : (
        <MemberValue {...{ list, name, value }} document={row} isCell isText />
      )}
    </a>
  );
}
