/**
 * The latest deletions of a list whose documents are kept, from the event log (§6), with their restoration (§4.7.9). A document that is
 * live again is left out.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { base, type Listed, memberPath } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { titleOf } from '../reference-titles.ts';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { Actor, type ActorValue } from './actor.tsx';
import { announce } from './notice.tsx';
import { Table } from './plain-table.tsx';
import { ProblemNote } from './problem.tsx';
import { Time } from './value.tsx';

const deletionsShown = 100;

type Deletion = {
  readonly document: Record<string, unknown>;
  readonly id: string;
  readonly actor: ActorValue | undefined;
};

export function DeletedRows({ list }: { readonly list: Listed }): JSX.Element {
  const { deletions, problem, setProblem, read } = useDeletions(list);
  const restore = async (deletion: Deletion) => {
    const reply = await send('POST', `${memberPath(list, deletion.id)}/restore`);
    setProblem(problemOf(reply));
    if (reply.status >= 400) return;
    announce('Restored', list, deletion.document);
    await read();
  };
  return (
    <>
      <p class="quiet">
        Deleted documents of {nameOf(list)}, newest first, while their events are kept.{' '}
        <a href={linkTo('list', { path: list.path })}>Back to the list</a>
      </p>
      <ProblemNote problem={problem} />
      {deletions?.length === 0 ? <p class="empty">Nothing is deleted.</p> : null}
      {deletions === undefined || deletions.length === 0 ? null : (
        <Table
          label={`Deleted ${nameOf(list)}`}
          headings={['Document', 'Deleted', 'By', { text: 'Restoration', isHidden: true }]}
        >
          {deletions.map((each) => (
            <tr key={each.id}>
              <td>{titleOf(list, each.document)}</td>
              <td>
                <Time value={String(each.document.deletedAt)} />
              </td>
              <td>
                <Actor actor={each.actor} />
              </td>
              <td>
                <button type="button" class="small" onClick={() => restore(each)}>
                  Restore <span class="hidden">{titleOf(list, each.document)}</span>
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function useDeletions(list: Listed) {
  const [deletions, setDeletions] = useState<readonly Deletion[] | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = async () => {
    const query = new URLSearchParams({ type: `${list.name}.deleted`, sort: '-id' });
    query.set('limit', String(deletionsShown));
    const reply = await send('GET', `${base.value}/events?${query}`);
    setProblem(problemOf(reply));
    const found = itemsOf(reply.json).flatMap((event) => deletionIn(event) ?? []);
    const live = await liveAmong(
      list,
      found.map(({ id }) => id),
    );
    const seen = new Set<string>();
    setDeletions(found.filter(({ id }) => !live.has(id) && !seen.has(id) && seen.add(id)));
  };
  useEffect(() => void read(), [list.path]);
  return { deletions, problem, setProblem, read };
}

function deletionIn(event: Record<string, unknown>): Deletion | undefined {
  const document = isObject(event.data) ? event.data.object : undefined;
  if (!isObject(document) || typeof document.deletedAt !== 'string') return undefined;
  const actor = isObject(event.actor) ? (event.actor as unknown as ActorValue) : undefined;
  return { document, id: String(document.id), actor };
}

async function liveAmong(list: Listed, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const query = new URLSearchParams({ fields: 'id', limit: String(ids.length) });
  query.set('id[in]', ids.join(','));
  const { json } = await send('GET', `${list.path}?${query}`);
  return new Set(itemsOf(json).map(({ id }) => String(id)));
}

function itemsOf(json: unknown): readonly Record<string, unknown>[] {
  return isObject(json) && Array.isArray(json.items) ? json.items.filter(isObject) : [];
}
