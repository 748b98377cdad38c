/** One delivery as a timeline: each attempt with its answer, the next one, and the request as it is sent; and the resend. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Attempt, Delivery, Endpoint, SentRequest as SentRequestContent } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { Json, Time } from '../components/value.tsx';
import { linkTo } from '../route.ts';
import { type Problem, problemOf } from '../send.ts';
import { type Page, useApi, useRead } from './api.ts';
import { DeliveryBadge, errorText } from './badges.tsx';
import { Ago, Countdown } from './clock.tsx';
import { Fact } from './endpoint-page.tsx';
import { LastFailure } from './last-failure.tsx';

export function DeliveryPage({ id }: { readonly id: string }): JSX.Element {
  const api = useApi();
  const target = `/deliveries/${encodeURIComponent(id)}`;
  const { value, problem, read } = useRead<Delivery>(target, { everyMs: 2000 });
  const attempts = useRead<Page<Attempt>>(value === undefined ? undefined : `${target}/attempts?limit=200`, {
    everyMs: 2000,
  });
  const [refusal, setRefusal] = useState<Problem | undefined>(undefined);
  const resend = async () => {
    setRefusal(problemOf(await api.send('POST', `${target}/resend`)));
    await read();
  };
  return (
    <section aria-labelledby="page-title">
      <p class="path">
        <a href={linkTo('deliveries')}>Deliveries</a>
      </p>
      <ProblemNote problem={problem} />
      {value === undefined ? null : (
        <>
          <header class="head">
            <h1 id="page-title">{value.eventType}</h1>
            <DeliveryBadge delivery={value} />
            <div class="buttons">
              <button type="button" class="primary" onClick={resend}>
                Resend
              </button>
            </div>
          </header>
          <ProblemNote problem={refusal} />
          <Facts delivery={value} />
          <Failure delivery={value} attempts={attempts.value?.items ?? []} />
          <h2>Attempts</h2>
          <ProblemNote problem={attempts.problem} />
          <Timeline delivery={value} attempts={attempts.value?.items ?? []} />
          <SentRequest target={target} />
        </>
      )}
    </section>
  );
}

function Facts({ delivery }: { readonly delivery: Delivery }): JSX.Element {
  const endpoint = useRead<Endpoint>(`/endpoints/${delivery.endpointId}`).value;
  return (
    <dl class="facts">
      <Fact name="Endpoint">
        {endpoint === undefined ? (
          <code>{delivery.endpointId}</code>
        ) : (
          <a href={linkTo('endpoint', { id: endpoint.id })}>{endpoint.url}</a>
        )}
      </Fact>
      <Fact name="Event">
        <a href={linkTo('deliveries', { eventId: delivery.eventId })}>{delivery.eventId}</a>
      </Fact>
      <Fact name="Delivery">
        <code>{delivery.id}</code>
      </Fact>
      <Fact name="Created">
        <Ago time={delivery.createdAt} />
      </Fact>
    </dl>
  );
}

function Failure({ delivery, attempts }: TimelineProps): JSX.Element | null {
  const last = attempts.at(-1);
  if (delivery.status !== 'not_delivered' || last === undefined) return null;
  const { number, at, statusCode, error, message = null, responseSnippet } = last;
  const what = statusCode === null ? errorText(error ?? '') : `The answer was ${statusCode}`;
  return <LastFailure {...{ number, at, what, message }} snippet={responseSnippet} />;
}

type TimelineProps = { readonly delivery: Delivery; readonly attempts: readonly Attempt[] };

function Timeline({ delivery: { dueAt, createdAt }, attempts }: TimelineProps): JSX.Element {
  return (
    <ol class="timeline">
      <li>
        <Time value={createdAt} /> Event
      </li>
      {attempts.map((attempt) => (
        <AttemptItem key={attempt.number} attempt={attempt} />
      ))}
      {dueAt === null ? null : (
        <li class="next">
          <Time value={dueAt} /> <strong>Next attempt</strong>{' '}
          <span class="quiet">
            in <Countdown until={dueAt} over="a moment" />
          </span>
        </li>
      )}
    </ol>
  );
}

function AttemptItem({ attempt }: { readonly attempt: Attempt }): JSX.Element {
  const { statusCode, error, message, latencyMs, trigger, at, responseSnippet } = attempt;
  const isGood = statusCode !== null && statusCode >= 200 && statusCode < 300;
  const headers = attempt.responseHeaders ?? [];
  return (
    <li class={isGood ? 'good' : 'bad'}>
      <Time value={at} /> <strong>{statusCode ?? errorText(error ?? '')}</strong>{' '}
      <span class="quiet">
        {[`${latencyMs} ms`, attempt.protocol ?? '', trigger === 'manual' ? 'sent by hand' : '']
          .filter((text) => text !== '')
          .join(', ')}
      </span>
      {message == null ? null : <p class="fault">{message}</p>}
      {headers.length + responseSnippet.length === 0 ? null : (
        <details>
          <summary>Response</summary>
          {headers.length === 0 ? null : (
            <pre tabIndex={0}>{headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
          )}
          {responseSnippet === '' ? null : <pre tabIndex={0}>{responseSnippet}</pre>}
        </details>
      )}
      <Timing timing={attempt.timing} />
    </li>
  );
}

const phases = [
  ['dnsMs', 'name'],
  ['connectMs', 'connection'],
  ['tlsMs', 'TLS'],
  ['firstByteMs', 'first octet'],
] as const;

function Timing({ timing }: { readonly timing: Attempt['timing'] | undefined }): JSX.Element | null {
  const known = phases.flatMap(([name, text]) =>
    timing?.[name] == null ? [] : [`${text} ${timing[name]} ms`],
  );
  return known.length === 0 ? null : <p class="hint">{known.join(' · ')}</p>;
}

function SentRequest({ target }: { readonly target: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { value, problem } = useRead<SentRequestContent>(isOpen ? `${target}/request` : undefined);
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Request</summary>
      <ProblemNote problem={problem} />
      {value === undefined ? null : (
        <>
          <pre tabIndex={0}>
            {[
              `${value.method} ${value.url}`,
              ...value.headers.map(([name, text]) => `${name}: ${text}`),
            ].join('\n')}
          </pre>
          <Json value={indented(value.content)} label="Content of the request" />
        </>
      )}
    </details>
  );
}

function indented(content: string): string {
  try {
    return JSON.stringify(JSON.parse(content), undefined, 2);
  } catch {
    return content; // Not JSON: shown as it is.
  }
}
