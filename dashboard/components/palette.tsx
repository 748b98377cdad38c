/**
 * The palette (Ctrl+K): one field that leads to pages, collections, documents and what can be done, with the keyboard alone. Documents are
 * searched in the lists that take `q`, once the person stops typing.
 */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isCollection, type Listed, listOf } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { rightsIn } from '../rights.ts';
import { go, linkTo, route } from '../route.ts';
import { nameOfStep, titleOf } from './action-panel.tsx';
import { findDocuments } from './reference-field.tsx';

/** Somewhere to go, or something to do. */
export type Entry = {
  readonly text: string;
  /** The kind of the entry: `Page`, or the name of the list. */
  readonly kind: string;
  readonly run: () => void;
};

const entriesShown = 12;
const documentsPerList = 4;
/** Lists that are searched for documents at once. */
const listsSearched = 8;
const pauseMs = 150;

type PaletteProps = { readonly lists: readonly Listed[]; readonly pages: readonly Entry[] };

export function Palette({ lists, pages }: PaletteProps): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k')) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
  return (
    <>
      <button type="button" class="search-all" onClick={() => setOpen(true)}>
        Search… <kbd>Ctrl K</kbd>
      </button>
      {isOpen ? <Opened {...{ lists, pages }} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function Opened({ lists, pages, onClose }: PaletteProps & { readonly onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const documents = useDocuments(lists, text);
  // Before the next key is pressed.
  useLayoutEffect(() => {
    dialog.current?.showModal();
    return () => dialog.current?.close();
  }, []);
  const words = text.toLowerCase().split(' ');
  const fixed = [...actionsInView(), ...pages, ...lists.flatMap(entriesOf)].filter((each) =>
    words.every((word) => each.text.toLowerCase().includes(word)),
  );
  const entries = [...fixed, ...documents].slice(0, entriesShown);
  const choose = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined && event.key !== 'Enter') return;
    event.preventDefault();
    if (step === undefined) choose(entries[active]);
    else if (entries.length > 0) setActive((active + step + entries.length) % entries.length);
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Search everything" onCancel={onClose} onClose={onClose}>
      <input
        type="text"
        role="combobox"
        autocomplete="off"
        aria-label="Go to a page, a document or an action"
        aria-autocomplete="list"
        aria-expanded={entries.length > 0}
        aria-controls="palette-list"
        aria-activedescendant={entries.length > 0 ? `palette-${active}` : undefined}
        placeholder="Pages, documents, actions"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={press}
      />
      <div id="palette-list" role="listbox" aria-label="Found">
        {entries.map((each, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input (aria-activedescendant).
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys.
          <div
            key={`${each.kind} ${each.text} ${index}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(each)}
          >
            {each.text} <span class="quiet">{each.kind}</span>
          </div>
        ))}
      </div>
      <p role="status" class="quiet">{`${entries.length} found`}</p>
    </dialog>
  );
}

function entriesOf(list: Listed): readonly Entry[] {
  const name = nameOf(list);
  const shown = { text: name, kind: 'List', run: () => go(linkTo('list', { path: list.path })) };
  if (list.create === undefined || !isCollection(list)) return [shown];
  const rights = rightsIn(list);
  if (rights?.may('create') !== true) return [shown];
  const make = () => go(linkTo('list', { path: list.path, new: 'yes' }));
  const bring = {
    text: `Import: ${name}`,
    kind: 'Action',
    run: () => go(linkTo('import', { path: list.path })),
  };
  return [
    shown,
    { text: `New: ${list.schema.title ?? name}`, kind: 'Action', run: make },
    ...(list.canImport ? [bring] : []),
  ];
}

/** The requests of the document or the list that the page shows, which open their forms there. */
function actionsInView(): readonly Entry[] {
  const { view, query } = route.value;
  const list = listOf(query.get('path') ?? '');
  if (list === undefined) return [];
  const steps = { list: list.actions, member: list.member?.steps ?? [] }[view] ?? [];
  const kind = view === 'member' ? 'Action on this document' : `Action on ${nameOf(list)}`;
  return steps
    .filter((step) => rightsIn(list)?.mayCall(step) === true)
    .map((step) => ({
      ...{ text: titleOf(step), kind },
      run: () => go(linkTo(view, { ...Object.fromEntries(query), $action: nameOfStep(step) })),
    }));
}

/** The documents that match what was typed. The reply to an earlier text is dropped. */
function useDocuments(lists: readonly Listed[], text: string): readonly Entry[] {
  const [found, setFound] = useState<readonly Entry[]>([]);
  useEffect(() => {
    setFound([]);
    if (text.trim().length < 2) return undefined;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const searched = lists
        .filter(
          (list) =>
            list.searchable && list.member !== undefined && (isCollection(list) || list.tag === 'users'),
        )
        .slice(0, listsSearched);
      const groups = await Promise.all(
        searched.map(async (list) => {
          const documents = await findDocuments(list, text.trim(), documentsPerList);
          return documents.map(({ id, title }) => ({
            text: title,
            kind: nameOf(list),
            run: () => go(linkTo('member', { path: list.path, id })),
          }));
        }),
      );
      if (isCurrent) setFound(groups.flat());
    }, pauseMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  return found;
}
