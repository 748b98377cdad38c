/**
 * The cells of a list as a grid (WAI-ARIA 1.2): one of them has the focus, arrow keys move it, and Enter, F2 or a double click edits the
 * member. A change sends If-Match with the entity tag of the row; what somebody else changed meanwhile is merged as on the page of the document.
 */
import type { JSX, RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { type Conflict, changeDocument, type Members, type Version } from '../change-document.ts';
import { isCollection, type Listed, memberPath } from '../description.ts';
import { titleOf } from '../reference-titles.ts';
import { type Rights, readRights } from '../rights.ts';
import type { Problem } from '../send.ts';
import { CellEditor, reasonNotEdited } from './cell-editor.tsx';
import { ConflictView } from './conflict.tsx';
import { announceChange } from './notice.tsx';
import { ProblemNote } from './problem.tsx';
import { SidePanel } from './side-panel.tsx';

/** Answers whether rows of the list are edited where they are. */
export function isEditable(list: Listed): boolean {
  return isCollection(list) && list.member?.patch !== undefined;
}

/** The member of items that has their entity tag, where `fields` asks for it. */
export function tagMemberOf({ schema }: Listed): string {
  return schema.properties?.etag === undefined ? 'etag' : '$etag';
}

export type Place = { readonly row: number; readonly column: number };

export type CellsOptions = {
  readonly list: Listed;
  readonly items: readonly Members[];
  readonly columns: readonly string[];
  readonly idOf: (row: Members) => string;
  readonly scroller: RefObject<HTMLElement | null>;
  /** Gets a document as it is now. Undefined: it must be read again. */
  readonly onChanged: (id: string, version: Version | undefined) => void;
};

export type Cells = ReturnType<typeof useCells>;

export function useCells({ list, items, columns, idOf, scroller, onChanged }: CellsOptions) {
  const [focused, setFocused] = useState<Place>({ row: 0, column: 0 });
  const [edited, setEdited] = useState<Place | undefined>(undefined);
  const [note, setNote] = useState<string | undefined>(undefined);
  const [conflict, setConflict] = useState<(Conflict & { readonly id: string }) | undefined>(undefined);
  const reasonOf = useReasons(list, idOf);
  const tagMember = tagMemberOf(list);

  const focus = ({ row, column }: Place) => {
    const place = {
      row: Math.min(Math.max(row, 0), items.length - 1),
      column: Math.min(Math.max(column, 0), columns.length - 1),
    };
    setFocused(place);
    setNote(undefined);
    scroller.current?.querySelector<HTMLElement>(`[data-cell="${place.row}:${place.column}"]`)?.focus();
  };
  const edit = async (place: Place) => {
    focus(place);
    const reason = await reasonOf(items[place.row] ?? {}, columns[place.column] ?? '');
    if (reason === undefined) setEdited(place);
    else setNote(reason);
  };
  const end = (step: -1 | 0 | 1) => {
    const place = edited ?? focused;
    setEdited(undefined);
    // The cell gets the focus once it has its value again.
    requestAnimationFrame(() => focus({ ...place, column: place.column + step }));
  };
  const change = async (id: string, changed: Members, version: Version): Promise<Problem | undefined> => {
    const hasHistory = list.member?.hasHistory === true;
    const before = version.document;
    const done = await changeDocument(memberPath(list, id), {
      changed,
      tag: version.tag,
      before,
      hasHistory,
    });
    if ('conflict' in done) setConflict({ ...done.conflict, id });
    if ('made' in done) {
      setConflict(undefined);
      announceChange({ list, changed, before, made: done.made });
      onChanged(id, done.made);
    }
    return 'problem' in done ? done.problem : undefined;
  };
  const save = (item: Members, name: string, value: unknown): Promise<Problem | undefined> => {
    const { [tagMember]: tag, ...document } = item;
    return change(idOf(item), { [name]: value }, { document, tag: typeof tag === 'string' ? tag : null });
  };
  return {
    list,
    items,
    columns,
    focused,
    edited,
    note,
    conflict,
    focus,
    edit,
    end,
    save,
    change,
    onChanged,
    setConflict,
  };
}

/** Why a member is not edited in the list; each document is asked once which are closed to the caller. */
function useReasons(list: Listed, idOf: CellsOptions['idOf']) {
  const known = useRef(new Map<string, Promise<Rights>>());
  return async (item: Members, name: string): Promise<string | undefined> => {
    const fixed = reasonNotEdited(list, name);
    if (fixed !== undefined) return fixed;
    const id = idOf(item);
    const found = known.current.get(id) ?? readRights(list, id);
    known.current.set(id, found);
    const { may, closed } = await found;
    return may('update') && closed([name]).size === 0 ? undefined : 'You may not change this.';
  };
}

/**
 * Attributes of the cell at a place, and its editor if it is edited.
 * @param stop the cell that the Tab key reaches
 */
export function cellOf(cells: Cells, place: Place, stop: Place) {
  const { list, columns, items, focused, edited, note } = cells;
  const isAt = (other: Place | undefined) => other?.row === place.row && other.column === place.column;
  const [name = '', item = {}] = [columns[place.column], items[place.row]];
  const isEdited = isAt(edited);
  const isNoted = note !== undefined && isAt(focused);
  return {
    attributes: {
      'data-cell': `${place.row}:${place.column}`,
      class: isEdited || isNoted ? 'edited' : undefined,
      tabIndex: isAt(stop) ? 0 : -1,
      'aria-readonly': reasonNotEdited(list, name) !== undefined,
      onDblClick: () => isEdited || void cells.edit(place),
      onFocus: (event: FocusEvent) =>
        event.target === event.currentTarget && !isAt(focused) && cells.focus(place),
      onKeyDown: (event: KeyboardEvent) => event.target === event.currentTarget && press(cells, place, event),
    },
    editor: isEdited ? (
      <CellEditor
        {...{ list, name }}
        value={item[name]}
        onSave={(value) => cells.save(item, name, value)}
        onEnd={cells.end}
      />
    ) : undefined,
    note: isNoted ? (
      <p class="cell-note" role="status">
        {note}
      </p>
    ) : null,
  };
}

function press(cells: Cells, { row, column }: Place, event: KeyboardEvent): void {
  const last = cells.columns.length - 1;
  const moved = {
    ArrowDown: { row: row + 1, column },
    ArrowUp: { row: row - 1, column },
    ArrowLeft: { row, column: column - 1 },
    ArrowRight: { row, column: column + 1 },
    Home: { row, column: 0 },
    End: { row, column: last },
  }[event.key];
  if (moved !== undefined) cells.focus(moved);
  else if (event.key === 'Enter' || event.key === 'F2') void cells.edit({ row, column });
  else return;
  event.preventDefault();
}

/** The cell that the Tab key reaches: the focused one, or the first of the rows that are elements. */
export function stopOf({ focused, columns }: Cells, first: number, end: number): Place {
  return {
    row: Math.min(Math.max(focused.row, first), end - 1),
    column: Math.min(focused.column, columns.length - 1),
  };
}

/** A change of a cell that came second. */
export function CellConflict({ cells }: { readonly cells: Cells }): JSX.Element | null {
  const { conflict } = cells;
  if (conflict === undefined) return null;
  return <Merge key={conflict.theirs.tag} {...{ cells, conflict }} />;
}

type MergeProps = { readonly cells: Cells; readonly conflict: NonNullable<Cells['conflict']> };

function Merge({ cells, conflict }: MergeProps): JSX.Element {
  const { list, change, onChanged, setConflict, end } = cells;
  const { id, theirs } = conflict;
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const close = () => {
    setConflict(undefined);
    onChanged(id, theirs);
    end(0);
  };
  const merge = (chosen: Members) => {
    if (Object.keys(chosen).length === 0) close();
    else void change(id, chosen, theirs).then(setProblem);
  };
  return (
    <SidePanel title={titleOf(list, theirs.document)} onClose={close}>
      <ProblemNote problem={problem} />
      <ConflictView list={list} conflict={conflict} onMerge={merge} />
    </SidePanel>
  );
}
