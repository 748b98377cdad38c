/**
 * Resends every delivery that a filter selects: the number first, then one request each, with its progress. It reads pages by keyset and
 * keeps the newest delivery of the count as its bound, so that new deliveries do not prolong it.
 */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Delivery } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { type Problem, problemOf } from '../send.ts';
import { type Api, type DeliveryFilter, type Page, queryOf, useApi } from './api.ts';

const pageSize = 100;
/** Requests under way at once: the server sends to one endpoint by its own limits anyway. */
const atOnce = 4;

type State =
  | { readonly is: 'idle' }
  | { readonly is: 'counted'; readonly count: number; readonly until: string }
  | {
      readonly is: 'running' | 'done';
      readonly count: number;
      readonly sent: number;
      readonly refused: number;
    };

type ResendAllProps = { readonly filter: DeliveryFilter; readonly onDone: () => Promise<void> };

export function ResendAll({ filter, onDone }: ResendAllProps): JSX.Element {
  const api = useApi();
  const [state, setState] = useState<State>({ is: 'idle' });
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const isStopped = useRef(false);
  const count = async () => {
    const until = new Date().toISOString();
    const path = `/deliveries${queryOf({ ...bounded(filter, until), limit: 1 })}`;
    const reply = await api.send('GET', path, { headers: { Prefer: 'count=exact' } });
    setProblem(problemOf(reply));
    if (reply.status < 300) {
      setState({ is: 'counted', count: Number(reply.headers.get('X-Total-Count')), until });
    }
  };
  const start = async (total: number, until: string) => {
    isStopped.current = false;
    let [sent, refused] = [0, 0];
    const note = (found: Problem | undefined) => {
      if (found === undefined) sent += 1;
      else refused += 1;
      if (found !== undefined) setProblem(found);
      setState({ is: 'running', count: total, sent, refused });
    };
    setProblem(undefined);
    setState({ is: 'running', count: total, sent, refused });
    await resendEach(api, bounded(filter, until), note, () => isStopped.current);
    setState({ is: 'done', count: total, sent, refused });
    await onDone();
  };
  return (
    <div class="resend-all">
      {state.is === 'idle' || state.is === 'done' ? (
        <button type="button" onClick={count}>
          Resend all of these…
        </button>
      ) : null}{' '}
      <span role="status">
        <StateText state={state} />
      </span>
      {state.is === 'counted' && state.count > 0 ? (
        <>
          {' '}
          <button type="button" class="primary" onClick={() => start(state.count, state.until)}>
            {`Resend ${state.count.toLocaleString('en')}`}
          </button>
        </>
      ) : null}
      {state.is === 'counted' ? (
        <button type="button" onClick={() => setState({ is: 'idle' })}>
          Cancel
        </button>
      ) : null}
      {state.is === 'running' ? (
        <button
          type="button"
          onClick={() => {
            isStopped.current = true;
          }}
        >
          Stop
        </button>
      ) : null}
      <ProblemNote problem={problem} />
    </div>
  );
}

function StateText({ state }: { readonly state: State }): JSX.Element | null {
  if (state.is === 'idle') return null;
  const total = state.count.toLocaleString('en');
  if (state.is === 'counted')
    return <>{`${total} ${state.count === 1 ? 'delivery' : 'deliveries'} would be sent again. `}</>;
  const refused = state.refused === 0 ? '' : `, ${state.refused} refused`;
  if (state.is === 'done') return <>{`Resent ${state.sent} of ${total}${refused}.`}</>;
  return (
    <>
      <progress max={state.count} value={state.sent + state.refused} aria-label="Resending" />{' '}
      {`${state.sent} of ${total}${refused} `}
    </>
  );
}

function bounded(filter: DeliveryFilter, until: string): DeliveryFilter {
  const own = filter['createdAt[lte]'];
  return { ...filter, 'createdAt[lte]': own !== undefined && own < until ? own : until };
}

/** Oldest first: what a receiver missed first comes first. All ids are read before the first is sent, because a resend changes its state. */
async function resendEach(
  api: Api,
  filter: DeliveryFilter,
  note: (problem: Problem | undefined) => void,
  isStopped: () => boolean,
): Promise<void> {
  const ids: string[] = [];
  for (let cursor: string | undefined; !isStopped(); ) {
    const query = queryOf({ ...filter, sort: 'createdAt', limit: pageSize, fields: 'id', cursor });
    const reply = await api.send('GET', `/deliveries${query}`);
    const found = problemOf(reply);
    if (found !== undefined) return note(found);
    const page = reply.json as Page<Pick<Delivery, 'id'>>;
    ids.push(...page.items.map(({ id }) => id));
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  const work = async () => {
    for (let id = ids.shift(); id !== undefined && !isStopped(); id = ids.shift()) {
      note(problemOf(await api.send('POST', `/deliveries/${id}/resend`)));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
