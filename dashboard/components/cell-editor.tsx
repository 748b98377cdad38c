/**
 * The change of one member in its cell of a list. Enter saves, Tab saves and goes on, Escape leaves the value as it was; a refusal stays at
 * the cell with what was typed.
 */
import type { JSX } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isFileReference, type Listed, resolve } from '../description.ts';
import { labelOf } from '../presentation.ts';
import type { Problem } from '../send.ts';
import { Control } from './form-field.tsx';
import { faultsAt, fromText, type Kind, kindOf, toText } from './form-values.ts';

const kindsInCells: ReadonlySet<Kind> = new Set([
  ...(['text', 'number', 'integer', 'boolean', 'choice', 'reference', 'time', 'date'] as const),
]);

/** Why no cell of the member is edited in the list; undefined: some are. */
export function reasonNotEdited(list: Listed, name: string): string | undefined {
  const member = list.member?.patch?.properties?.[name];
  if (member === undefined)
    return list.create?.properties?.[name] === undefined
      ? 'The server sets this.'
      : 'This is fixed when the document is created.';
  if (isFileReference(member) || !kindsInCells.has(kindOf(resolve(member))))
    return 'Edit this on the page of the document.';
  return undefined;
}

type CellEditorProps = {
  readonly list: Listed;
  readonly name: string;
  readonly value: unknown;
  /** @returns the problem, if the change was refused */
  readonly onSave: (value: unknown) => Promise<Problem | undefined>;
  /** The editor ends. @param step to the cell that gets the focus */
  readonly onEnd: (step: -1 | 0 | 1) => void;
};

export function CellEditor({ list, name, value, onSave, onEnd }: CellEditorProps): JSX.Element {
  const id = useId();
  const box = useRef<HTMLFieldSetElement>(null);
  const schema = resolve(list.member?.patch?.properties?.[name]);
  const before = toText(value, schema);
  const [text, setText] = useState(before);
  const [faults, setFaults] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
    const control = box.current?.querySelector<HTMLElement>('input, select');
    control?.focus();
    if (control instanceof HTMLInputElement) control.select();
  }, []);
  const save = async (step: -1 | 0 | 1) => {
    if (isBusy) return;
    if (text === before) return onEnd(step);
    const read = fromText(text, schema);
    if ('failed' in read) return setFaults([read.failed]);
    setBusy(true);
    const problem = await onSave(read.value);
    setBusy(false);
    if (problem === undefined) return onEnd(step);
    const own = faultsAt(problem, name, text);
    setFaults(own.length > 0 ? own : [problem.message, ...problem.faults.map(faultText)]);
  };
  const press = (event: KeyboardEvent) => {
    // Keys that the choice of a reference has used.
    if (event.defaultPrevented) return;
    const isButton = event.target instanceof HTMLButtonElement;
    if (event.key === 'Escape') onEnd(0);
    else if (event.key === 'Enter' && !isButton) void save(0);
    else if (event.key === 'Tab' && !isButton) void save(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  const common = {
    ...{ id, value: text, 'aria-label': labelOf(list.schema, name), 'aria-invalid': faults.length > 0 },
    'aria-describedby': faults.length > 0 ? `${id}-fault` : undefined,
    onInput: (event: Event) => setText((event.currentTarget as HTMLInputElement).value),
  };
  return (
    <fieldset class="cell-editor" ref={box} onKeyDown={press} aria-busy={isBusy}>
      <legend class="hidden">{`Edit ${labelOf(list.schema, name)}`}</legend>
      <Control schema={schema} common={common} onText={setText} />
      <button type="button" class="primary small" tabIndex={-1} disabled={isBusy} onClick={() => save(0)}>
        Save
      </button>
      <button type="button" class="small" tabIndex={-1} onClick={() => onEnd(0)}>
        Cancel
      </button>
      {faults.length === 0 ? null : (
        <p class="fault" id={`${id}-fault`} role="alert">
          {faults.join('; ')}
        </p>
      )}
    </fieldset>
  );
}

function faultText({ pointer, message }: Problem['faults'][number]): string {
  return `${pointer.slice(1)} ${message}`;
}
