/** The types of events that endpoints may ask for, each with what it means, a sample and its schema. */
import type { JSX } from 'preact';
import type { EventType } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { Json } from '../components/value.tsx';
import { type Page, useRead } from './api.ts';

export function EventTypesPage(): JSX.Element {
  const { value, problem } = useRead<Page<EventType>>('/event-types?limit=1000');
  return (
    <section aria-labelledby="page-title">
      <header class="head">
        <h1 id="page-title">Event types</h1>
      </header>
      <ProblemNote problem={problem} />
      {value === undefined ? <p class="loading">Loading…</p> : null}
      {value?.items.map(({ type, description, sample, schema }) => (
        <details class="event-type" key={type}>
          <summary>
            <code>{type}</code> <span class="quiet">{description}</span>
          </summary>
          {sample === null ? (
            <p class="hint">No sample.</p>
          ) : (
            <Json value={sample} label={`Sample of ${type}`} />
          )}
          {schema === null ? null : (
            <details>
              <summary>Schema of the object</summary>
              <Json value={schema} label={`Schema of ${type}`} />
            </details>
          )}
        </details>
      ))}
    </section>
  );
}
