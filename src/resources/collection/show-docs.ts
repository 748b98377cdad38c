/** Pages of representations as one principal may see them (view.ts). */
import { valueAt } from '../../http/syntax/json-members.ts';
import type { LoopTurns } from '../../observe/loop-turns.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { seenBy, type View } from './view.ts';

export type ShowDocs = (docs: readonly string[]) => MaybePromise<readonly string[]>;

/**
 * Shows a page of representations as one principal may see them. If a rule depends on the owner, which representations
 * do not contain, the rows are read as well, with point reads that are started together.
 *
 * Undefined if everything is visible.
 */
export function showDocs(
  { store, turns }: { readonly store: Store; readonly turns: LoopTurns },
  table: string,
  view: View,
): ShowDocs | undefined {
  if (view.mark === '') return undefined;
  if (!view.byOwner) return (docs) => showEach(turns, docs, (doc) => seenBy(view, doc, null).doc);
  return (docs) =>
    withOwners(store, table, docs, (owners) =>
      showEach(turns, docs, (doc, index) => seenBy(view, doc, owners[index] ?? null).doc),
    );
}

type ShowDoc = (doc: string, index: number) => string;

/**
 * Shows each representation of a page, by rules and functions of the application. A long page takes several turns of the event loop; pages
 * that were read at the same time arrive in one turn, so the first representation waits for its own, too.
 */
export function showEach(
  turns: LoopTurns,
  docs: readonly string[],
  show: ShowDoc,
): MaybePromise<readonly string[]> {
  const shown: string[] = [];
  const showRest = (): MaybePromise<readonly string[]> => {
    for (const doc of docs.slice(shown.length)) {
      shown.push(show(doc, shown.length));
      const turn = shown.length < docs.length ? turns.next() : undefined;
      if (turn !== undefined) return turn.then(showRest);
    }
    return shown;
  };
  return whenKnown(turns.next(), showRest);
}

/** Calls `use` with the owner of each row; null if the row has been deleted or replaced by another. */
export function withOwners<T>(
  store: Store,
  table: string,
  docs: readonly string[],
  use: (owners: readonly (string | null)[]) => MaybePromise<T>,
): MaybePromise<T> {
  const rows = docs.map((doc) => store.read(table, valueAt(doc, ['id']) as string));
  const owners = (found: readonly (Row | undefined)[]) =>
    found.map((row, index) => ownerOf(row, docs[index]));
  if (rows.some((row) => row instanceof Promise)) {
    return Promise.all(rows).then((found) => use(owners(found)));
  }
  return use(owners(rows as readonly (Row | undefined)[]));
}

/** Since the page was read, the id may have been deleted and created anew; `createdAt` then differs. */
function ownerOf(row: Row | undefined, doc: string | undefined): string | null {
  if (row === undefined || doc === undefined) return null;
  if (row.doc === doc) return row.owner;
  return valueAt(row.doc, ['createdAt']) === valueAt(doc, ['createdAt']) ? row.owner : null;
}
