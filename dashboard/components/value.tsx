/** Values of documents as people read them: times, links, lists, objects. */
import type { JSX } from 'preact';
import type { ApiFile } from '../../src/client/index.ts';
import type { Display } from '../description.ts';
import { isFile } from '../files.ts';
import { inWords, timeText, toneOf, zonedText } from '../presentation.ts';
import { FilePreview } from './file-preview.tsx';

const shownCharactersMax = 120;
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isFile(value)) return value.name;
  if (Array.isArray(value) && value.length > 0 && value.every(isFile))
    return value.map(({ name }) => name).join(', ');
  // A list of plain values reads better without the signs of JSON.
  const isPlain = Array.isArray(value) && value.every((each) => typeof each !== 'object' || each === null);
  return isPlain ? value.join(', ') : JSON.stringify(value);
}

/** One value in a cell of a table. */
export function Value({ value }: { readonly value: unknown }): JSX.Element {
  if (value === undefined || value === null) return <span class="absent">–</span>;
  if (typeof value === 'boolean') return <span>{value ? 'yes' : 'no'}</span>;
  if (typeof value === 'number') return <span class="number">{value.toLocaleString()}</span>;
  if (typeof value === 'string' && isoTime.test(value)) return <Time value={value} />;
  const files = [value].flat().filter(isFile);
  if (files.some(({ previews }) => previews !== undefined)) return <Thumbnails files={files} />;
  const text = textOf(value);
  if (text.length <= shownCharactersMax) return <span>{text}</span>;
  return <span title={text.slice(0, 2000)}>{`${text.slice(0, shownCharactersMax)}…`}</span>;
}

/** A cell holds a few; the rest is a number. */
const thumbnailsMax = 4;

function Thumbnails({ files }: { readonly files: readonly ApiFile[] }): JSX.Element {
  const rest = files.length - thumbnailsMax;
  return (
    <span class="thumbnails">
      {files.slice(0, thumbnailsMax).map((file) => (
        <FilePreview key={file.id} file={file} alt={files.length === 1 ? '' : file.name} />
      ))}
      {files.length === 1 ? <span>{files[0]?.name}</span> : null}
      {rest > 0 ? <span class="quiet">{`+${rest}`}</span> : null}
    </span>
  );
}

type BadgeProps = { readonly text: string; readonly display?: Display };

/** A state in its colour. */
export function Badge({ text, display }: BadgeProps): JSX.Element {
  return <span class={`badge ${toneOf(text, display)}`}>{inWords(text)}</span>;
}

const bytesPerMebibyte = 1024 * 1024;

export function sizeText(bytes: number): string {
  return `${(bytes / bytesPerMebibyte).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`;
}

type TimeProps = { readonly value: string; readonly isShort?: boolean };

/** A time in the reader's zone; the title has its offset and the value itself. */
export function Time({ value, isShort = false }: TimeProps): JSX.Element {
  return (
    <time dateTime={value} title={zonedText(value)}>
      {timeText(value, isShort)}
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
