/** Pages of representations as one principal may see them (view.ts). */
import { valueAt } from '../../http/syntax/json-members.ts';
import type { Field } from '../../model/field.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import {
  type MaybePromise,
  type Page,
  type Row,
  type RowHead,
  type Store,
  whenKnown,
} from '../../store/store.ts';
import { type Seen, seenBy, tagMember, tagOfSeen, type View } from './view.ts';

export type SeenDocs = {
  readonly docs: readonly string[];
  /** The entity tags of the documents, as members; undefined for what has none. Absent: they were not asked for. */
  readonly tags?: readonly (string | undefined)[];
};

/** @param heads of the rows of the documents, in their order, if the entity tags are asked for */
export type ShowDocs = (
  docs: readonly string[],
  heads: readonly RowHead[] | undefined,
) => MaybePromise<SeenDocs>;

/**
 * Shows a page of representations as one principal may see them. If a rule depends on the owner, which representations
 * do not contain, the rows are read as well, with point reads that are started together, unless their heads are given.
 */
export function showDocs(
  { store, turns }: { readonly store: Store; readonly turns: LoopTurns },
  table: string,
  view: View,
  tag: Field,
): ShowDocs {
  const show = (
    docs: readonly string[],
    heads: readonly RowHead[] | undefined,
    owners: readonly (string | null)[],
  ): MaybePromise<SeenDocs> => {
    if (view.mark === '') return { docs, ...tagsOf(tag, heads, []) };
    const seen = showEach(turns, docs, (doc, index) => seenBy(view, doc, owners[index] ?? null));
    return whenKnown(seen, (all) => ({ docs: all.map(({ doc }) => doc), ...tagsOf(tag, heads, all) }));
  };
  return (docs, heads) => {
    if (!view.byOwner || heads !== undefined)
      return show(docs, heads, heads?.map(({ owner }) => owner) ?? []);
    return withOwners(store, table, docs, (owners) => show(docs, heads, owners));
  };
}

/** Shows a page, with the entity tags if the heads of its rows were read. @param show absent: its documents are served as they are stored */
export function showPage(
  { tag }: { readonly tag?: Field | undefined },
  show: ShowDocs | undefined,
  { docs, heads }: Page,
): MaybePromise<SeenDocs> {
  if (show !== undefined) return show(docs, heads);
  return tag === undefined ? { docs } : { docs, ...tagsOf(tag, heads, []) };
}

/** @param seen the representations; empty: as they are stored */
function tagsOf(
  tag: Field,
  heads: readonly RowHead[] | undefined,
  seen: readonly Seen[],
): Pick<SeenDocs, 'tags'> {
  if (heads === undefined) return {};
  return { tags: heads.map(({ rev }, at) => tagMember(tag, tagOfSeen(rev, seen[at]?.mark ?? ''))) };
}

/**
 * Shows each representation of a page, by rules and functions of the application. A long page takes several turns of the event loop, before
 * any other is begun; pages that were read at the same time arrive in one turn, so the first representation waits for its own, too.
 */
export function showEach<T>(
  turns: LoopTurns,
  docs: readonly string[],
  show: (doc: string, index: number) => T,
): MaybePromise<readonly T[]> {
  const shown: T[] = [];
  const showRest = (): MaybePromise<readonly T[]> => {
    for (const doc of docs.slice(shown.length)) {
      shown.push(show(doc, shown.length));
      const turn = shown.length < docs.length ? turns.nextOfBegun() : undefined;
      if (turn !== undefined) return turn.then(showRest);
    }
    return shown;
  };
  return whenKnown(turns.nextOfBegun(), showRest);
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
