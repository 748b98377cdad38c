/**
 * The documents that a deletion takes with it (§4.7.5): those that refer to the deleted one by a reference that cascades,
 * those that refer to them, and those whose reference is removed instead. Each comes after all that depend on it, so that
 * any beginning of the list can be carried out by itself.
 */
import type { ResourceRefused } from '../../config/senders.ts';
import type { Problem } from '../../http/problem.ts';
import { valueAt } from '../../http/syntax/json-members.ts';
import { type Collection, type CollectionReference, fieldNamed } from '../../model/collection.ts';
import { byId } from '../../model/filter.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { pagesOf } from '../../store/in-batches.ts';
import type { MaybePromise, RowName, Store } from '../../store/store.ts';
import { refuseCall } from '../refusal.ts';

type CascadeLimits = {
  /** Documents that one unit deletes or changes besides those that the request names. */
  readonly cascadeMax: number;
  /** Their octets. */
  readonly cascadeBytesMax: number;
};

/** A document to delete, or to remove the reference from, and the reference by which it was found. */
export type CascadeStep = RowName & { readonly without?: string; readonly by: Naming };

export type Naming = { readonly field: string; readonly id: string };

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

  constructor(cascadeMax: number) {
    super(
      `more than ${cascadeMax} resources (COMITY_CASCADE_MAX), or longer ones than one unit takes, depend on it`,
    );
  }
}

/** Each document on the way down keeps a page of those that refer to it, so a walk goes no deeper in several units than in one. */
export function tooDeep(cascadeMax: number): Problem {
  const message = `resources depend on it through more than ${cascadeMax} references in a row (COMITY_CASCADE_MAX): delete the last ones of the chain first, or raise the setting`;
  return { code: 'dependants_exist', message };
}

export function cycleAt({ table, id }: RowName): ResourceRefused {
  const message = `${table} ${JSON.stringify(id)} and others refer to each other: remove one of the references first`;
  return refuseCall('dependants_exist', message);
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
 * Walks down from each of the documents, and lists the deepest first, up to the limits of a unit.
 * @param named the documents that are deleted anyway, which are not listed
 */
export async function collectCascade(
  walk: CascadeWalk,
  named: readonly RowName[],
  { cascadeMax, cascadeBytesMax }: CascadeLimits,
): Promise<Cascade> {
  const steps: CascadeStep[] = [];
  let octets = 0;
  for await (const found of cascadeSteps({ ...walk, depthMax: cascadeMax }, named)) {
    if ('cycle' in found) return { outcome: 'cycle', at: found.cycle };
    const isFull =
      steps.length >= cascadeMax || (steps.length > 0 && octets + found.octets > cascadeBytesMax);
    if (found.step === undefined || isFull) return { outcome: 'found', steps, isWhole: false };
    steps.push(found.step);
    octets += found.octets;
  }
  return { outcome: 'found', steps, isWhole: true };
}

/** Where documents are read, in turns of the event loop. */
type Reading = { readonly store: Pick<Store, 'plan'>; readonly turns: LoopTurns };

export type CascadeWalk = Reading & {
  readonly collectionOf: (name: string) => Collection | undefined;
  /**
   * True if the document, which a reference restricts to, is deleted anyway: it is then listed before what it refers to. Absent: none is.
   */
  readonly isDoomed?: ((row: RowName, doc: string) => MaybePromise<boolean>) | undefined;
  /** True for a document that is listed again if several references lead to it. Absent: none is. */
  readonly isForgotten?: (table: string) => boolean;
};

/** A step with the octets that it takes of a unit. Without one: it is too deep. */
type FoundStep =
  | { readonly step: CascadeStep | undefined; readonly octets: number }
  | { readonly cycle: RowName };

export async function* cascadeSteps(
  walk: CascadeWalk & { readonly depthMax: number },
  named: readonly RowName[],
): AsyncGenerator<FoundStep, undefined> {
  const isNamed = new Set(named.map(keyOf));
  const isDone = new Set<string>();
  const frameOf = (row: RowName, size: number, by?: Naming): Frame => ({
    ...{ row, by, octets: size, isNamed: isNamed.has(keyOf(row)), children: childrenOf(walk, row) },
  });
  for (const root of named) {
    if (isDone.has(keyOf(root))) continue;
    const stack = [frameOf(root, 0)];
    const isAbove = new Set([keyOf(root)]);
    for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
      const next = await frame.children.next();
      if (next.done !== true) {
        const { without, by, octets, ...row } = next.value;
        const key = keyOf(row);
        // Deleted itself, and only after this row: neither can be first.
        if (isAbove.has(key) && key !== keyOf(frame.row)) yield { cycle: row };
        else if (without !== undefined)
          yield { step: { ...row, by, without }, octets: octets * changedFactor };
        else if (!isAbove.has(key) && !isDone.has(key)) {
          if (stack.length > walk.depthMax) yield { step: undefined, octets };
          stack.push(frameOf(row, octets, by));
          isAbove.add(key);
        }
        continue;
      }
      const { row, by, octets } = frame;
      if (!frame.isNamed && by !== undefined) yield { step: { ...row, by }, octets };
      if (frame.isNamed || walk.isForgotten?.(row.table) !== true) isDone.add(keyOf(row));
      isAbove.delete(keyOf(row));
      stack.pop();
    }
  }
  return undefined;
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
  { collectionOf, isDoomed, ...reading }: CascadeWalk,
  { table, id }: RowName,
): AsyncGenerator<Child, undefined> {
  for (const { from, field: name, onDelete } of collectionOf(table)?.dependants ?? []) {
    const collection = collectionOf(from);
    if (collection === undefined || (onDelete === 'restrict' && isDoomed === undefined)) continue;
    for await (const doc of referring(reading, collection, { field: name, id })) {
      const row = { table: from, id: valueAt(doc, ['id']) as string };
      if (onDelete === 'restrict' && (await isDoomed?.(row, doc)) !== true) continue;
      const child = { ...row, by: { field: name, id }, octets: Buffer.byteLength(doc) };
      yield onDelete === 'setNull' ? { ...child, without: name } : child;
    }
  }
  return undefined;
}

/** The documents of a collection that refer to one, in pages of bounded length. */
export async function* referring(
  { store, turns }: Reading,
  collection: Collection,
  { field: name, id }: Naming,
): AsyncGenerator<string, undefined> {
  const plan = store.plan({
    ...{ table: collection.name, filter: { op: 'eq', field: fieldNamed(collection, name), value: id } },
    ...{ sort: byId, limit: rowsPerRead, bytesMax: bytesPerRead },
  });
  for await (const { docs } of pagesOf(plan)) {
    for (const doc of docs) {
      await turns.next();
      yield doc;
    }
  }
}

function keyOf({ table, id }: RowName): string {
  return `${table} ${id}`;
}
