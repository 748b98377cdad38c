/**
 * A change that came second (412): the version from which it was made, the version now and who made that, and the change itself, of which
 * the person takes each member or leaves it.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Conflict } from '../change-document.ts';
import type { Listed } from '../description.ts';
import { labelOf } from '../presentation.ts';
import { Actor } from './actor.tsx';
import { differencesOf } from './form-values.ts';
import { MemberValue } from './member-value.tsx';
import { Time } from './value.tsx';

type ConflictProps = {
  readonly list: Listed;
  readonly conflict: Conflict;
  /** Gets the members of `mine` that were chosen; none: the version now stays. */
  readonly onMerge: (chosen: Record<string, unknown>) => void;
};

export function ConflictView({ list, conflict, onMerge }: ConflictProps): JSX.Element {
  const { before, mine, theirs, last } = conflict;
  const made = new Set(['updatedAt', 'createdAt', 'id']);
  const names = [...new Set([...Object.keys(mine), ...differencesOf(before, theirs.document)])].filter(
    (name) => !made.has(name),
  );
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const chosen = Object.fromEntries(Object.entries(mine).filter(([name]) => !left.has(name)));
  const choose = (name: string, isMine: boolean) => {
    const next = new Set(left);
    if (isMine) next.delete(name);
    else next.add(name);
    setLeft(next);
  };
  const at = last?.at ?? theirs.document.updatedAt;
  return (
    <div class="panel conflict" role="alert">
      <h2>Somebody changed this while you edited it</h2>
      <p>
        Your change was not applied (412). The version now was made{' '}
        {typeof at === 'string' ? <Time value={at} /> : null}
        {last?.actor === undefined ? null : ' '}
        <Actor actor={last?.actor} />. For each member that you changed, choose a value.
      </p>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Member</th>
              <th>Before</th>
              <th>Theirs, now</th>
              <th>Mine</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <ConflictRow
                key={name}
                {...{ list, conflict, name }}
                isMine={name in mine && !left.has(name)}
                onChoose={choose}
              />
            ))}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <button
          type="button"
          class="primary"
          disabled={Object.keys(chosen).length === 0}
          onClick={() => onMerge(chosen)}
        >
          Save what I chose
        </button>
        <button type="button" onClick={() => onMerge({})}>
          Keep theirs
        </button>
      </div>
    </div>
  );
}

type ConflictRowProps = Pick<ConflictProps, 'list' | 'conflict'> & {
  readonly name: string;
  readonly isMine: boolean;
  readonly onChoose: (name: string, isMine: boolean) => void;
};

function ConflictRow({ list, conflict, name, isMine, onChoose }: ConflictRowProps): JSX.Element {
  const { before, mine, theirs } = conflict;
  const label = labelOf(list.schema, name);
  const isOpen = name in mine;
  const cell = (value: unknown, document = theirs.document) => (
    <MemberValue {...{ list, name, value, document }} isCell isText />
  );
  const choice = (of: 'mine' | 'theirs', value: unknown) => (
    <label>
      <input
        type="radio"
        name={`choice-${name}`}
        aria-label={`${label}: ${of}`}
        checked={isMine === (of === 'mine')}
        onChange={() => onChoose(name, of === 'mine')}
      />{' '}
      {cell(value)}
    </label>
  );
  return (
    <tr>
      <th scope="row">{label}</th>
      <td>{cell(before[name], before)}</td>
      <td class={isMine ? undefined : 'after'}>
        {isOpen ? choice('theirs', theirs.document[name]) : cell(theirs.document[name])}
      </td>
      <td class={isMine ? 'after' : undefined}>{isOpen ? choice('mine', mine[name]) : null}</td>
    </tr>
  );
}
