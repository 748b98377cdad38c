/** All endpoints of the caller: their state, their events and the results of their last deliveries; and the form for a new one. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Endpoint, EndpointHealth } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf } from '../send.ts';
import { type Page, queryOf, useApi, useRead } from './api.ts';
import { EndpointBadge } from './badges.tsx';
import { type EndpointFields, EndpointForm } from './endpoint-form.tsx';
import { SecretOnce } from './secret.tsx';

const pageSize = 20;

type Made = { readonly id: string; readonly secret: string };

/** @param hasTenant the caller may create endpoints for any tenant */
export function EndpointsPage({ hasTenant }: { readonly hasTenant: boolean }): JSX.Element {
  const api = useApi();
  const [cursor, setCursor] = useState('');
  const page = useRead<Page<Endpoint>>(
    `/endpoints${queryOf({ limit: pageSize, sort: '-createdAt', cursor })}`,
  );
  const [isCreating, setCreating] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [made, setMade] = useState<Made | undefined>(undefined);
  const create = async (fields: EndpointFields) => {
    const reply = await api.send('POST', '/endpoints', { json: fields });
    setProblem(problemOf(reply));
    if (!isObject(reply.json) || typeof reply.json.secret !== 'string') return;
    setMade({ id: String(reply.json.id), secret: reply.json.secret });
    setCreating(false);
    await page.read();
  };
  return (
    <section aria-labelledby="page-title">
      <header class="head">
        <h1 id="page-title">Endpoints</h1>
        <div class="buttons">
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            New endpoint
          </button>
        </div>
      </header>
      {made === undefined ? null : (
        <SecretOnce
          secret={made.secret}
          onStored={() => {
            location.hash = linkTo('endpoint', { id: made.id });
          }}
        />
      )}
      {isCreating ? (
        <EndpointForm
          hasTenant={hasTenant}
          problem={problem}
          onSubmit={create}
          onCancel={() => setCreating(false)}
        />
      ) : null}
      <ProblemNote problem={page.problem} />
      <Endpoints items={page.value?.items} hasTenant={hasTenant} />
      <Pager page={page.value} cursor={cursor} onCursor={setCursor} />
    </section>
  );
}

type PagerProps = {
  readonly page: Page<unknown> | undefined;
  readonly cursor: string;
  readonly onCursor: (cursor: string) => void;
};

export function Pager({ page, cursor, onCursor }: PagerProps): JSX.Element | null {
  const next = page?.nextCursor ?? null;
  if (next === null && cursor === '') return null;
  return (
    <p class="pager">
      {cursor === '' ? null : (
        <button type="button" onClick={() => onCursor('')}>
          First page
        </button>
      )}
      {next === null ? null : (
        <button type="button" onClick={() => onCursor(next)}>
          Next page
        </button>
      )}
    </p>
  );
}

type EndpointsProps = { readonly items: readonly Endpoint[] | undefined; readonly hasTenant: boolean };

function Endpoints({ items, hasTenant }: EndpointsProps): JSX.Element {
  const rates = useRates(items);
  if (items === undefined) return <p class="loading">Loading…</p>;
  if (items.length === 0) {
    return <p class="empty">No endpoint yet. Add one, and events are sent to it from then on.</p>;
  }
  return (
    <section class="scroll" tabIndex={0} aria-label="Table of endpoints">
      <table>
        <thead>
          <tr>
            <th>Endpoint</th>
            <th>State</th>
            <th>Last day</th>
            <th>Events</th>
            {hasTenant ? <th>Tenant</th> : null}
          </tr>
        </thead>
        <tbody>
          {items.map((endpoint) => (
            <tr key={endpoint.id}>
              <td class="wide">
                <a href={linkTo('endpoint', { id: endpoint.id })}>{endpoint.url}</a>
                {endpoint.description === undefined ? null : <p class="hint">{endpoint.description}</p>}
              </td>
              <td>
                <State endpoint={endpoint} />
              </td>
              <td>
                <RateText rate={rates?.get(endpoint.id)} />
              </td>
              <td>{eventsText(endpoint.events)}</td>
              {hasTenant ? <td>{endpoint.tenant ?? <span class="absent">–</span>}</td> : null}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const dayMs = 86_400_000;
/** Changes often enough, and the request stays the same between two renderings. */
const ratesEveryMs = 60_000;

type Rate = { readonly good: number; readonly bad: number; readonly latencyMs: number | undefined };
type Group = {
  readonly endpointId: string;
  readonly status: string;
  readonly count: number;
  readonly avg_lastLatencyMs: number | null;
};

/** The deliveries of the last day by endpoint, counted by the API in one request. */
function useRates(endpoints: readonly Endpoint[] | undefined): ReadonlyMap<string, Rate> | undefined {
  const api = useApi();
  const [rates, setRates] = useState<ReadonlyMap<string, Rate> | undefined>(undefined);
  const ids = endpoints?.map(({ id }) => id).join(',') ?? '';
  useEffect(() => {
    const read = async () => {
      if (ids === '') return;
      const since = new Date(Date.now() - dayMs).toISOString();
      const reply = await api.send('QUERY', '/deliveries', {
        json: {
          filter: { endpointId: { in: ids.split(',') }, updatedAt: { gte: since } },
          groupBy: ['endpointId', 'status'],
          aggregate: { count: true, avg: ['lastLatencyMs'] },
        },
      });
      if (reply.status < 300) setRates(ratesOf((reply.json as Page<Group>).items));
    };
    void read();
    const timer = setInterval(read, ratesEveryMs);
    return () => clearInterval(timer);
  }, [ids]);
  return rates;
}

function ratesOf(groups: readonly Group[]): ReadonlyMap<string, Rate> {
  const rates = new Map<string, Rate>();
  for (const { endpointId, status, count, avg_lastLatencyMs: latency } of groups) {
    const { good, bad, latencyMs } = rates.get(endpointId) ?? { good: 0, bad: 0, latencyMs: undefined };
    rates.set(endpointId, {
      good: good + (status === 'delivered' ? count : 0),
      bad: bad + (status === 'not_delivered' ? count : 0),
      latencyMs: status === 'delivered' ? Number(latency) : latencyMs,
    });
  }
  return rates;
}

function RateText({ rate }: { readonly rate: Rate | undefined }): JSX.Element {
  const ended = rate === undefined ? 0 : rate.good + rate.bad;
  if (rate === undefined || ended === 0) return <span class="absent">–</span>;
  const percent = ((rate.good / ended) * 100).toLocaleString('en', { maximumFractionDigits: 1 });
  const latency = rate.latencyMs === undefined ? '' : `, ${Math.round(rate.latencyMs)} ms`;
  return (
    <span class="number">
      {`${percent} %`}
      <span class="quiet">{` of ${ended.toLocaleString('en')}${latency}`}</span>
    </span>
  );
}

function State({ endpoint }: { readonly endpoint: Endpoint }): JSX.Element {
  const health = useRead<EndpointHealth>(`/endpoints/${endpoint.id}/health`).value;
  return <EndpointBadge endpoint={endpoint} health={health} />;
}

const eventsShownMax = 3;

export function eventsText(events: readonly string[]): string {
  if (events.includes('*')) return 'All events';
  const more = events.length - eventsShownMax;
  const shown = events.slice(0, eventsShownMax).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
