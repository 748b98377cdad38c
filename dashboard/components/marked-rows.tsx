/** Deletes the marked rows of a list at once. */
import type { JSX } from 'preact';
import type { Members } from '../change-document.ts';
import type { Listed } from '../description.ts';
import { idOf } from '../reference-titles.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { announceDeletion } from './notice.tsx';

type MarkedRowsProps = {
  readonly list: Listed;
  readonly marked: ReadonlySet<string>;
  /** The rows that the list shows. */
  readonly items: readonly Members[];
  readonly onDone: () => void;
};

/** The default of the server (`bulkDeleteIdsMax`). */
const idsPerRequest = 1000;

export function MarkedRows({ list, marked, items, onDone }: MarkedRowsProps): JSX.Element | null {
  if (marked.size === 0) return null;
  const remove = async (): Promise<Problem | undefined> => {
    const ids = [...marked];
    for (let at = 0; at < ids.length; at += idsPerRequest) {
      const json = { ids: ids.slice(at, at + idsPerRequest) };
      const problem = problemOf(await send('POST', `${list.path}/bulk-delete`, { json }));
      if (problem !== undefined) return problem;
    }
    announceDeletion(
      list,
      items.filter((each) => marked.has(idOf(list, each))),
    );
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
