/** One received message with its attempts, its body and its replay; and the state of a message in a word. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ReceivedMessage } from '../api-types.ts';
import { Attempts, areAttempts } from '../components/attempts.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { Json } from '../components/value.tsx';
import { linkTo } from '../route.ts';
import { type Problem, problemOf } from '../send.ts';
import { type Page, useApi, useRead } from './api.ts';
import { Ago, Countdown } from './clock.tsx';
import { Fact } from './endpoint-page.tsx';

export function ReceivedBadge({ message }: { readonly message: ReceivedMessage }): JSX.Element {
  const { status, dueAt } = message;
  if (status === 'processed') return <span class="badge good">Processed</span>;
  if (status === 'pending') return <span class="badge waiting">Pending</span>;
  return dueAt === null ? (
    <span class="badge bad">Dead letter</span>
  ) : (
    <span class="badge waiting">Retrying</span>
  );
}

export function MessagePage({ id }: { readonly id: string }): JSX.Element {
  const api = useApi();
  const target = `/received/${encodeURIComponent(id)}`;
  const { value, problem, read } = useRead<ReceivedMessage>(target, { everyMs: 2000 });
  const [refusal, setRefusal] = useState<Problem | undefined>(undefined);
  const replay = async () => {
    setRefusal(problemOf(await api.send('POST', `${target}/replay`)));
    await read();
  };
  return (
    <section aria-labelledby="page-title">
      <p class="path">
        <a href={linkTo('inbox')}>Inbox</a>
      </p>
      <ProblemNote problem={problem} />
      {value === undefined ? null : (
        <>
          <header class="head">
            <h1 id="page-title">{value.type ?? value.dedupeKey}</h1>
            <ReceivedBadge message={value} />
            <div class="buttons">
              <button type="button" class="primary" onClick={replay}>
                Replay
              </button>
            </div>
          </header>
          <ProblemNote problem={refusal} />
          <Facts message={value} />
          <HandedOn target={target} dueAt={value.dueAt} />
          <Body target={target} />
        </>
      )}
    </section>
  );
}

function Facts({ message }: { readonly message: ReceivedMessage }): JSX.Element {
  return (
    <dl class="facts">
      <Fact name="Sender">
        <a href={linkTo('inbox', { sender: message.sender })}>{message.sender}</a>
      </Fact>
      <Fact name="Received">
        <Ago time={message.receivedAt} />
      </Fact>
      <Fact name="Key against duplicates">
        <code>{message.dedupeKey}</code>
      </Fact>
      <Fact name="Content">{`${message.contentType ?? 'no type'}, ${message.contentLength.toLocaleString('en')} octets`}</Fact>
      {message.lastError === null ? null : <Fact name="Last error">{message.lastError}</Fact>}
    </dl>
  );
}

type HandedOnProps = { readonly target: string; readonly dueAt: string | null };

function HandedOn({ target, dueAt }: HandedOnProps): JSX.Element {
  const { value, problem } = useRead<Page<unknown>>(`${target}/attempts?limit=200`, { everyMs: 2000 });
  const items = value?.items ?? [];
  return (
    <>
      <h2>Attempts</h2>
      <ProblemNote problem={problem} />
      {areAttempts(items) ? <Attempts items={items} /> : <p class="hint">None yet.</p>}
      {dueAt === null ? null : (
        <p class="hint">
          Next attempt in <Countdown until={dueAt} over="a moment" />
        </p>
      )}
    </>
  );
}

function Body({ target }: { readonly target: string }): JSX.Element {
  const api = useApi();
  const [text, setText] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const open = async (event: Event) => {
    if (!(event.currentTarget as HTMLDetailsElement).open || text !== undefined) return;
    const reply = await api.send('GET', `${target}/body`, { headers: { Accept: '*/*' } });
    setProblem(problemOf(reply));
    if (reply.status < 300)
      setText(reply.json === undefined ? reply.text : JSON.stringify(reply.json, undefined, 2));
  };
  return (
    <details onToggle={open}>
      <summary>Body</summary>
      <ProblemNote problem={problem} />
      {text === undefined ? null : <Json value={text} label="Body of the message" />}
    </details>
  );
}
