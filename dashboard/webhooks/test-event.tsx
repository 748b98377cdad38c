/** Sends a test event of a chosen type to one endpoint, and shows what it answered. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Delivery, EventType } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { Json } from '../components/value.tsx';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf } from '../send.ts';
import { type Page, useApi, useRead } from './api.ts';
import { DeliveryBadge, Outcome } from './badges.tsx';

const plainType = 'endpoint.test';

type TestEventProps = { readonly id: string; readonly onSent: () => void };

export function TestEvent({ id, onSent }: TestEventProps): JSX.Element {
  const api = useApi();
  const types = useRead<Page<EventType>>('/event-types?limit=1000').value?.items ?? [];
  const withSample = types.filter(({ sample, type }) => sample !== null && type !== plainType);
  const [type, setType] = useState(plainType);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [sent, setSent] = useState<string | undefined>(undefined);
  const send = async (event: Event) => {
    event.preventDefault();
    const reply = await api.send('POST', `/endpoints/${id}/test`, { json: { type } });
    setProblem(problemOf(reply));
    if (reply.status !== 202 || !isObject(reply.json)) return;
    setSent(String(reply.json.id));
    onSent();
  };
  const sample = withSample.find((each) => each.type === type)?.sample;
  return (
    <section class="panel" aria-labelledby="test-title">
      <h2 id="test-title">Test</h2>
      <form onSubmit={send} class="line">
        <label>
          Event type{' '}
          <select
            value={type}
            onChange={(event) => setType((event.currentTarget as HTMLSelectElement).value)}
          >
            {[plainType, ...withSample.map((each) => each.type)].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="submit">Send a test event</button>
      </form>
      <ProblemNote problem={problem} />
      {sent === undefined ? null : <Sent key={sent} id={sent} />}
      {sample === undefined ? null : (
        <details>
          <summary>Sample</summary>
          <Json value={sample} label={`Sample of ${type}`} />
        </details>
      )}
    </section>
  );
}

/** The delivery of the test, followed until it has been tried. */
function Sent({ id }: { readonly id: string }): JSX.Element {
  const { value } = useRead<Delivery>(`/deliveries/${id}`, { everyMs: 1000 });
  return (
    <p role="status">
      {value === undefined || value.attemptCount === 0 ? (
        'Sent; waiting for the answer…'
      ) : (
        <>
          <DeliveryBadge delivery={value} /> <Outcome delivery={value} />
        </>
      )}{' '}
      <a href={linkTo('delivery', { id })}>The delivery</a>
    </p>
  );
}
