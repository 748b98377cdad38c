/** Deliveries as they happen, newest first, with filters; and the resending of all that a filter selects, counted before. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Delivery, Endpoint, EventType } from '../api-types.ts';
import { Choice } from '../components/choice.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { linkTo } from '../route.ts';
import { type DeliveryFilter, liveMs, type Page, queryOf, useRead } from './api.ts';
import { DeliveryBadge, Outcome } from './badges.tsx';
import { Ago } from './clock.tsx';
import { Pager } from './endpoints-page.tsx';
import { timeOf } from './recovery.tsx';
import { ResendAll } from './resend-all.tsx';

const pageSize = 25;

export function DeliveriesPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  return (
    <section aria-labelledby="page-title">
      <header class="head">
        <h1 id="page-title">Deliveries</h1>
      </header>
      <DeliveryList query={query} />
    </section>
  );
}

type DeliveryListProps = {
  /** Undefined: deliveries to all endpoints. */
  readonly endpoint?: Endpoint;
  /** The filter at first. */
  readonly query: URLSearchParams;
};

export function DeliveryList({ endpoint, query }: DeliveryListProps): JSX.Element {
  const [filter, setFilter] = useState<DeliveryFilter>({
    endpointId: endpoint?.id ?? query.get('endpointId') ?? undefined,
    status: query.get('status') ?? undefined,
    eventId: query.get('eventId') ?? undefined,
  });
  const [cursor, setCursor] = useState('');
  const path = `/deliveries${queryOf({ ...filter, sort: '-createdAt', limit: pageSize, cursor })}`;
  // Later pages stand still: new deliveries come to the first.
  const isLive = cursor === '';
  const page = useRead<Page<Delivery>>(path, isLive ? { everyMs: liveMs } : {});
  const change = (changes: DeliveryFilter) => {
    setCursor('');
    setFilter({ ...filter, ...changes });
  };
  return (
    <>
      <DeliveryFilters filter={filter} isOfEndpoint={endpoint !== undefined} onChange={change} />
      <ResendAll key={JSON.stringify(filter)} filter={filter} onDone={page.read} />
      <ProblemNote problem={page.problem} />
      <p class="hint">{isLive ? 'New deliveries appear by themselves.' : ''}</p>
      <Deliveries items={page.value?.items} isOfEndpoint={endpoint !== undefined} />
      <Pager page={page.value} cursor={cursor} onCursor={setCursor} />
    </>
  );
}

type DeliveryFiltersProps = {
  readonly filter: DeliveryFilter;
  readonly isOfEndpoint: boolean;
  readonly onChange: (changes: DeliveryFilter) => void;
};

function DeliveryFilters({ filter, isOfEndpoint, onChange }: DeliveryFiltersProps): JSX.Element {
  const types = useRead<Page<EventType>>('/event-types?limit=1000').value?.items ?? [];
  const endpoints =
    useRead<Page<Endpoint>>(isOfEndpoint ? undefined : '/endpoints?limit=200').value?.items ?? [];
  const inputOf = (event: Event) => (event.currentTarget as HTMLSelectElement | HTMLInputElement).value;
  const choose = (name: string) => (value: string) => onChange({ [name]: value || undefined });
  return (
    <fieldset class="filters">
      <legend class="hidden">Filter deliveries</legend>
      <Choice label="State" value={filter.status ?? ''} onChange={choose('status')} options={statuses} />
      <Choice
        label="Event type"
        value={filter.eventType ?? ''}
        onChange={choose('eventType')}
        options={[any, ...types.map(({ type }) => [type, type] as const)]}
      />
      {isOfEndpoint ? null : (
        <Choice
          label="Endpoint"
          value={filter.endpointId ?? ''}
          onChange={choose('endpointId')}
          options={[any, ...endpoints.map(({ id, url }) => [id, url] as const)]}
        />
      )}
      <label>
        From{' '}
        <input
          type="datetime-local"
          onChange={(event) => onChange({ 'createdAt[gte]': timeOf(inputOf(event)) })}
        />
      </label>
      <label>
        to{' '}
        <input
          type="datetime-local"
          onChange={(event) => onChange({ 'createdAt[lte]': timeOf(inputOf(event)) })}
        />
      </label>
      {filter.eventId === undefined ? null : (
        <button type="button" class="chip" onClick={() => onChange({ eventId: undefined })}>
          {`Event ${filter.eventId} `}
          <span aria-hidden="true">×</span>
          <span class="hidden">, remove this filter</span>
        </button>
      )}
    </fieldset>
  );
}

const any = ['', 'any'] as const;

const statuses = [
  any,
  ['not_delivered', 'Failed or retrying'],
  ['pending', 'Pending'],
  ['delivered', 'Delivered'],
] as const;

type DeliveriesProps = { readonly items: readonly Delivery[] | undefined; readonly isOfEndpoint: boolean };

function Deliveries({ items }: DeliveriesProps): JSX.Element {
  if (items === undefined) return <p class="loading">Loading…</p>;
  if (items.length === 0) return <p class="empty">No deliveries match.</p>;
  return (
    <section class="scroll" tabIndex={0} aria-label="Table of deliveries">
      <table>
        <thead>
          <tr>
            <th>Event</th>
            <th>State</th>
            <th>Answer</th>
            <th>Attempts</th>
            <th>Latency</th>
            <th>Created</th>
          </tr>
        </thead>
        <tbody>
          {items.map((delivery) => (
            <tr key={delivery.id}>
              <td>
                <a href={linkTo('delivery', { id: delivery.id })}>{delivery.eventType}</a>
              </td>
              <td>
                <DeliveryBadge delivery={delivery} />
              </td>
              <td>
                <Outcome delivery={delivery} />
              </td>
              <td class="number">{delivery.attemptCount}</td>
              <td class="number">
                {delivery.lastLatencyMs === undefined ? '–' : `${delivery.lastLatencyMs} ms`}
              </td>
              <td>
                <Ago time={delivery.createdAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
