/**
 * Requests explained: sends a request and draws its walk through the decision graph, each node with its question, its answer and the
 * section that it follows. The graph is the one that the server walks (src/http/conduct), so the two cannot differ.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { RequestForm, type Sent } from '../components/request-form.tsx';
import { Json } from '../components/value.tsx';
import { Walk } from '../components/walk.tsx';
import { isObject, type Reply } from '../send.ts';

/** @param query of the address: a method and a path to begin with, or the trace of an earlier response */
export function ExplainPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const trace = query.get('trace');
  const keep = (next: Sent) => setSent([next, ...sent].slice(0, 2));
  return (
    <section aria-labelledby="explain-title">
      <h1 id="explain-title">Requests explained</h1>
      <p class="quiet">
        Each response follows from the questions of one graph, asked in this order. The server names the path
        in <code>Comity-Trace</code> when it runs with <code>COMITY_DEVELOPMENT=on</code>.
      </p>
      <RequestForm key={query.toString()} query={query} onSent={keep} />
      {trace !== null && sent.length === 0 ? (
        <>
          <h2>The response with status {query.get('status')}</h2>
          <p>
            <code>{`${query.get('method') ?? ''} ${query.get('path') ?? ''}`}</code>
          </p>
          <Walk trace={trace} status={Number(query.get('status'))} code={undefined} />
        </>
      ) : null}
      <div class={sent.length > 1 ? 'beside' : undefined}>
        {sent.map(({ line, reply }, index) => (
          <Explained
            key={`${line} ${index} ${reply.durationMs}`}
            line={line}
            reply={reply}
            title={index === 0 ? 'This request' : 'The request before'}
          />
        ))}
      </div>
    </section>
  );
}

function Explained({
  line,
  reply,
  title,
}: {
  readonly line: string;
  readonly reply: Reply;
  readonly title: string;
}): JSX.Element {
  const trace = reply.headers.get('Comity-Trace');
  const code = isObject(reply.json) && typeof reply.json.code === 'string' ? reply.json.code : undefined;
  return (
    <article class="explained" aria-label={`${title}: ${line}`}>
      <h2>{title}</h2>
      <p>
        <code>{line}</code>
      </p>
      <p role="status">
        <strong
          class={`status s${Math.floor(reply.status / 100)}`}
        >{`${reply.status} ${reply.statusText}`}</strong>{' '}
        {`in ${reply.durationMs.toFixed(1)} ms`}
      </p>
      {trace === null ? (
        <p class="quiet">
          This response has no trace. Start the server with COMITY_DEVELOPMENT=on to see one.
        </p>
      ) : (
        <Walk trace={trace} status={reply.status} code={code} />
      )}
      <details>
        <summary>Fields and content</summary>
        <Json
          value={[...reply.headers].map(([name, value]) => `${name}: ${value}`).join('\n')}
          label="Header fields"
        />
        {reply.text === '' ? null : <Json value={reply.json ?? reply.text} label="Content" />}
      </details>
    </article>
  );
}
