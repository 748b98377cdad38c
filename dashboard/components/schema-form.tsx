/**
 * A form for an object schema: one field for each member, text as JSON for members that no field fits. The server alone judges values; its
 * faults are shown at the members that their pointers name.
 */
import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { resolve, type Schema } from '../description.ts';
import { isObject, type Problem } from '../send.ts';
import { ProblemNote } from './problem.tsx';
import { choicesOf, kindOf } from './value.tsx';

export type FormProps = {
  readonly schema: Schema;
  /** The document whose members the fields show first. */
  readonly value?: Readonly<Record<string, unknown>> | undefined;
  readonly submit: string;
  readonly problem: Problem | undefined;
  /** Gets the members that differ from `value`; a member that was emptied is null. */
  readonly onSubmit: (changed: Record<string, unknown>) => Promise<void> | void;
  readonly onCancel?: () => void;
};

export function SchemaForm({
  schema,
  value = {},
  submit,
  problem,
  onSubmit,
  onCancel,
}: FormProps): JSX.Element {
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, each]) => [name, resolve(each)] as const,
  );
  const writable = members.filter(([, each]) => each.readOnly !== true);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(writable.map(([name, each]) => [name, toText(value[name], each)])),
  );
  const [isBusy, setBusy] = useState(false);
  const [unreadable, setUnreadable] = useState<Readonly<Record<string, string>>>({});

  const send = async (event: Event) => {
    event.preventDefault();
    const changed: Record<string, unknown> = {};
    const failed: Record<string, string> = {};
    for (const [name, each] of writable) {
      const text = texts[name] ?? '';
      if (text === toText(value[name], each)) continue;
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

  return (
    <form class="schema-form" onSubmit={send} noValidate>
      <ProblemNote problem={problem} />
      {writable.map(([name, each]) => (
        <Field
          key={name}
          name={name}
          schema={each}
          isRequired={schema.required?.includes(name) === true}
          text={texts[name] ?? ''}
          faults={[...faultsAt(problem, name), ...(unreadable[name] === undefined ? [] : [unreadable[name]])]}
          onText={(text) => setTexts({ ...texts, [name]: text })}
        />
      ))}
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
    </form>
  );
}

type FieldProps = {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly text: string;
  readonly faults: readonly string[];
  readonly onText: (text: string) => void;
};

function Field({ name, schema, isRequired, text, faults, onText }: FieldProps): JSX.Element {
  const id = useId();
  const described = [
    schema.description === undefined ? '' : `${id}-hint`,
    faults.length > 0 ? `${id}-fault` : '',
  ]
    .filter((each) => each !== '')
    .join(' ');
  const common = {
    id,
    value: text,
    'aria-describedby': described === '' ? undefined : described,
    'aria-invalid': faults.length > 0,
    'aria-required': isRequired,
    onInput: (event: Event) => onText((event.currentTarget as HTMLInputElement).value),
  };
  return (
    <div class="field">
      <label for={id}>
        {name}
        {isRequired ? <span aria-hidden="true"> *</span> : null}
      </label>
      <Control schema={schema} common={common} />
      {schema.description === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {schema.description}
        </p>
      )}
      {faults.length === 0 ? null : (
        <p class="fault" id={`${id}-fault`}>
          {faults.join('; ')}
        </p>
      )}
    </div>
  );
}

type Common = { readonly value: string; readonly onInput: (event: Event) => void } & Record<string, unknown>;

function Control({ schema, common }: { readonly schema: Schema; readonly common: Common }): JSX.Element {
  const kind = kindOf(schema);
  if (kind === 'choice' || kind === 'boolean') {
    const choices = kind === 'boolean' ? ['true', 'false'] : choicesOf(schema);
    return (
      <select {...common} onChange={common.onInput}>
        <option value="">–</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'long' || kind === 'texts' || kind === 'json')
    return <textarea {...common} rows={kind === 'long' ? 6 : 4} spellcheck={kind === 'long'} />;
  const inputMode = kind === 'number' || kind === 'integer' ? 'decimal' : 'text';
  return <input type="text" inputMode={inputMode} {...common} />;
}

/** The value as the text of its field: a line for each text of a list, JSON for objects. */
function toText(value: unknown, schema: Schema): string {
  if (value === undefined || value === null) return '';
  const kind = kindOf(schema);
  if (kind === 'texts' && Array.isArray(value)) return value.join('\n');
  return kind === 'json' || typeof value === 'object' ? JSON.stringify(value, undefined, 2) : String(value);
}

function fromText(text: string, schema: Schema): { readonly value: unknown } | { readonly failed: string } {
  if (text === '') return { value: null };
  switch (kindOf(schema)) {
    case 'number':
    case 'integer': {
      const value = Number(text);
      return Number.isNaN(value) ? { failed: `must be a number, not ${text}` } : { value };
    }
    case 'boolean':
      return { value: text === 'true' };
    case 'texts':
      return { value: text.split('\n').filter((line) => line !== '') };
    case 'json':
      try {
        return { value: JSON.parse(text) };
      } catch (error) {
        return { failed: `must be JSON: ${(error as Error).message}` };
      }
    default:
      return { value: text };
  }
}

function faultsAt(problem: Problem | undefined, name: string): readonly string[] {
  return (problem?.faults ?? [])
    .filter(({ pointer }) => pointer === `/${name}` || pointer.startsWith(`/${name}/`))
    .map(({ message }) => message);
}

/** A new document for POST: members without a value are left out, so that the server sets their defaults. */
export function withoutNulls(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** Members of two versions that differ, by name. */
export function differencesOf(one: unknown, other: unknown): readonly string[] {
  if (!isObject(one) || !isObject(other)) return [];
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}
