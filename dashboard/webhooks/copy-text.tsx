/** A text to copy. In a frame the browser may refuse the clipboard: the text is then selected, to be copied by hand. */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';

export function CopyText({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const [state, setState] = useState('Copy');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState('Copied');
    } catch {
      field.current?.select();
      setState('Press Ctrl+C');
    }
  };
  return (
    <span class="copy">
      <input
        ref={field}
        class="code"
        readOnly
        value={text}
        aria-label={label}
        size={Math.min(text.length, 60)}
      />
      <button type="button" onClick={copy}>
        {state}
      </button>
    </span>
  );
}
