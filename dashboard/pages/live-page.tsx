/**
 * Events as they happen, and the connections and work of the server beside them. Events are gathered and shown once a frame, and the view
 * keeps the newest only, so a busy server does not freeze it.
 */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { EventResource } from '../components/event-resource.tsx';
import { Gauges } from '../components/gauges.tsx';
import { Json } from '../components/value.tsx';
import { WorkTables } from '../components/work-tables.tsx';
import { followEvents, type LiveEvent, type StreamState } from '../event-stream.ts';

const eventsKept = 200;

const stateTexts: Readonly<Record<StreamState, string>> = {
  connecting: 'Connecting…',
  open: 'Connected.',
  waiting: 'The connection was lost; trying again…',
};

const gauges = [
  ['comity_connections', 'connections'],
  ['comity_requests_under_way', 'requests under way'],
  ['comity_streams', 'event streams'],
  ['comity_websockets', 'WebSockets'],
  ['comity_tunnels', 'tunnels'],
  ['comity_deliveries_in_flight', 'deliveries in flight'],
  ['comity_received_in_flight', 'received in flight'],
  ['comity_units_waiting', 'writes waiting'],
] as const;

export function LivePage(): JSX.Element {
  const [isPaused, setPaused] = useState(false);
  const [pattern, setPattern] = useState('');
  const { events, state, count } = useEvents(isPaused);
  const shown = events.filter(({ type }) => type.includes(pattern));
  return (
    <section aria-labelledby="live-title">
      <header class="head">
        <h1 id="live-title">Live</h1>
        <p class="quiet" role="status">{`${stateTexts[state]} ${count} events`}</p>
        <div class="buttons">
          <input
            type="search"
            aria-label="Type contains"
            placeholder="Type contains"
            onInput={(event) => setPattern(event.currentTarget.value)}
          />
          <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
            {isPaused ? 'Continue' : 'Pause'}
          </button>
        </div>
      </header>
      <Gauges names={gauges} />
      <section class="scroll" tabIndex={0} aria-label="Events">
        <table>
          <thead>
            <tr>
              <th>Type</th>
              <th>Resource</th>
              <th>Event</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((event) => (
              <EventRow key={event.number} event={event} />
            ))}
          </tbody>
        </table>
      </section>
      {events.length === 0 ? <p class="empty">Events appear here when something is written.</p> : null}
      <WorkTables />
    </section>
  );
}

/** Messages about several documents have no id. */
type NumberedEvent = LiveEvent & { readonly number: number };

function EventRow({ event }: { readonly event: LiveEvent }): JSX.Element {
  const name = event.id === '' ? event.type : event.id;
  return (
    <tr>
      <td>{event.type}</td>
      <td>
        <EventResource type={event.type} event={event.data} />
      </td>
      <td>
        <details>
          <summary>{name}</summary>
          <Json value={event.data} label={`The event ${name}`} />
        </details>
      </td>
    </tr>
  );
}

/** The newest events first. While paused, they are counted and not shown. */
function useEvents(isPaused: boolean) {
  const [events, setEvents] = useState<readonly NumberedEvent[]>([]);
  const [count, setCount] = useState(0);
  const [state, setState] = useState<StreamState>('connecting');
  const paused = useRef(isPaused);
  paused.current = isPaused;
  useEffect(() => {
    const leaving = new AbortController();
    let gathered: NumberedEvent[] = [];
    let frame = 0;
    let total = 0;
    const show = () => {
      frame = 0;
      const fresh = gathered.toReversed();
      gathered = [];
      setCount(total);
      if (!paused.current) setEvents((before) => [...fresh, ...before].slice(0, eventsKept));
    };
    const gather = (event: LiveEvent) => {
      total += 1;
      gathered.push({ ...event, number: total });
      if (gathered.length > eventsKept) gathered.shift();
      if (frame === 0) frame = requestAnimationFrame(show);
    };
    void followEvents(gather, setState, leaving.signal);
    return () => {
      leaving.abort();
      cancelAnimationFrame(frame);
    };
  }, []);
  return { events, state, count };
}
