/** All endpoints of the caller: their state, their events and what became of their last deliveries; and the form for a new one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ProblemNote } from '../components/problem.tsx';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf } from '../send.ts';
import { type Endpoint, type Health, type Page, queryOf, useApi, useRead } from './api.ts';
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
              <td>{eventsText(endpoint.events)}</td>
              {hasTenant ? <td>{endpoint.tenant ?? <span class="absent">–</span>}</td> : null}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function State({ endpoint }: { readonly endpoint: Endpoint }): JSX.Element {
  const health = useRead<Health>(`/endpoints/${endpoint.id}/health`).value;
  return <EndpointBadge endpoint={endpoint} health={health} />;
}

const eventsShownMax = 3;

export function eventsText(events: readonly string[]): string {
  if (events.includes('*')) return 'All events';
  const more = events.length - eventsShownMax;
  const shown = events.slice(0, eventsShownMax).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
