/**
 * A page of representations as one principal sees them. Where a rule looks at the owner, which representations do not tell, the rows are
 * asked for it: point reads, made in one turn.
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { seenBy, type View } from './view.ts';

/** How to show the rows of one table. */
export type ShowDocs = (docs: readonly string[]) => MaybePromise<readonly string[]>;

/** Undefined where everything is shown. */
export function showDocs(store: Store, table: string, view: View): ShowDocs | undefined {
  if (view.mark === '') return undefined;
  if (!view.byOwner) return (docs) => docs.map((doc) => seenBy(view, doc, null).doc);
  return (docs) =>
    withOwners(store, table, docs, (owners) =>
      docs.map((doc, index) => seenBy(view, doc, owners[index] ?? null).doc),
    );
}

/** Calls back with the owner of each row; null where the row is another one meanwhile, or gone. */
export function withOwners<T>(
  store: Store,
  table: string,
  docs: readonly string[],
  use: (owners: readonly (string | null)[]) => T,
): MaybePromise<T> {
  const rows = docs.map((doc) => store.read(table, valueAt(doc, ['id']) as string));
  const owners = (found: readonly (Row | undefined)[]) =>
    found.map((row, index) => ownerOf(row, docs[index]));
  if (rows.some((row) => row instanceof Promise)) {
    return Promise.all(rows).then((found) => use(owners(found)));
  }
  return use(owners(rows as readonly (Row | undefined)[]));
}

/** Somebody else may have made a resource of the same id since the page was read; its times tell. */
function ownerOf(row: Row | undefined, doc: string | undefined): string | null {
  if (row === undefined || doc === undefined) return null;
  if (row.doc === doc) return row.owner;
  return valueAt(row.doc, ['createdAt']) === valueAt(doc, ['createdAt']) ? row.owner : null;
}
