/**
 * The documents that a deletion takes with it (§4.7.5): those that refer to the deleted one by a reference that cascades,
 * those that refer to them, and those whose reference is removed instead. Each comes after all that depend on it, so that
 * any beginning of the list can be carried out by itself.
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import type { Collection, CollectionReference } from '../../model/collection.ts';
import { byId } from '../../model/filter.ts';
import { fieldNamed } from '../../resources/collection/view.ts';
import type { Position, RowName, Store } from '../../store/store.ts';

export type CascadeLimits = {
  /** Documents that one unit deletes or changes besides those that the request names. */
  readonly cascadeMax: number;
  /** Their octets. */
  readonly cascadeBytesMax: number;
};

/** A document to delete, or to remove the reference from, and the reference by which it was found. */
export type CascadeStep = RowName & { readonly without?: string; readonly by: Naming };

type Naming = { readonly field: string; readonly id: string };

/** False if the document was changed since it was found, so that it need not follow any more. */
export function stillNames(doc: string, { field, id }: Naming): boolean {
  return valueAt(doc, [field]) === id;
}

export type Cascade =
  | { readonly outcome: 'found'; readonly steps: readonly CascadeStep[]; readonly isWhole: boolean }
  /** The document is part of a cycle of references, and none of it can be deleted first. */
  | { readonly outcome: 'cycle'; readonly at: RowName };

/** A unit takes up to the limit of them. */
export class CascadeExceeded extends Error {
  override readonly name = 'CascadeExceeded';
}

/** True if a deletion in the collection may take other documents with it. */
export function hasCascade({ dependants }: Pick<Collection, 'dependants'>): boolean {
  return dependants.some(isCascading);
}

/** True for a reference whose documents follow a deletion in `to`. */
export function isCascaded(to: Collection | undefined, from: string, field: string): boolean {
  return (
    to?.dependants.some((each) => each.from === from && each.field === field && isCascading(each)) === true
  );
}

function isCascading({ onDelete }: Pick<CollectionReference, 'onDelete'>): boolean {
  return onDelete !== 'restrict';
}

/** A changed document is in its unit three times: as it becomes, and in the event as it is and as it was. */
const changedFactor = 3;

const rowsPerRead = 100;
const bytesPerRead = 1024 * 1024;

/** A document on the way down, with those that refer to it. */
type Frame = {
  readonly row: RowName;
  /** Absent for the document that the walk begins with. */
  readonly by?: Naming | undefined;
  readonly isNamed: boolean;
  readonly octets: number;
  readonly children: AsyncIterator<Child>;
};

type Child = CascadeStep & { readonly octets: number };

/**
 * Walks down from each of the documents, and lists the deepest first.
 * @param named the documents that are deleted anyway, which are not listed
 */
export async function collectCascade(
  store: Pick<Store, 'plan'>,
  collections: (name: string) => Collection | undefined,
  named: readonly RowName[],
  { cascadeMax, cascadeBytesMax }: CascadeLimits,
): Promise<Cascade> {
  const steps: CascadeStep[] = [];
  const isNamed = new Set(named.map(keyOf));
  const isDone = new Set<string>();
  let octets = 0;
  const isFull = (more: number): boolean =>
    steps.length >= cascadeMax || (steps.length > 0 && octets + more > cascadeBytesMax);
  const frameOf = (row: RowName, size: number, by?: Naming): Frame => ({
    ...{ row, by, octets: size, isNamed: isNamed.has(keyOf(row)) },
    children: childrenOf(store, collections, row),
  });
  for (const root of named) {
    if (isDone.has(keyOf(root))) continue;
    const stack = [frameOf(root, 0)];
    const isAbove = new Set([keyOf(root)]);
    for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
      const next = await frame.children.next();
      if (next.done !== true) {
        const { without, by, octets: size, ...row } = next.value;
        const key = keyOf(row);
        if (without !== undefined) {
          // Deleted itself, and only after this row: neither can be first.
          if (isAbove.has(key) && key !== keyOf(frame.row)) return { outcome: 'cycle', at: row };
          const changed = size * changedFactor;
          if (isFull(changed)) return { outcome: 'found', steps, isWhole: false };
          steps.push({ ...row, by, without });
          octets += changed;
        } else if (isAbove.has(key)) {
          if (key !== keyOf(frame.row)) return { outcome: 'cycle', at: row };
        } else if (!isDone.has(key)) {
          if (stack.length > cascadeMax) return { outcome: 'found', steps, isWhole: false };
          stack.push(frameOf(row, size, by));
          isAbove.add(key);
        }
        continue;
      }
      if (!frame.isNamed && frame.by !== undefined) {
        if (isFull(frame.octets)) return { outcome: 'found', steps, isWhole: false };
        steps.push({ ...frame.row, by: frame.by });
        octets += frame.octets;
      }
      isDone.add(keyOf(frame.row));
      isAbove.delete(keyOf(frame.row));
      stack.pop();
    }
  }
  return { outcome: 'found', steps, isWhole: true };
}

/** The steps without changes of documents that are deleted too. */
export function withoutNeedless(
  steps: readonly CascadeStep[],
  named: readonly RowName[],
): readonly CascadeStep[] {
  const deleted = new Set([...named, ...steps.filter(({ without }) => without === undefined)].map(keyOf));
  return steps.filter((step) => step.without === undefined || !deleted.has(keyOf(step)));
}

async function* childrenOf(
  store: Pick<Store, 'plan'>,
  collections: (name: string) => Collection | undefined,
  { table, id }: RowName,
): AsyncGenerator<Child, undefined> {
  for (const { from, field: name, onDelete } of collections(table)?.dependants ?? []) {
    const collection = collections(from);
    if (onDelete === 'restrict' || collection === undefined) continue;
    const plan = store.plan({
      ...{ table: from, filter: { op: 'eq', field: fieldNamed(collection, name), value: id } },
      ...{ sort: byId, limit: rowsPerRead, bytesMax: bytesPerRead },
    });
    for (let position: Position = { from: 'start' }; ; ) {
      const page = await plan.page(position);
      for (const doc of page.docs) {
        const row = { table: from, id: valueAt(doc, ['id']) as string };
        const child = { ...row, by: { field: name, id }, octets: Buffer.byteLength(doc) };
        yield onDelete === 'setNull' ? { ...child, without: name } : child;
      }
      if (!page.more || page.last === null) break;
      position = { from: 'after', key: page.last };
    }
  }
  return undefined;
}

function keyOf({ table, id }: RowName): string {
  return `${table} ${id}`;
}
