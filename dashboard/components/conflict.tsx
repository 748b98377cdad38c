/** A change that came second (412): both versions side by side, of which the person chooses one. */
import type { JSX } from 'preact';
import { differencesOf, withoutNulls } from './form-values.ts';
import { Value } from './value.tsx';

export type Version = { readonly document: Record<string, unknown>; readonly tag: string | null };

export type Conflict = { readonly mine: Record<string, unknown>; readonly theirs: Version };

type ConflictProps = {
  readonly conflict: Conflict;
  readonly onMine: () => void;
  readonly onTheirs: () => void;
};

export function ConflictView({ conflict, onMine, onTheirs }: ConflictProps): JSX.Element {
  const { mine, theirs } = conflict;
  const merged: Record<string, unknown> = { ...theirs.document, ...mine };
  const names = differencesOf(withoutNulls(merged), theirs.document);
  return (
    <div class="panel conflict" role="alert">
      <h2>Somebody changed this while you edited it</h2>
      <p>Your change was not applied (412). Members that differ:</p>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Member</th>
              <th>Your version</th>
              <th>The version now</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td>{name}</td>
                <td>
                  <Value value={merged[name]} />
                </td>
                <td>
                  <Value value={theirs.document[name]} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <button type="button" class="primary" onClick={onMine}>
          Apply my change to the version now
        </button>
        <button type="button" onClick={onTheirs}>
          Keep the version now
        </button>
      </div>
    </div>
  );
}
