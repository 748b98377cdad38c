/** A panel at the side of the page, as a modal dialog: the page behind it keeps its place, and Escape leaves it unless something was typed. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { HiddenNotice } from './notice.tsx';

type SidePanelProps = {
  readonly title: string;
  readonly children: ComponentChildren;
  /** The input has been sent: nothing would be lost. */
  readonly isDone?: boolean;
  readonly onClose: () => void;
};

export function SidePanel({ title, children, isDone = false, onClose }: SidePanelProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isTyped, setTyped] = useState(false);
  const [isAsked, setAsked] = useState(false);
  useEffect(() => {
    dialog.current?.showModal();
    return () => dialog.current?.close();
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    if (isTyped && !isDone) setAsked(true);
    else onClose();
  };
  return (
    <dialog
      ref={dialog}
      class="side-panel"
      aria-labelledby="panel-title"
      onCancel={cancel}
      onInput={() => setTyped(true)}
    >
      <h2 id="panel-title">{title}</h2>
      <HiddenNotice />
      {isAsked ? (
        <p class="problem" role="alert">
          Leave without saving?{' '}
          <button type="button" class="danger" onClick={onClose}>
            Leave
          </button>{' '}
          <button type="button" onClick={() => setAsked(false)}>
            Stay
          </button>
        </p>
      ) : null}
      {children}
    </dialog>
  );
}
