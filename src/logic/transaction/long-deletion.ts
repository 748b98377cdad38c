/**
 * A deletion with more dependants than a unit takes (§4.7.6), carried out by an operation in several units. Each call makes one step of it,
 * and the operation walks the request again before the next, so that the caller, the preconditions and the rules are judged anew:
 *
 *   (none)   -> marking -> judged   every document that others refer to is marked, from the named ones down, so that nothing that the
 *                                   deletion depends on changes any more; then restrictions, cycles and hooks are judged, without a change
 *   judged   -> decided             one unit that rests on what the last unit will rest on
 *   decided                         the dependants are deleted, the deepest first, in units; the request itself then deletes the named ones
 *
 * Until it is decided, nothing is deleted, and a failure removes the marks. From then on no hook prevents it: each runs again for what it writes
 * with the deletion, but what it decides, it has decided when it was judged.
 */
import type { Problem } from '../../http/problem.ts';
import { valueAt } from '../../http/syntax/json-members.ts';
import {
  type DeletionState,
  deletionMarksTable,
  markChange,
  markId,
  type RunningOperation,
  readMarks,
  releaseMarks,
  rootsOf,
} from '../../kernel/operations/deletion-marks.ts';
import type { Ask, Result } from '../../kernel/resource.ts';
import { fieldNamed } from '../../model/collection.ts';
import { problemOfCommit } from '../../resources/collection/commit.ts';
import type { Served } from '../../resources/collection/served-collection.ts';
import { deletedCharactersMaxOf } from '../../store/group-commit.ts';
import { type Change, Overtaken, type RowName, StoreUnavailable } from '../../store/store.ts';
import { problemOrFailure } from '../function-run.ts';
import { ofAnotherWrite } from '../refusal.ts';
import {
  CascadeExceeded,
  type CascadeStep,
  type CascadeWalk,
  cascadeSteps,
  cycleAt,
  referring,
  tooDeep,
} from './cascade.ts';
import type { Opening, Transaction } from './resource-call.ts';

export type LongDeletion = {
  readonly served: Served;
  readonly ask: Ask;
  readonly operation: RunningOperation;
  /** Deleted by the request itself; at least one. */
  readonly named: readonly [RowName, ...RowName[]];
  /** Opens a transaction that does not mind the marks. */
  readonly open: (hooks?: Opening['hooks']) => Transaction;
  /** Hears why the commit of what hooks write was refused. */
  readonly onRefused: (problem: Problem) => void;
  /** Makes the last unit within a transaction. */
  readonly rehearse: (transaction: Transaction) => Promise<Result>;
};

/** Documents that others refer to, of one deletion: what is known of each is kept in memory while they are judged. */
const markedMax = 100_000;
const tooManyMarked = `it would delete more than ${markedMax} resources that others may refer to: delete some of them first`;

/** @returns undefined: the request can make its unit. `operation.state` shows that a step was made. */
export async function stepDeletion(deletion: LongDeletion): Promise<Result | undefined> {
  const { operation } = deletion;
  if (operation.state === 'decided') return deleteParts(deletion);
  if (operation.state === 'judged') return decide(deletion);
  if (operation.state === undefined) await note(deletion, 'marking', []);
  const refused = (await markAll(deletion)) ?? (await judgeAll(deletion));
  if (refused !== undefined) return { refused };
  await note(deletion, 'judged', []);
  return steppedOn;
}

/** Not answered: the request is walked again. */
const steppedOn: Result = { refused: { code: 'deletion_running' } };

/** @returns false if what the step rests on has changed */
async function note(
  { served: { store, clock }, operation, named }: LongDeletion,
  state: DeletionState,
  restsOn: readonly Change[],
): Promise<boolean> {
  const before = (await readMarks(store, [operation.id])).get(operation.id);
  const change = markChange(operation.id, operation.id, clock(), { state, before, roots: named.length });
  const { outcome } = await store.commit({ changes: [change, ...restsOn], events: [] });
  if (outcome !== 'committed') return false;
  operation.state = state;
  await operation.progressed();
  return true;
}

async function markAll(deletion: LongDeletion): Promise<Problem | undefined> {
  const { collectionOf, cascadeMax } = deletion.open();
  const seen = new Set<string>();
  async function descend(rows: readonly RowName[], depth: number): Promise<Problem | undefined> {
    const fresh = rows.filter((row) => !seen.has(markId(row)));
    if (depth > cascadeMax) return tooDeep(cascadeMax);
    if (seen.size + fresh.length > markedMax) return { code: 'dependants_exist', message: tooManyMarked };
    for (const row of fresh) seen.add(markId(row));
    const refused = await markEach(deletion, fresh);
    if (refused !== undefined) return refused;
    for (const { table, id } of fresh) {
      for (const { from, field, onDelete } of collectionOf(table)?.dependants ?? []) {
        const collection = collectionOf(from);
        // What nothing refers to needs no mark.
        if (onDelete !== 'cascade' || collection === undefined || collection.dependants.length === 0)
          continue;
        let page: RowName[] = [];
        for await (const doc of referring(deletion.served, collection, { field, id })) {
          page.push({ table: from, id: valueAt(doc, ['id']) as string });
          if (page.length < rowsPerUnit) continue;
          const problem = await descend(page, depth + 1);
          if (problem !== undefined) return problem;
          page = [];
        }
        const problem = page.length === 0 ? undefined : await descend(page, depth + 1);
        if (problem !== undefined) return problem;
      }
    }
    return undefined;
  }
  return descend(deletion.named, 0);
}

const rowsPerUnit = 100;

async function markEach(
  { served: { store, clock }, operation }: LongDeletion,
  rows: readonly RowName[],
): Promise<Problem | undefined> {
  for (;;) {
    const ids = rows.map(markId);
    const marks = await readMarks(store, ids);
    for (const { owner } of marks.values()) if (owner !== operation.id) return { code: 'deletion_running' };
    const changes = ids.filter((id) => !marks.has(id)).map((id) => markChange(id, operation.id, clock()));
    if (changes.length === 0) return undefined;
    const { outcome } = await store.commit({ changes, events: [] });
    if (outcome === 'committed') return undefined;
  }
}

/** True for a document that the deletion takes: it is marked, or refers to a marked one by a reference that cascades. */
function doomedBy({
  served: { store },
  operation,
  open,
}: LongDeletion): NonNullable<CascadeWalk['isDoomed']> {
  const { collectionOf } = open();
  return async (row, doc) => {
    const cascading =
      collectionOf(row.table)?.references.filter(({ onDelete }) => onDelete === 'cascade') ?? [];
    const above = cascading.map(({ field, collection: table }) => ({ table, id: valueAt(doc, [field]) }));
    const ids = [row, ...above.filter((each): each is RowName => typeof each.id === 'string')].map(markId);
    return [...(await readMarks(store, ids)).values()].some(({ owner }) => owner === operation.id);
  };
}

async function judgeAll(deletion: LongDeletion): Promise<Problem | undefined> {
  const { named, served } = deletion;
  const { collectionOf, cascadeMax } = deletion.open();
  const isDoomed = doomedBy(deletion);
  for (const row of named) {
    const refused = await restrictionOf(deletion, row, isDoomed);
    if (refused !== undefined) return refused;
  }
  const octetsMax = deletedCharactersMaxOf(served.store);
  let steps: CascadeStep[] = [];
  let octets = 0;
  const walk = { store: served.store, turns: served.turns, collectionOf, isDoomed, depthMax: cascadeMax };
  const isForgotten = (table: string): boolean => collectionOf(table)?.dependants.length === 0;
  for await (const found of cascadeSteps({ ...walk, isForgotten }, named)) {
    if ('cycle' in found) return problemOrFailure(cycleAt(found.cycle), 'a deletion');
    const { step } = found;
    if (step === undefined) return tooDeep(cascadeMax);
    const refused = step.without === undefined ? await restrictionOf(deletion, step, isDoomed) : undefined;
    if (refused !== undefined) return refused;
    if (collectionOf(step.table)?.hooks?.beforeWrite === undefined) continue;
    if (steps.length >= cascadeMax || octets + found.octets > octetsMax) {
      const problem = await rehearseHooks(deletion, steps);
      if (problem !== undefined) return problem;
      [steps, octets] = [[], 0];
    }
    steps.push(step);
    octets += found.octets;
  }
  return rehearseHooks(deletion, steps);
}

/** The refusal by a reference that restricts, of a document that stays. */
async function restrictionOf(
  { open, served, ask, named }: LongDeletion,
  { table, id }: RowName,
  isDoomed: NonNullable<CascadeWalk['isDoomed']>,
): Promise<Problem | undefined> {
  const { collectionOf } = open();
  for (const { from, field, onDelete } of collectionOf(table)?.dependants ?? []) {
    const collection = collectionOf(from);
    if (onDelete !== 'restrict' || collection === undefined) continue;
    for await (const doc of referring(served, collection, { field, id })) {
      if (await isDoomed({ table: from, id: valueAt(doc, ['id']) as string }, doc)) continue;
      if (!named.some((row) => row.table === table && row.id === id))
        return ofAnotherWrite({ outcome: 'depended-on' }, table);
      const of = { op: 'eq', field: fieldNamed(collection, field), value: id } as const;
      const count = await served.store.count(from, of);
      const change = { table, id, expect: { absent: true }, next: null } as const;
      const refused = { outcome: 'depended-on', change: 0, table: from, field, count } as const;
      return problemOfCommit(served, ask, { changes: [change], events: [] }, refused);
    }
  }
  return undefined;
}

/** Runs the hooks of dependants, and drops what they write. */
async function rehearseHooks(
  { open, named, served }: LongDeletion,
  steps: readonly CascadeStep[],
): Promise<Problem | undefined> {
  for (;;) {
    const part = open();
    try {
      await part.follow(steps, named);
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable || part.torn() === undefined)
        return problemOrFailure(error, whatOf(served));
    }
  }
}

function whatOf({ collection }: Served): string {
  return `the deletion of what depends on ${collection.name}`;
}

async function decide(deletion: LongDeletion): Promise<Result> {
  const { served, operation, named } = deletion;
  const state = (await readMarks(served.store, [operation.id])).get(operation.id);
  // Of several, the caller may have lost the right to some.
  if (rootsOf(state) !== named.length) return { refused: { code: 'forbidden' } };
  const rehearsal = deletion.open();
  const result = await deletion.rehearse(rehearsal);
  if (!('made' in result)) return result;
  const restsOn = rehearsal
    .unit()
    .changes.filter(({ table }) => table !== deletionMarksTable)
    .map(({ table, id, expect }): Change => ({ table, id, expect, next: null, stays: true }));
  return (await note(deletion, 'decided', restsOn)) ? steppedOn : new Overtaken(named[0]);
}

async function deleteParts(deletion: LongDeletion): Promise<Result | undefined> {
  const { served, operation, named, open, onRefused } = deletion;
  const isDoomed = doomedBy(deletion);
  let hooks: Opening['hooks'] = 'judged';
  for (let isWhole = false; !isWhole; ) {
    const part = open(hooks);
    try {
      isWhole = await part.cascade(named, undefined, isDoomed);
    } catch (error) {
      // A part takes at least one document, except of a chain that is too deep.
      if (error instanceof CascadeExceeded) return { refused: tooDeep(deletion.open().cascadeMax) };
      // Another request deleted one of them between two reads: the next part looks again.
      if (!(error instanceof StoreUnavailable) && part.torn() !== undefined) continue;
      return { refused: problemOrFailure(error, whatOf(served)) };
    }
    const { changes, events } = part.unit();
    if (changes.length === 0) break;
    const commit = await served.store.commit({ changes, events });
    if (commit.outcome === 'committed') {
      hooks = 'judged';
      await operation.progressed();
      continue;
    }
    isWhole = false;
    // What another change came before is looked at again.
    if (commit.outcome === 'superseded') continue;
    const table = changes[commit.change]?.table;
    if (commit.outcome === 'depended-on' && part.follows(table ?? '', commit)) continue;
    // What hooks write may be refused, such as a unique value that is taken, and nothing else of a part is.
    if (hooks === 'judged') {
      hooks = 'unasked';
      onRefused(ofAnotherWrite(commit, table));
      continue;
    }
    return { refused: ofAnotherWrite(commit, table) };
  }
  await releaseMarks(served.store, operation.id, new Set([operation.id, ...named.map(markId)]));
  return undefined;
}
