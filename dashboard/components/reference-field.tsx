/**
 * The choice of a document that a member refers to: a combobox (WAI-ARIA 1.2, list with manual selection) over the referred list. It is
 * searched where the list takes `q`, otherwise by the beginning of a name. The value is the id; an id may also be pasted.
 */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { type Listed, memberPath, resolve } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { keepTitles, membersOfTitle, titleOf, titleOfReference } from '../reference-titles.ts';
import { isObject, send } from '../send.ts';

/** Attributes that the control of any field gets. */
export type Common = {
  readonly id: string;
  readonly value: string;
  readonly onInput: (event: Event) => void;
} & Record<string, unknown>;

type Found = { readonly id: string; readonly title: string };

const foundMax = 20;
const pauseMs = 150;

type ReferenceFieldProps = {
  readonly target: Listed;
  readonly common: Common;
  readonly onText: (id: string) => void;
};

export function ReferenceField({ target, common, onText }: ReferenceFieldProps): JSX.Element {
  const { id, value } = common;
  const search = useSearch(target);
  const { found, active, isOpen } = search;
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const title = value === '' ? '' : (titleOfReference(target.path, value) ?? value);
  const choose = (next: Found | undefined) => {
    if (next !== undefined) onText(next.id);
    setTyped(undefined);
    search.close();
  };
  const type = (text: string) => {
    setTyped(text);
    if (text === '') onText('');
    search.find(text);
  };
  /** Somebody who types fast presses Enter before the search has answered. */
  const enter = () => {
    const text = (typed ?? '').toLowerCase();
    const matching = found.find((each) => text !== '' && each.title.toLowerCase().startsWith(text));
    const chosen = found[active] ?? matching;
    if (chosen !== undefined || text === '') choose(chosen);
    else search.find(typed ?? '', ([first]) => choose(first));
  };
  const leave = () => {
    // A text that names no choice is taken back; an id that was pasted is found by its document.
    const exact = found.find((each) => each.id === typed || each.title === typed);
    choose(exact);
  };
  return (
    <div class="reference">
      <input
        {...common}
        type="text"
        role="combobox"
        autocomplete="off"
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-activedescendant={isOpen && active >= 0 ? `${id}-option-${active}` : undefined}
        title={value === '' ? undefined : value}
        placeholder={`Search ${nameOf(target)}`}
        value={typed ?? title}
        onFocus={(event) => event.currentTarget.select()}
        onInput={(event) => type(event.currentTarget.value)}
        onClick={() => search.find(typed ?? '')}
        onBlur={leave}
        onKeyDown={(event) => {
          if (search.move(event.key)) event.preventDefault();
          else if (event.key === 'Enter' && isOpen) {
            event.preventDefault();
            enter();
          } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            search.find(typed ?? '');
          } else if (event.key === 'Escape' && isOpen) {
            event.preventDefault();
            choose(undefined);
          }
        }}
      />
      <Options id={id} search={search} name={nameOf(target)} onChoose={choose} />
    </div>
  );
}

type OptionsProps = {
  readonly id: string;
  readonly search: Search;
  readonly name: string;
  readonly onChoose: (found: Found) => void;
};

function Options({ id, search: { found, active, isOpen }, name, onChoose }: OptionsProps): JSX.Element {
  return (
    <>
      <div id={`${id}-list`} role="listbox" aria-label={name} class="options" hidden={!isOpen}>
        {found.map((each, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input (aria-activedescendant).
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys.
          <div
            key={each.id}
            id={`${id}-option-${index}`}
            role="option"
            aria-selected={index === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onChoose(each)}
          >
            {each.title}
            {isTwice(found, each) ? <code>{` ${each.id}`}</code> : null}
          </div>
        ))}
      </div>
      <span role="status" class="hidden">
        {isOpen ? `${found.length} found` : ''}
      </span>
    </>
  );
}

/** Titles that are equal need their ids. */
function isTwice(found: readonly Found[], { id, title }: Found): boolean {
  return title !== id && found.some((each) => each.id !== id && each.title === title);
}

type Search = ReturnType<typeof useSearch>;

/** The documents that match the text, and the active one. The reply to an earlier text is dropped. */
function useSearch(target: Listed) {
  const [found, setFound] = useState<readonly Found[]>([]);
  const [active, setActive] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const round = useRef(0);
  const find = (text: string, use?: (found: readonly Found[]) => void) => {
    round.current += 1;
    const own = round.current;
    setTimeout(async () => {
      if (own !== round.current) return;
      const next = await findDocuments(target, text.trim());
      if (own !== round.current) return;
      setFound(next);
      setActive(next.length > 0 && text !== '' ? 0 : -1);
      setOpen(true);
      use?.(next);
    }, pauseMs);
  };
  const close = () => {
    round.current += 1;
    setOpen(false);
  };
  /** @returns true if the key moved the active option */
  const move = (key: string): boolean => {
    if (!isOpen || found.length === 0) return false;
    const next = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + 8, PageUp: active - 8 }[
      key
    ];
    if (next === undefined) return false;
    const last = found.length - 1;
    setActive(
      key.startsWith('Arrow') ? (next + found.length) % found.length : Math.min(Math.max(next, 0), last),
    );
    return true;
  };
  return { found, active, isOpen, find, close, move };
}

/** Length of the ids that the server makes. A search of many lists takes no shorter text for an id. */
const idCharacters = 26;

/** @param most of one list */
export async function findDocuments(
  target: Listed,
  text: string,
  most: number = foundMax,
): Promise<readonly Found[]> {
  const queries = queriesOf(target, text);
  const pages = await Promise.all(queries.map((query) => readItems(`${target.path}?limit=${most}${query}`)));
  const documents = pages.flat();
  const mayBeId = most === foundMax ? text !== '' : text.length >= idCharacters;
  if (documents.length === 0 && mayBeId && !text.includes(' ')) {
    const reply = await send('GET', memberPath(target, text)).catch(() => undefined);
    if (reply?.status === 200 && isObject(reply.json)) documents.push(reply.json);
  }
  keepTitles(target.path, documents);
  const found = new Map(documents.map((each) => [String(each.id), titleOf(target, each)]));
  return [...found].slice(0, most).map(([id, title]) => ({ id, title }));
}

/** An index of words finds prefixes by `word*`, and a list without an index parts of words by the word itself (§4.20). */
function queriesOf(target: Listed, text: string): readonly string[] {
  if (text === '') return [''];
  const encoded = encodeURIComponent(text);
  if (target.searchable) return [`&q=${encoded}`, `&q=${encoded}*`];
  const name = membersOfTitle(target).find(
    (each) => target.filters.includes(each) && resolve(target.schema.properties?.[each]).type === 'string',
  );
  return name === undefined ? [''] : [`&${name}[gte]=${encoded}&${name}[lt]=${encoded}%EF%BF%BF`];
}

async function readItems(path: string): Promise<Record<string, unknown>[]> {
  const reply = await send('GET', path).catch(() => undefined);
  return isObject(reply?.json) && Array.isArray(reply.json.items) ? reply.json.items.filter(isObject) : [];
}
