/** Values of documents as people read them: times, links, lists, objects. */
import type { JSX } from 'preact';
import { isObject } from '../send.ts';

const shownCharactersMax = 120;
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  // A list of plain values reads better without the signs of JSON.
  const isPlain = Array.isArray(value) && value.every((each) => typeof each !== 'object' || each === null);
  return isPlain ? value.join(', ') : JSON.stringify(value);
}

/** One value in a cell of a table. */
export function Value({ value }: { readonly value: unknown }): JSX.Element {
  if (value === undefined || value === null) return <span class="absent">–</span>;
  if (typeof value === 'boolean') return <span>{value ? 'yes' : 'no'}</span>;
  if (typeof value === 'number') return <span class="number">{value}</span>;
  if (typeof value === 'string' && isoTime.test(value)) return <Time value={value} />;
  const text = textOf(value);
  if (text.length <= shownCharactersMax) return <span>{text}</span>;
  return <span title={text.slice(0, 2000)}>{`${text.slice(0, shownCharactersMax)}…`}</span>;
}

const goodWords: ReadonlySet<string> = new Set([
  ...['enabled', 'delivered', 'processed', 'sent', 'succeeded', 'ready', 'active'],
]);
const badWords: ReadonlySet<string> = new Set(['failed', 'disabled', 'not_delivered', 'urgent', 'refused']);

/** A state, with a colour for those that are plainly good or bad. */
export function Badge({ text }: { readonly text: string }): JSX.Element {
  const tone = goodWords.has(text) ? ' good' : badWords.has(text) ? ' bad' : '';
  return <span class={`badge${tone}`}>{text.replaceAll('_', ' ')}</span>;
}

const bytesPerMebibyte = 1024 * 1024;

export function sizeText(bytes: number): string {
  return `${(bytes / bytesPerMebibyte).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`;
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

/** Members that name a document to people, the best first. */
export const titleMembers: readonly string[] = ['name', 'title', 'email', 'type', 'subject', 'url'];

/** A one-line name of a document: the first short text that is not its id. */
export function titleOf(document: unknown): string {
  if (!isObject(document)) return '';
  const found = titleMembers
    .map((name) => document[name])
    .find((value) => typeof value === 'string' && value !== '');
  return String(found ?? document.id ?? '');
}
