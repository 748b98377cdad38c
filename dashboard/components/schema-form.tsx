/**
 * A form for an object schema: one field for each member, text as JSON for members that no field fits. The server alone judges values; its
 * faults are shown at the members that their pointers name, and the first of them gets the focus, or else the message above the buttons.
 */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isFileReference, type Listed, resolve, type Schema } from '../description.ts';
import { groupsOf, labelOf } from '../presentation.ts';
import type { Problem } from '../send.ts';
import { FormField } from './form-field.tsx';
import { choicesOf, faultsAt, fromText, kindOf, toText } from './form-values.ts';
import { MemberValue } from './member-value.tsx';
import { ProblemNote } from './problem.tsx';

export type FormProps = {
  readonly schema: Schema;
  /** The list of the document, whose groups the form has. */
  readonly list?: Listed;
  /** The document whose members the fields show first; undefined for a new one, whose fields show defaults. */
  readonly value?: Readonly<Record<string, unknown>> | undefined;
  /** Members that this caller may not write: they are shown as text where the document has them. */
  readonly closed?: ReadonlySet<string>;
  readonly submit: string;
  readonly problem: Problem | undefined;
  /** Gets the members that differ from `value`; a member that was emptied is null. */
  readonly onSubmit: (changed: Record<string, unknown>) => Promise<void> | void;
  readonly onCancel?: () => void;
  /** Fields of the caller's own, after those of the schema. */
  readonly children?: ComponentChildren;
};

const none: ReadonlySet<string> = new Set();

export function SchemaForm(props: FormProps): JSX.Element {
  const { schema, list, value, closed = none, submit, problem, onCancel, children } = props;
  const form = useRef<HTMLFormElement>(null);
  const { texts, setText, unreadable, isBusy, send } = useForm(props);
  useEffect(() => {
    const fault = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    const focused = fault ?? form.current?.querySelector<HTMLElement>('footer .problem');
    focused?.focus();
    focused?.scrollIntoView({ block: 'center' });
  }, [problem, unreadable]);
  const members = Object.keys(texts);
  const shown = list === undefined ? [] : [...closed].filter((name) => value === undefined || name in value);
  const isRequired = (name: string) => mustHave(schema, name) || mustHave(list?.create, name);
  return (
    <form class="schema-form" ref={form} onSubmit={send} noValidate>
      {groupsOf(list?.schema ?? schema, [...members, ...shown]).map((group) => (
        <fieldset key={group.heading} class="fields">
          {group.heading === '' ? null : <legend>{group.heading}</legend>}
          {group.members.map((name) =>
            closed.has(name) && list !== undefined ? (
              <ClosedField key={name} {...{ list, name, value }} shown={value ?? defaultsOf(schema)} />
            ) : (
              <FormField
                key={name}
                label={labelOf(schema, name)}
                schema={resolve(schema.properties?.[name])}
                isRequired={isRequired(name)}
                text={texts[name] ?? ''}
                faults={[
                  ...faultsAt(problem, name, texts[name] ?? ''),
                  ...(unreadable[name] === undefined ? [] : [unreadable[name]]),
                ]}
                onText={(text) => setText(name, text)}
              />
            ),
          )}
        </fieldset>
      ))}
      {children}
      <footer>
        <ProblemNote problem={problem} schema={schema} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
            {submit}
          </button>
          {onCancel === undefined ? null : (
            <button type="button" onClick={onCancel}>
              Cancel
            </button>
          )}
        </div>
      </footer>
    </form>
  );
}

type ClosedFieldProps = {
  readonly list: Listed;
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** The document, or the one that the server would make. */
  readonly shown: Readonly<Record<string, unknown>>;
};

function ClosedField({ list, name, value, shown }: ClosedFieldProps): JSX.Element {
  return (
    <div class="field closed">
      <span class="label">{labelOf(list.schema, name)}</span>
      <p>
        <MemberValue {...{ list, name }} value={shown[name]} document={shown} isText />
      </p>
      <p class="hint">{value === undefined ? 'You cannot set this.' : 'You cannot change this.'}</p>
    </div>
  );
}

/** Documents need the member: of all callers, or of those that may write it (`x-required`). A patch says neither. */
function mustHave(schema: Schema | undefined, name: string): boolean {
  return (
    schema?.required?.includes(name) === true || resolve(schema?.properties?.[name])['x-required'] === true
  );
}

/** Octets have a field of the caller's own. */
function isOctets(schema: Schema): boolean {
  const kind = kindOf(schema);
  return kind === 'file' || kind === 'files';
}

/** The texts of the fields, and what is sent of them. */
function useForm({ schema, value, closed = none, onSubmit }: FormProps) {
  const writable = Object.entries(schema.properties ?? {})
    // Files are added on the page of the document; one that a new document must have is named as JSON.
    .filter(([name, each]) => !isFileReference(each) || schema.required?.includes(name) === true)
    .map(([name, each]) => [name, resolve(each)] as const)
    .filter(([name, each]) => each.readOnly !== true && !closed.has(name) && !isOctets(each));
  const defaults = value === undefined ? defaultsOf(schema) : undefined;
  const firstText = (name: string, each: Schema) => toText((value ?? defaults)?.[name], each);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(writable.map(([name, each]) => [name, firstText(name, each)])),
  );
  const [isBusy, setBusy] = useState(false);
  const [unreadable, setUnreadable] = useState<Readonly<Record<string, string>>>({});
  const send = async (event: Event) => {
    event.preventDefault();
    const changed: Record<string, unknown> = {};
    const failed: Record<string, string> = {};
    for (const [name, each] of writable) {
      const text = texts[name] ?? '';
      const isChosen = value === undefined && mustHave(schema, name) && text !== '';
      if (text === firstText(name, each) && !isChosen) continue;
      const read = fromText(text, each);
      if ('failed' in read) failed[name] = read.failed;
      else changed[name] = read.value;
    }
    setUnreadable(failed);
    if (Object.keys(failed).length > 0) return;
    setBusy(true);
    try {
      await onSubmit(changed);
    } finally {
      setBusy(false);
    }
  };
  const setText = (name: string, text: string) => setTexts((before) => ({ ...before, [name]: text }));
  return { texts, setText, unreadable, isBusy, send };
}

/** The values of a new document: defaults of the schema, and the first choice of a member that must have one. */
function defaultsOf(schema: Schema): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, declared]) => {
      const each = resolve(declared);
      const found = each.default ?? each['x-default'];
      const [first] = kindOf(each) === 'boolean' ? [false] : choicesOf(each);
      return [name, found ?? (mustHave(schema, name) ? first : undefined)];
    }),
  );
}
