/** The inbox: what senders posted, newest first, with filters; and the replay of all that a filter selects, counted before. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ReceivedMessage, Sender } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf } from '../send.ts';
import { liveMs, type Page, queryOf, useApi, useRead } from './api.ts';
import { Ago } from './clock.tsx';
import { Pager } from './endpoints-page.tsx';
import { failureKind, ReceivedBadge } from './received.tsx';

const pageSize = 25;

/** Dead letters have failed, and no further attempt is due. */
type Filter = { readonly sender?: string | undefined; readonly state: keyof typeof states };

const states = {
  any: {},
  dead: { status: 'failed', dueAt: null },
  failed: { status: 'failed' },
  pending: { status: 'pending' },
  processed: { status: 'processed' },
} as const;

const stateNames: readonly (readonly [state: keyof typeof states, text: string])[] = [
  ['any', 'any'],
  ['dead', 'Dead letters'],
  ['failed', 'Failed'],
  ['pending', 'Pending'],
  ['processed', 'Processed'],
];

export function InboxPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const [filter, setFilter] = useState<Filter>({
    sender: query.get('sender') ?? undefined,
    state: query.get('state') === 'dead' ? 'dead' : 'any',
  });
  const [cursor, setCursor] = useState('');
  const { status, ...rest }: { readonly status?: string; readonly dueAt?: null } = states[filter.state];
  const path = `/received${queryOf({
    sender: filter.sender,
    status,
    'dueAt[null]': 'dueAt' in rest ? 'true' : undefined,
    sort: '-receivedAt',
    limit: pageSize,
    cursor,
  })}`;
  const page = useRead<Page<ReceivedMessage>>(path, cursor === '' ? { everyMs: liveMs } : {});
  const change = (changes: Partial<Filter>) => {
    setCursor('');
    setFilter({ ...filter, ...changes });
  };
  return (
    <section aria-labelledby="page-title">
      <header class="head">
        <h1 id="page-title">Inbox</h1>
      </header>
      <InboxFilters filter={filter} onChange={change} />
      <ReplayAll key={JSON.stringify(filter)} filter={filter} onDone={page.read} />
      <ProblemNote problem={page.problem} />
      <Messages items={page.value?.items} onReplayed={page.read} />
      <Pager page={page.value} cursor={cursor} onCursor={setCursor} />
    </section>
  );
}

type InboxFiltersProps = { readonly filter: Filter; readonly onChange: (changes: Partial<Filter>) => void };

function InboxFilters({ filter, onChange }: InboxFiltersProps): JSX.Element {
  const senders = useRead<Page<Sender>>('/senders?limit=1000').value?.items ?? [];
  const inputOf = (event: Event) => (event.currentTarget as HTMLSelectElement).value;
  return (
    <fieldset class="filters">
      <legend class="hidden">Filter messages</legend>
      <label>
        Sender{' '}
        <select
          value={filter.sender ?? ''}
          onChange={(event) => onChange({ sender: inputOf(event) || undefined })}
        >
          <option value="">any</option>
          {senders.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        State{' '}
        <select
          value={filter.state}
          onChange={(event) => onChange({ state: inputOf(event) as Filter['state'] })}
        >
          {stateNames.map(([state, text]) => (
            <option key={state} value={state}>
              {text}
            </option>
          ))}
        </select>
      </label>
    </fieldset>
  );
}

type ReplayAllProps = { readonly filter: Filter; readonly onDone: () => Promise<void> };

function ReplayAll({ filter, onDone }: ReplayAllProps): JSX.Element {
  const api = useApi();
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [counted, setCounted] = useState<number | undefined>(undefined);
  const [done, setDone] = useState('');
  const selected = {
    ...(filter.sender === undefined ? {} : { sender: filter.sender }),
    ...states[filter.state],
  };
  const replay = async (dryRun: boolean) => {
    const reply = await api.send('POST', '/received/replay', { json: { filter: selected, dryRun } });
    setProblem(problemOf(reply));
    if (reply.status >= 300 || !isObject(reply.json)) return;
    const { replayed, skipped, more } = reply.json;
    setCounted(dryRun ? Number(replayed) : undefined);
    const rest = more === true ? ' More are left: replay again.' : '';
    setDone(dryRun ? '' : `Replayed ${replayed}, skipped ${skipped}.${rest}`);
    if (!dryRun) await onDone();
  };
  return (
    <div class="resend-all">
      {counted === undefined ? (
        <button type="button" onClick={() => replay(true)}>
          Replay all of these…
        </button>
      ) : null}{' '}
      <span role="status">
        {counted === undefined
          ? done
          : `${counted} ${counted === 1 ? 'message' : 'messages'} would be replayed. `}
      </span>
      {counted === undefined || counted === 0 ? null : (
        <button type="button" class="primary" onClick={() => replay(false)}>
          {`Replay ${counted}`}
        </button>
      )}
      {counted === undefined ? null : (
        <button type="button" onClick={() => setCounted(undefined)}>
          Cancel
        </button>
      )}
      <ProblemNote problem={problem} />
    </div>
  );
}

type MessagesProps = {
  readonly items: readonly ReceivedMessage[] | undefined;
  readonly onReplayed: () => Promise<void>;
};

function Messages({ items, onReplayed }: MessagesProps): JSX.Element {
  if (items === undefined) return <p class="loading">Loading…</p>;
  if (items.length === 0) return <p class="empty">No messages match.</p>;
  return (
    <section class="scroll" tabIndex={0} aria-label="Table of messages">
      <table>
        <thead>
          <tr>
            <th>Message</th>
            <th>Sender</th>
            <th>State</th>
            <th>Attempts</th>
            <th>Octets</th>
            <th>Received</th>
            <th>Last error</th>
          </tr>
        </thead>
        <tbody>
          {items.map((message) => (
            <tr key={message.id}>
              <td>
                <a href={linkTo('message', { id: message.id })}>{message.type ?? message.dedupeKey}</a>
              </td>
              <td>{message.sender}</td>
              <td>
                <ReceivedBadge message={message} />
              </td>
              <td class="number">{message.attempts}</td>
              <td class="number">{message.contentLength.toLocaleString('en')}</td>
              <td>
                <Ago time={message.receivedAt} />
              </td>
              <td>
                {message.lastError === null ? (
                  <span class="absent">–</span>
                ) : (
                  <Failed {...{ message, onReplayed }} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

type FailedProps = { readonly message: ReceivedMessage; readonly onReplayed: () => Promise<void> };

/** The kind of the last failure, and the replay of a dead letter; the page of the message has the failure in words. */
function Failed({ message, onReplayed }: FailedProps): JSX.Element {
  const api = useApi();
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const { id, lastError, status, dueAt } = message;
  const replay = async () => {
    setProblem(problemOf(await api.send('POST', `/received/${encodeURIComponent(id)}/replay`)));
    await onReplayed();
  };
  return (
    <>
      {failureKind(lastError ?? '')}{' '}
      {status === 'failed' && dueAt === null ? (
        <button type="button" class="small" onClick={replay}>
          Replay
        </button>
      ) : null}
      <ProblemNote problem={problem} />
    </>
  );
}
