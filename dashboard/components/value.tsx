/** Values of documents as people read them: times, links, lists, objects. */
import type { JSX } from 'preact';
import type { Schema } from '../description.ts';
import { isObject } from '../send.ts';

const shownCharactersMax = 120;
/** A text that may be longer gets several lines in a form; addresses of at most 2,048 characters get one. */
const longTextCharacters = 2048;
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** One value in a cell of a table. */
export function Value({ value }: { readonly value: unknown }): JSX.Element {
  if (value === undefined || value === null) return <span class="absent">–</span>;
  if (typeof value === 'boolean') return <span>{value ? 'yes' : 'no'}</span>;
  if (typeof value === 'number') return <span class="number">{value}</span>;
  if (typeof value === 'string' && isoTime.test(value)) return <Time value={value} />;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= shownCharactersMax) return <span>{text}</span>;
  return <span title={text.slice(0, 2000)}>{`${text.slice(0, shownCharactersMax)}…`}</span>;
}

export function Time({ value }: { readonly value: string }): JSX.Element {
  return (
    <time dateTime={value} title={value}>
      {`${value.slice(0, 10)} ${value.slice(11, 19)}`}
    </time>
  );
}

/** A JSON value as indented text, with a button that copies it. */
export function Json({ value, label }: { readonly value: unknown; readonly label: string }): JSX.Element {
  const text = typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
  return (
    <figure class="json" aria-label={label}>
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} />
    </figure>
  );
}

export function CopyButton({
  text,
  label = 'Copy',
}: {
  readonly text: string;
  readonly label?: string;
}): JSX.Element {
  const copy = async (event: Event) => {
    const button = event.currentTarget as HTMLButtonElement;
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = label;
    }, 1500);
  };
  return (
    <button type="button" class="small" onClick={copy}>
      {label}
    </button>
  );
}

/** A one-line name of a document: the first short text that is not its id. */
export function titleOf(document: unknown): string {
  if (!isObject(document)) return '';
  const preferred = ['name', 'title', 'email', 'type', 'url', 'subject'];
  const found = preferred
    .map((name) => document[name])
    .find((value) => typeof value === 'string' && value !== '');
  return String(found ?? document.id ?? '');
}

/** The texts that a schema lists, as an enum or as a union of constants; empty if it is no such list. */
export function choicesOf(schema: Schema): readonly string[] {
  const values = schema.enum ?? (schema.anyOf ?? schema.oneOf)?.map((each) => each.const) ?? [];
  return values.every((each) => typeof each === 'string') ? values : [];
}

/** The kinds of a schema that a form has a field for. */
export function kindOf(
  schema: Schema,
): 'text' | 'long' | 'number' | 'integer' | 'boolean' | 'choice' | 'texts' | 'json' {
  if (choicesOf(schema).length > 0) return 'choice';
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  const [type, ...further] = types.filter((each) => each !== 'null');
  if (type === undefined || further.length > 0) return 'json';
  if (type === 'string') return (schema.maxLength ?? 0) > longTextCharacters ? 'long' : 'text';
  if (type === 'number' || type === 'integer' || type === 'boolean') return type;
  if (type === 'array' && schema.items?.type === 'string' && schema.items.enum === undefined) return 'texts';
  return 'json';
}
