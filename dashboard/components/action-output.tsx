/** The answer of an action by its type: members or a table of JSON, text, an image, and other octets as a download with their name and size. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { pathOf, type Schema, type Step } from '../description.ts';
import { inWords, labelOf } from '../presentation.ts';
import { isObject, problemOf, type Reply, send } from '../send.ts';
import { PlainTable } from './plain-table.tsx';
import { ProblemNote } from './problem.tsx';
import { ReferenceLink } from './reference-link.tsx';
import { Badge, Json, Time, Value } from './value.tsx';

/** A longer text is cut, and can be downloaded. */
const textShownCharacters = 20_000;
/** A larger image is a download. */
const imageShownBytes = 8_000_000;

type OutputProps = { readonly step: Step; readonly reply: Reply };

export function ActionOutput({ step, reply }: OutputProps): JSX.Element {
  const { status, octets } = reply;
  if (status === 202 && isObject(reply.json)) return <Progress step={step} operation={reply.json} />;
  const isEmpty = octets === undefined || octets.size === 0;
  return (
    <div class="output">
      <p class="saved">{status === 0 ? 'Done. It leads to another address.' : 'Done.'}</p>
      {isEmpty ? null : <Content step={step} reply={reply} octets={octets} />}
    </div>
  );
}

type ContentProps = OutputProps & { readonly octets: Blob };

function Content({ step, reply, octets }: ContentProps): JSX.Element {
  const type = octets.type.split(';', 1)[0] ?? '';
  if (reply.json !== undefined && type.endsWith('json')) return <JsonOutput step={step} value={reply.json} />;
  const name = fileNameOf(reply) ?? `${step.name}${extensions[type] ?? ''}`;
  const isImage = type.startsWith('image/') && octets.size <= imageShownBytes;
  return (
    <>
      {isImage ? <Image octets={octets} name={name} /> : null}
      {reply.text === '' || isImage ? null : (
        <Json value={reply.text.slice(0, textShownCharacters)} label="The text of the answer" />
      )}
      {reply.text.length > textShownCharacters ? <p class="hint">The beginning of the text.</p> : null}
      <Download octets={octets} name={name} />
    </>
  );
}

const extensions: Readonly<Record<string, string>> = {
  'text/plain': '.txt',
  'text/csv': '.csv',
  'text/html': '.html',
  'application/pdf': '.pdf',
  'application/zip': '.zip',
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/svg+xml': '.svg',
};

/** `filename*` before `filename` (RFC 6266 §4.3). */
function fileNameOf({ headers }: Reply): string | undefined {
  const field = headers.get('Content-Disposition') ?? '';
  const [, extended] = /filename\*=UTF-8''([^;]+)/i.exec(field) ?? [];
  if (extended !== undefined) return decodeURIComponent(extended);
  return /filename="([^"]+)"/i.exec(field)?.[1];
}

function JsonOutput({ step, value }: { readonly step: Step; readonly value: unknown }): JSX.Element {
  const list = Array.isArray(value)
    ? value
    : isObject(value) && Array.isArray(value.items)
      ? value.items
      : [];
  const rows = list.filter(isObject);
  return (
    <>
      {rows.length > 0 ? <PlainTable rows={rows} label="The answer as a table" /> : null}
      {rows.length === 0 && isObject(value) ? <Members schema={step.output} value={value} /> : null}
      {rows.length === 0 && !isObject(value) ? (
        <p>
          <Value value={value} />
        </p>
      ) : null}
      <details>
        <summary>JSON</summary>
        <Json value={value} label="The answer as JSON" />
      </details>
    </>
  );
}

type MembersProps = { readonly schema: Schema; readonly value: Readonly<Record<string, unknown>> };

function Members({ schema, value }: MembersProps): JSX.Element {
  return (
    <dl class="members">
      {Object.entries(value).map(([name, each]) => {
        const target = schema.properties?.[name]?.['x-references'];
        return (
          <div key={name}>
            <dt title={name}>{labelOf(schema, name)}</dt>
            <dd>
              {target !== undefined && typeof each === 'string' ? (
                <ReferenceLink path={pathOf(target)} id={each} />
              ) : (
                <Value value={each} />
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** The policy of the page permits images of its own origin and of `data:` URLs. */
function Image({ octets, name }: { readonly octets: Blob; readonly name: string }): JSX.Element {
  const [source, setSource] = useState('');
  useEffect(() => {
    const reader = new FileReader();
    reader.onload = () => setSource(String(reader.result));
    reader.readAsDataURL(octets);
    return () => reader.abort();
  }, [octets]);
  return source === '' ? (
    <p class="loading">Loading…</p>
  ) : (
    <img class="output-image" src={source} alt={name} />
  );
}

function Download({ octets, name }: { readonly octets: Blob; readonly name: string }): JSX.Element {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(octets);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [octets]);
  const type = octets.type === '' ? 'octets' : octets.type;
  return (
    <p class="download">
      <a class="button" href={url} download={name}>
        Download {name}
      </a>{' '}
      <span class="quiet">{`${type}, ${octets.size.toLocaleString()} octets`}</span>
    </p>
  );
}

const everyMs = 1000;

type ProgressProps = { readonly step: Step; readonly operation: Readonly<Record<string, unknown>> };

/** An operation until it has ended. The server redirects one that succeeded to its result. */
function Progress({ step, operation }: ProgressProps): JSX.Element {
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const id = String(operation.id);
  const target = `${pathOf('operations')}/${encodeURIComponent(id)}`;
  const shown = isObject(reply?.json) && reply.json.id === id ? reply.json : undefined;
  const isUnderWay = reply === undefined || shown?.status === 'pending';
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const next = await send('GET', target, { wantsOctets: true }).catch(() => undefined);
      if (!isShown) return;
      if (next !== undefined) setReply(next);
      const isPending = isObject(next?.json) && next.json.id === id && next.json.status === 'pending';
      if (next === undefined || isPending) timer = window.setTimeout(ask, everyMs);
    };
    timer = window.setTimeout(ask, everyMs);
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [target]);
  const status = isUnderWay ? 'pending' : (shown?.status ?? 'succeeded');
  return (
    <div class="output" role="status">
      <p>
        <Badge text={String(status)} /> {inWords(step.name)}, asked for{' '}
        <Time value={String(operation.createdAt)} />
      </p>
      {isUnderWay ? <progress aria-label="Under way" /> : null}
      {shown?.status === 'failed' ? <Json value={shown.outcome} label="Why it failed" /> : null}
      {isUnderWay || shown !== undefined ? null : <Ended step={step} reply={reply} />}
    </div>
  );
}

function Ended({ step, reply }: OutputProps): JSX.Element | null {
  const problem = problemOf(reply);
  if (problem !== undefined) return <ProblemNote problem={problem} />;
  const { octets } = reply;
  if (octets === undefined || octets.size === 0) return null;
  return <Content step={step} reply={reply} octets={octets} />;
}
