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
import { errorText } from './badges.tsx';
import { Ago, Countdown } from './clock.tsx';
import { Fact } from './endpoint-page.tsx';
import { LastFailure } from './last-failure.tsx';

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
    </dl>
  );
}

type HandedOnAttempt = {
  readonly number: number;
  readonly outcome: 'processed' | 'failed';
  readonly error: string | null;
  readonly message: string | null;
  readonly statusCode: number | null;
  readonly at: string;
};

/** The kind of a failure in words. */
export function failureKind(kind: string): string {
  return kinds[kind] ?? errorText(kind);
}

const kinds: Readonly<Record<string, string>> = {
  thrown: 'The function threw',
  timeout: 'It took too long',
  refused: 'The store refused what it wrote',
  superseded: 'Other changes came first',
  'thread-ended': 'Its thread ended',
  'content-gone': 'The content is no longer kept',
};

type HandedOnProps = { readonly target: string; readonly dueAt: string | null };

function HandedOn({ target, dueAt }: HandedOnProps): JSX.Element {
  const { value, problem } = useRead<Page<HandedOnAttempt>>(`${target}/attempts?limit=200`, {
    everyMs: 2000,
  });
  const items = value?.items ?? [];
  const last = items.at(-1);
  const failed = last?.outcome === 'failed' ? last : undefined;
  return (
    <>
      {failed === undefined ? null : (
        <LastFailure
          number={failed.number}
          at={failed.at}
          what={
            failed.statusCode === null
              ? failureKind(failed.error ?? '')
              : `The answer was ${failed.statusCode}`
          }
          message={failed.message}
        />
      )}
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
