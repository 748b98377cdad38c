/** The versions of a document (§4.15), newest first: who made each, when, and the changed members with their values before and after. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Version } from '../api-types.ts';
import type { Listed } from '../description.ts';
import { labelOf } from '../presentation.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { Actor } from './actor.tsx';
import { MemberValue } from './member-value.tsx';
import { ProblemNote } from './problem.tsx';
import { Time } from './value.tsx';

type HistoryProps = { readonly list: Listed; readonly target: string; readonly tag: string | null };

/** @param props.tag of the version that is shown: another one has one change more */
export function History({ list, target, tag }: HistoryProps): JSX.Element {
  const { versions, cursor, problem, read } = useVersions(target, tag);
  return (
    <section aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      <ProblemNote problem={problem} />
      {versions?.length === 0 ? <p class="empty">The events of this document are no longer kept.</p> : null}
      <ol class="history">
        {versions?.map((version) => (
          <li key={version.id}>
            <p>
              <strong>{version.change}</strong> <Time value={version.at} /> <Actor actor={version.actor} />
              {version.requestId === undefined ? null : (
                <span class="quiet"> request {version.requestId}</span>
              )}
            </p>
            <Changes list={list} version={version} />
          </li>
        ))}
      </ol>
      {cursor === null ? null : (
        <button type="button" onClick={() => read(cursor)}>
          Show older versions
        </button>
      )}
    </section>
  );
}

type ChangesProps = { readonly list: Listed; readonly version: Version };

/** A creation has nothing before. */
function Changes({ list, version: { change, changes } }: ChangesProps): JSX.Element | null {
  const isNew = change === 'created';
  const entries = Object.entries(changes);
  if (entries.length === 0) return null;
  const cell = (name: string, value: unknown) => <MemberValue {...{ list, name, value }} isCell />;
  return (
    <div class="scroll">
      <table class="changes">
        <thead>
          <tr>
            <th>Member</th>
            {isNew ? null : <th>Before</th>}
            <th>{isNew ? 'Value' : 'After'}</th>
          </tr>
        </thead>
        <tbody>
          {entries.map(([name, { before, after }]) => (
            <tr key={name}>
              <td>{labelOf(list.schema, name)}</td>
              {isNew ? null : <td class="before">{cell(name, before)}</td>}
              <td class={isNew ? undefined : 'after'}>{cell(name, after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function useVersions(target: string, tag: string | null) {
  const [versions, setVersions] = useState<readonly Version[] | undefined>(undefined);
  const [cursor, setCursor] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = async (after?: string) => {
    const query = after === undefined ? '' : `&cursor=${encodeURIComponent(after)}`;
    const reply = await send('GET', `${target}/history?limit=20${query}`);
    setProblem(problemOf(reply));
    if (!isObject(reply.json) || !Array.isArray(reply.json.items)) return;
    const items = reply.json.items as readonly Version[];
    setVersions((before) => (after === undefined ? items : [...(before ?? []), ...items]));
    setCursor(typeof reply.json.nextCursor === 'string' ? reply.json.nextCursor : null);
  };
  useEffect(() => void read(), [target, tag]);
  return { versions, cursor, problem, read };
}
