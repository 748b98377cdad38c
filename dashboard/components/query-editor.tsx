/**
 * The text of a query with completion from the schema: while a word is typed, the members of the list and the words of the language that
 * begin like it are offered. Arrows choose, Tab or Enter completes, Escape closes; Ctrl Enter runs the query.
 */
import type { JSX } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';

const offeredMax = 8;

type QueryEditorProps = {
  readonly text: string;
  /** Members and words of the language. */
  readonly words: readonly string[];
  readonly onText: (text: string) => void;
};

type Offer = { readonly words: readonly string[]; readonly active: number; readonly from: number };

const none: Offer = { words: [], active: 0, from: 0 };

export function QueryEditor({ text, words, onText }: QueryEditorProps): JSX.Element {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [offer, setOffer] = useState<Offer>(none);
  const isOpen = offer.words.length > 0;
  const complete = (word: string | undefined) => {
    const element = area.current;
    setOffer(none);
    if (element === null || word === undefined) return;
    // The text and its caret change at once: the next key may come before anything is rendered.
    element.setRangeText(word, offer.from, element.selectionStart, 'end');
    element.focus();
    onText(element.value);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) area.current?.form?.requestSubmit();
    else if (!isOpen) return;
    else if (step !== undefined)
      setOffer({ ...offer, active: (offer.active + step + offer.words.length) % offer.words.length });
    else if (event.key === 'Enter' || event.key === 'Tab') complete(offer.words[offer.active]);
    else if (event.key === 'Escape') setOffer(none);
    else return;
    event.preventDefault();
  };
  return (
    <div class="editor">
      <label for={id}>Query</label>
      <textarea
        id={id}
        ref={area}
        class="code"
        rows={9}
        spellcheck={false}
        autocomplete="off"
        aria-autocomplete="list"
        aria-controls={`${id}-words`}
        aria-activedescendant={isOpen ? `${id}-word-${offer.active}` : undefined}
        value={text}
        onInput={(event) => {
          onText(event.currentTarget.value);
          setOffer(offerFor(event.currentTarget, words));
        }}
        onKeyDown={press}
        onBlur={() => setOffer(none)}
      />
      <div id={`${id}-words`} role="listbox" aria-label="Completions" class="options" hidden={!isOpen}>
        {offer.words.map((word, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text (aria-activedescendant).
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text has the keys.
          <div
            key={word}
            id={`${id}-word-${index}`}
            role="option"
            aria-selected={index === offer.active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => complete(word)}
          >
            {word}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Words that begin like the one before the caret, without those that equal it. */
function offerFor({ value, selectionStart }: HTMLTextAreaElement, words: readonly string[]): Offer {
  const [typed = ''] = /[A-Za-z_]\w*$/.exec(value.slice(0, selectionStart)) ?? [];
  if (typed === '') return none;
  const start = typed.toLowerCase();
  const found = words.filter((word) => word !== typed && word.toLowerCase().startsWith(start));
  return { words: found.slice(0, offeredMax), active: 0, from: selectionStart - typed.length };
}
