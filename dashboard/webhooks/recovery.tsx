/** Recovers what an endpoint missed between two times: counted first, then sent, with its progress. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Recovery } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { isObject, type Problem, problemOf } from '../send.ts';
import { useApi, useRead } from './api.ts';

const spans = [
  ['the last hour', 3_600_000],
  ['the last day', 86_400_000],
  ['the last week', 604_800_000],
] as const;

type Span = { readonly since: string; readonly until?: string };

export function RecoverEndpoint({ id }: { readonly id: string }): JSX.Element {
  const api = useApi();
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [begun, setBegun] = useState<{ readonly id: string; readonly span: Span } | undefined>(undefined);
  const recover = async (span: Span, dryRun: boolean) => {
    const reply = await api.send('POST', `/endpoints/${id}/recover`, { json: { ...span, dryRun } });
    setProblem(problemOf(reply));
    if (reply.status === 202 && isObject(reply.json)) setBegun({ id: String(reply.json.id), span });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const span = String(data.get('span'));
    const known = spans.find(([name]) => name === span);
    if (known !== undefined) return recover({ since: new Date(Date.now() - known[1]).toISOString() }, true);
    const [since, until] = [timeOf(data.get('since')), timeOf(data.get('until'))];
    return recover({ since: since ?? '', ...(until === undefined ? {} : { until }) }, true);
  };
  return (
    <section class="panel" aria-labelledby="recover-title">
      <h2 id="recover-title">Recover missed events</h2>
      <p class="hint">
        Sends events that this endpoint was never sent, and deliveries that failed and will not be retried.
      </p>
      <form onSubmit={submit}>
        <SpanFields />
        <button type="submit">Count them</button>
      </form>
      <ProblemNote problem={problem} />
      {begun === undefined ? null : (
        <Progress key={begun.id} id={begun.id} onSend={() => recover(begun.span, false)} />
      )}
    </section>
  );
}

function SpanFields(): JSX.Element {
  const [span, setSpan] = useState<string>(spans[0][0]);
  return (
    <div class="line">
      <label>
        Since{' '}
        <select
          name="span"
          value={span}
          onChange={(event) => setSpan((event.currentTarget as HTMLSelectElement).value)}
        >
          {[...spans.map(([name]) => name), 'between'].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {span === 'between' ? (
        <>
          <label>
            From <input type="datetime-local" name="since" required />
          </label>
          <label>
            to <input type="datetime-local" name="until" />
          </label>
        </>
      ) : null}
    </div>
  );
}

/** A local time of the browser as UTC. */
export function timeOf(value: FormDataEntryValue | string | null): string | undefined {
  const time = typeof value === 'string' && value !== '' ? new Date(value) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

function Progress({ id, onSend }: { readonly id: string; readonly onSend: () => void }): JSX.Element {
  const { value } = useRead<Recovery>(`/recoveries/${id}`, { everyMs: 1000 });
  if (value === undefined) return <p role="status">Begun…</p>;
  const { dryRun, status, examined, matching, resent, created } = value;
  const count = resent + created;
  const events = `${count} ${count === 1 ? 'event' : 'events'}`;
  if (status === 'running') {
    return <p role="status">{`${dryRun ? 'Counting' : 'Sending'}: ${examined} events examined`}</p>;
  }
  if (status === 'stopped') return <p role="status">Stopped: the endpoint was removed.</p>;
  if (!dryRun) return <p role="status">{`Recovered ${events}.`}</p>;
  return (
    <p role="status">
      {`${events} would be sent, of ${matching} that this endpoint wants. `}
      {count === 0 ? null : (
        <button type="button" class="primary" onClick={onSend}>
          {`Send ${events}`}
        </button>
      )}
    </p>
  );
}
