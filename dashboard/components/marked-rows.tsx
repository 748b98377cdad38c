/** Deletes the marked rows of a list at once. */
import type { JSX } from 'preact';
import type { Listed } from '../description.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';

type MarkedRowsProps = {
  readonly list: Listed;
  readonly marked: ReadonlySet<string>;
  readonly onDone: () => void;
};

/** The default of the server (`bulkDeleteIdsMax`). */
const idsPerRequest = 1000;

export function MarkedRows({ list, marked, onDone }: MarkedRowsProps): JSX.Element | null {
  if (marked.size === 0) return null;
  const remove = async (): Promise<Problem | undefined> => {
    const ids = [...marked];
    for (let at = 0; at < ids.length; at += idsPerRequest) {
      const json = { ids: ids.slice(at, at + idsPerRequest) };
      const problem = problemOf(await send('POST', `${list.path}/bulk-delete`, { json }));
      if (problem !== undefined) return problem;
    }
    onDone();
    return undefined;
  };
  return (
    <div class="marked" role="status">
      {`${marked.size} marked`}{' '}
      <ConfirmButton action="Delete" question={`Delete ${marked.size}?`} onConfirm={remove} />
    </div>
  );
}
