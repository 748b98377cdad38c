/** The sessions of an account (§5.4.6), and their end. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Session } from '../api-types.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { Table } from './plain-table.tsx';
import { ProblemNote } from './problem.tsx';
import { Time } from './value.tsx';

/** @param props.account the path of the account, such as `/api/v1/users/usr_...` */
export function Sessions({ account }: { readonly account: string }): JSX.Element {
  const { sessions, problem, read } = useSessions(account);
  const end = async (session?: string): Promise<Problem | undefined> => {
    const json = session === undefined ? {} : { session };
    const refused = problemOf(await send('POST', `${account}/sessions/end`, { json }));
    await read();
    return refused;
  };
  const others = sessions.filter(({ current }) => !current);
  return (
    <section aria-labelledby="sessions-title">
      <h2 id="sessions-title">Sessions</h2>
      <ProblemNote problem={problem} />
      {sessions.length === 0 && problem === undefined ? <p class="quiet">There are no sessions.</p> : null}
      {sessions.length === 0 ? null : (
        <Table
          label="Table of sessions"
          headings={['Session', 'Login', 'Last use', 'Ends', { text: 'End', isHidden: true }]}
        >
          {sessions.map((each) => (
            <SessionRow key={each.id} session={each} onEnd={end} />
          ))}
        </Table>
      )}
      {others.length > 1 ? (
        <p>
          <ConfirmButton action="End all others" question="End them?" onConfirm={() => end()} />
        </p>
      ) : null}
    </section>
  );
}

type SessionRowProps = {
  readonly session: Session;
  readonly onEnd: (session: string) => Promise<Problem | undefined>;
};

function SessionRow({ session, onEnd }: SessionRowProps): JSX.Element {
  const { id, createdAt, seenAt, endsAt, cookie, current } = session;
  return (
    <tr>
      <td>
        <code>{id}</code> <span class="badge">{cookie ? 'browser' : 'token'}</span>
      </td>
      <td>
        <Time value={createdAt} />
      </td>
      <td>
        <Time value={seenAt} />
      </td>
      <td>
        <Time value={endsAt} />
      </td>
      <td>
        {current ? (
          'this session'
        ) : (
          <button type="button" class="small danger" onClick={() => onEnd(id)}>
            End <span class="hidden">{id}</span>
          </button>
        )}
      </td>
    </tr>
  );
}

function useSessions(account: string) {
  const [sessions, setSessions] = useState<readonly Session[]>([]);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = async () => {
    const reply = await send('GET', `${account}/sessions`);
    setProblem(problemOf(reply));
    const { json } = reply;
    setSessions(isObject(json) && Array.isArray(json.items) ? (json.items as readonly Session[]) : []);
  };
  useEffect(() => void read(), [account]);
  return { sessions, problem, read };
}
