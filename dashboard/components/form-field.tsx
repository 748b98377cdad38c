/** One field of a form with its label, hint and faults. The schema chooses the control. */
import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { listOf, pathOf, type Schema } from '../description.ts';
import { inWords, readerZone } from '../presentation.ts';
import { choicesOf, kindOf } from './form-values.ts';
import { type Common, ReferenceField } from './reference-field.tsx';

export type FieldProps = {
  readonly label: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly text: string;
  readonly faults: readonly string[];
  readonly onText: (text: string) => void;
};

export function FormField({ label, schema, isRequired, text, faults, onText }: FieldProps): JSX.Element {
  const id = useId();
  const hint = hintOf(schema);
  const described = [hint === undefined ? '' : `${id}-hint`, faults.length > 0 ? `${id}-fault` : '']
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
  const isGroup = kindOf(schema) === 'choices';
  const title = (
    <>
      {label}
      {isRequired ? <span aria-hidden="true"> *</span> : null}
    </>
  );
  return (
    <div class={wideKinds.has(kindOf(schema)) ? 'field wide' : 'field'}>
      {isGroup ? (
        <span class="label" id={`${id}-label`}>
          {title}
        </span>
      ) : (
        <label for={id}>{title}</label>
      )}
      <Control schema={schema} common={common} onText={onText} />
      {hint === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {faults.length === 0 ? null : (
        <p class="fault" id={`${id}-fault`}>
          {faults.map((fault) => (hint === undefined ? fault : inWordsOf(fault))).join('; ')}
        </p>
      )}
    </div>
  );
}

/** An expression says less than the sentence below the field. */
function inWordsOf(fault: string): string {
  return fault.startsWith('must match the pattern') ? 'must have the form that is described here' : fault;
}

/** Kinds whose fields take the whole width of a group. */
const wideKinds: ReadonlySet<string> = new Set(['long', 'json', 'texts', 'choices']);

function hintOf(schema: Schema): string | undefined {
  const kind = kindOf(schema);
  const own = kind === 'time' ? `Time in ${readerZone}.` : kind === 'texts' ? 'One a line.' : undefined;
  return [schema['x-help'] ?? schema.description, own].filter(Boolean).join(' ') || undefined;
}

type ControlProps = {
  readonly schema: Schema;
  readonly common: Common;
  readonly onText: (text: string) => void;
};

export function Control({ schema, common, onText }: ControlProps): JSX.Element {
  const kind = kindOf(schema);
  const target = listOf(pathOf(schema['x-references'] ?? ''));
  if (kind === 'reference' && target !== undefined)
    return <ReferenceField target={target} common={common} onText={onText} />;
  if (kind === 'choice' || kind === 'boolean') {
    const choices = kind === 'boolean' ? ['true', 'false'] : choicesOf(schema);
    return (
      <select {...common} onChange={common.onInput}>
        {common['aria-required'] === true && common.value !== '' ? null : <option value="">–</option>}
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {inWords(choice === 'true' ? 'yes' : choice === 'false' ? 'no' : choice)}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'choices') return <Choices schema={schema} common={common} onText={onText} />;
  if (kind === 'long' || kind === 'texts' || kind === 'json') {
    const rows = kind === 'long' ? 6 : Math.min(12, Math.max(3, common.value.split('\n').length));
    return (
      <textarea
        {...common}
        class={kind === 'json' ? 'code' : undefined}
        rows={rows}
        spellcheck={kind === 'long'}
      />
    );
  }
  if (kind === 'date') return <input type="date" {...common} />;
  if (kind === 'time' && /^$|Z$/.test(common.value)) return <TimeField common={common} onText={onText} />;
  const inputMode = kind === 'number' || kind === 'integer' ? 'decimal' : 'text';
  return <input type="text" inputMode={inputMode} {...common} />;
}

function Choices({ schema, common, onText }: ControlProps): JSX.Element {
  const chosen = common.value.split('\n').filter((each) => each !== '');
  const toggle = (name: string) => {
    const next = chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name];
    onText(next.join('\n'));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: the label of a fieldset cannot share the layout of the other fields.
    <div
      class="choices"
      role="group"
      aria-labelledby={`${common.id}-label`}
      aria-describedby={common['aria-describedby'] as string | undefined}
    >
      {choicesOf(schema.items ?? {}).map((name) => (
        <label key={name}>
          <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />{' '}
          {inWords(name)}
        </label>
      ))}
    </div>
  );
}

/** Digits of the second that the control of the browser takes; it shows a time with more of them as empty. */
const controlDigitsMax = 3;

/**
 * A time in the reader's zone: the control has none, so its value is the local time of the instant. A time with more digits of the second is a
 * text in UTC, in which none is lost.
 */
function TimeField({ common, onText }: Omit<ControlProps, 'schema'>): JSX.Element {
  const [isText] = useState((/\.(\d+)/.exec(common.value)?.[1] ?? '').length > controlDigitsMax);
  if (isText) return <input {...common} type="text" spellcheck={false} />;
  const shown = localTime(common.value);
  return (
    <input
      {...common}
      type="datetime-local"
      step={shown.includes('.') ? 0.001 : shown.length > 16 ? 1 : 60}
      value={shown}
      onInput={(event) => {
        const { value } = event.currentTarget;
        onText(value === '' ? '' : new Date(value).toISOString().replace('.000Z', 'Z'));
      }}
    />
  );
}

/** An instant as `datetime-local` has it, without seconds where they are zero. */
function localTime(value: string): string {
  const ms = Date.parse(value);
  if (Number.isNaN(ms)) return '';
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
  return local.replace(/(?::00)?\.000$/, '');
}
