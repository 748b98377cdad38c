/** A request as a person writes it: method, path, fields, content, and with whose credential. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { base, description } from '../description.ts';
import { explained, type Reply, type SendOptions, type SentRequest, send } from '../send.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'] as const;

export type Sent = { readonly line: string; readonly reply: Reply };

type FormProps = { readonly query: URLSearchParams; readonly onSent: (sent: Sent) => void };

export function RequestForm({ query, onSent }: FormProps): JSX.Element {
  const [failure, setFailure] = useState('');
  const refused = refusedRequest(query);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? '');
    try {
      const reply = await send(text('method'), text('path'), optionsOf(text));
      setFailure('');
      onSent({ line: `${text('method')} ${text('path')}`, reply });
    } catch (error) {
      setFailure(`The browser did not send the request: ${(error as Error).message}`);
    }
  };
  return (
    <form class="request" onSubmit={submit}>
      <RequestLine query={query} />
      <div class="line">
        <label class="wide">
          Fields, one a line
          <textarea
            name="fields"
            rows={3}
            spellcheck={false}
            placeholder={'If-Match: "1.a"\nContent-Type: application/json'}
            defaultValue={linesOf(refused?.fields ?? {})}
          />
        </label>
        <label class="wide">
          Content
          <textarea name="content" rows={3} spellcheck={false} defaultValue={refused?.content ?? ''} />
        </label>
      </div>
      <button type="submit" class="primary">
        Send
      </button>
      {failure === '' ? null : (
        <p class="problem" role="alert">
          {failure}
        </p>
      )}
    </form>
  );
}

/** The request that the link of an error was followed with, unless the address names another one. */
function refusedRequest(query: URLSearchParams): SentRequest | undefined {
  const request = explained.value;
  const isNamed = request?.method === query.get('method') && request?.path === query.get('path');
  return isNamed ? request : undefined;
}

function linesOf(fields: Readonly<Record<string, string>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

function RequestLine({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const [as, setAs] = useState('me');
  return (
    <div class="line">
      <label>
        Method
        <select name="method">
          {methods.map((each) => (
            <option key={each} selected={each === (query.get('method') ?? 'GET')}>
              {each}
            </option>
          ))}
        </select>
      </label>
      <label class="wide">
        Path
        <input name="path" list="paths" required defaultValue={query.get('path') ?? `${base.value}/`} />
      </label>
      <datalist id="paths">
        {(description.value?.paths ?? []).map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      <label>
        As
        <select name="as" value={as} onChange={(event) => setAs(event.currentTarget.value)}>
          <option value="me">me</option>
          <option value="anonymous">anonymous</option>
          <option value="key">another key</option>
        </select>
      </label>
      {as === 'key' ? (
        <label>
          Key
          <input name="key" type="password" autocomplete="off" required />
        </label>
      ) : null}
    </div>
  );
}

/** @throws Error for a line that is no field */
function optionsOf(text: (name: string) => string): SendOptions {
  const content = text('content');
  const hasContent = content !== '' && text('method') !== 'GET' && text('method') !== 'HEAD';
  return {
    headers: readFields(text('fields')),
    ...(hasContent ? { text: content } : {}),
    ...(text('as') === 'anonymous' ? { anonymous: true } : {}),
    ...(text('as') === 'key' ? { key: text('key') } : {}),
  };
}

/** @throws Error for a line that is no field */
function readFields(text: string): Record<string, string> {
  const pairs = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    pairs.map((line) => {
      const colon = line.indexOf(':');
      if (colon < 1) throw new Error(`a field is "Name: value", not ${line}`);
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}
