/**
 * A form for an object schema: one field for each member, text as JSON for members that no field fits. The server alone judges values; its
 * faults are shown at the members that their pointers name.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { resolve, type Schema } from '../description.ts';
import type { Problem } from '../send.ts';
import { FormField } from './form-field.tsx';
import { faultsAt, fromText, toText } from './form-values.ts';
import { ProblemNote } from './problem.tsx';

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
  const writable = Object.entries(schema.properties ?? {})
    .map(([name, each]) => [name, resolve(each)] as const)
    .filter(([, each]) => each.readOnly !== true);
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
        <FormField
          key={name}
          name={name}
          schema={each}
          isRequired={schema.required?.includes(name) === true}
          text={texts[name] ?? ''}
          faults={[
            ...faultsAt(problem, name, texts[name] ?? ''),
            ...(unreadable[name] === undefined ? [] : [unreadable[name]]),
          ]}
          onText={(text) => setTexts((before) => ({ ...before, [name]: text }))}
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
