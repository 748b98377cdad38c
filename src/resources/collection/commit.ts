/**
 * Commits a unit with the companions of the ask, and translates the store's outcome into the terms of the collection:
 * which field is taken, which reference is missing, how many dependants prevent a deletion (§7).
 */
import type { Problem } from '../../http/problem.ts';
import { valueAt } from '../../http/syntax/json-members.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { expectUnmarked, isMark } from '../../kernel/operations/deletion-marks.ts';
import { type Ask, caused, type Made, type Result } from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';
import { listOfNames } from '../../store/declared-indexes.ts';
import { overtaken } from '../../store/lines.ts';
import {
  type Change,
  type Commit,
  type MaybePromise,
  Overtaken,
  type Row,
  type RowName,
  type Unit,
} from '../../store/store.ts';
import { type MemberStanding, seenOf } from './member.ts';
import type { Accompaniment, Served } from './served-collection.ts';

/**
 * @param standing the rows from which the changes were computed, in the same order; undefined for new ones
 * @param restsOn expectations of rows beyond references, by which the caller may make the changes
 */
export async function commitUnit(
  served: Served,
  ask: Ask,
  unit: Unit,
  made: Made,
  standing: readonly (Row | undefined)[],
  restsOn: readonly Change[] = [],
): Promise<Result> {
  if (unit.changes.some(({ next }) => (next?.doc.length ?? 0) > served.documentCharactersMax))
    return { refused: documentTooLong(served) };
  // Mostly known, and a promise each would cost as much as the rest of this function.
  const looking = unseenField(served, ask, unit.changes, standing);
  const unseen = looking instanceof Promise ? await looking : looking;
  if (unseen !== undefined) return { refused: danglingProblem(served, unseen.field, unseen.id) };
  const accompanied =
    served.accompany === undefined ? unit : await accompany(served, ask, unit.changes, standing);
  if ('refused' in accompanied) return accompanied;
  const companions = ask.companions.map((companion) => companion(made));
  const rests =
    served.collection.marked === undefined
      ? restsOn
      : [...restsOn, ...unmarked(served, ask, unit.changes, standing)];
  const changes =
    rests.length === 0 ? accompanied.changes : [...accompanied.changes, ...apart(rests, unit.changes)];
  const commit = await served.store.commit({
    changes: companions.length === 0 ? changes : [...changes, ...companions],
    events: served.announced ? caused(unit.events, ask) : [],
  });
  if (commit.outcome === 'committed') return { made, rev: commit.rev };
  if (commit.outcome !== 'superseded') return { refused: await problemOfCommit(served, ask, unit, commit) };
  // If a companion was superseded, another process took this request over and responds in its place.
  if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  const overtakenAt = changes[commit.change];
  if (overtakenAt !== undefined && isMark(overtakenAt)) return { refused: { code: 'deletion_running' } };
  return overtaken({ changes, events: [] }, commit);
}

/**
 * The expectations that no deletion in several units has marked the resources, nor what they refer to before or after the change. So what
 * such a deletion was judged by stays as it was.
 */
function unmarked(
  { collection, isUnmarked }: Served,
  ask: Ask,
  changes: readonly Change[],
  standing: readonly (Row | undefined)[],
): readonly Change[] {
  const { marked, name, references } = collection;
  if (marked === undefined || isUnmarked === true || ask.operation?.state === 'decided') return [];
  const named = changes.flatMap(({ id, next }, at): RowName[] => {
    const own = marked.has(name) ? [{ table: name, id }] : [];
    if (next === null || next.deletedAt !== null) return own;
    const docs = [standing[at]?.doc, next.doc].filter((doc) => doc !== undefined);
    const referred = references.flatMap(({ field, collection: table }) =>
      marked.has(table) ? docs.map((doc) => ({ table, id: valueAt(doc, [field]) })) : [],
    );
    return [...own, ...referred.filter((row): row is RowName => typeof row.id === 'string')];
  });
  return named.map(expectUnmarked);
}

/**
 * The result of a change that leaves the resource as it is (§4.5, §4.6): no new revision, no event, the current
 * validators. The companions of the request, such as the record of its Idempotency-Key, are committed nevertheless.
 * @param validated the response has validators
 */
export async function leaveAsItIs(
  served: Served,
  ask: Ask,
  { id, row, isProvisional }: MemberStanding,
  validated: boolean,
): Promise<Result> {
  if (row === undefined) throw new Error('an unchanged resource requires its row');
  // Its revision is part of the response.
  if (isProvisional === true) return new Overtaken({ table: served.collection.name, id }, true);
  const { rev, updatedAt: modifiedAt } = row;
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const result = madeOf(served, ask.principal, row, { created: false, location, modifiedAt, validated });
  const made = { ...result, rev };
  if (ask.companions.length === 0) return { made, rev };
  const changes = ask.companions.map((companion) => companion(made));
  const { outcome } = await served.store.commit({ changes, events: [] });
  return outcome === 'committed' ? { made, rev } : { refused: { code: 'idempotency_key_in_use' } };
}

/** @param what is done to the resources: `to delete` */
export function tooLongTogether(what: string, charactersMax: number): Problem {
  return tooLong(
    `the resources ${what} are longer than ${charactersMax} characters together: name fewer in one request`,
  );
}

export function documentTooLong({ documentCharactersMax }: Pick<Served, 'documentCharactersMax'>): Problem {
  return tooLong(`the resource would be longer than ${documentCharactersMax} characters`);
}

export function tooLong(message: string): Problem {
  return { code: 'content_too_large', message };
}

/** The expectations of rows that the unit does not change, each once: what it changes it expects anyway. */
function apart(restsOn: readonly Change[], changes: readonly Change[]): readonly Change[] {
  const named = new Set(changes.map(nameOf));
  return restsOn.filter((each) => {
    const name = nameOf(each);
    return !named.has(name) && named.add(name);
  });
}

function nameOf({ table, id }: Change): string {
  return `${table} ${id}`;
}

function unseenField(
  served: Served,
  ask: Ask,
  changes: readonly Change[],
  standing: readonly (Row | undefined)[],
  start = 0,
): MaybePromise<{ readonly field: string; readonly id: string } | undefined> {
  if (served.collection.references.length === 0) return undefined;
  for (let at = start; at < changes.length; at += 1) {
    const change = { before: standing[at], next: changes[at]?.next ?? null };
    const id = changes[at]?.id ?? '';
    const unseen = served.unseenReference(ask.principal, change);
    if (unseen instanceof Promise) {
      return unseen.then((field) =>
        field === undefined ? unseenField(served, ask, changes, standing, at + 1) : { field, id },
      );
    }
    if (unseen !== undefined) return { field: unseen, id };
  }
  return undefined;
}

/** Returns the changes, followed by those that the resource adds. */
async function accompany(
  served: Served,
  ask: Ask,
  changes: readonly Change[],
  standing: readonly (Row | undefined)[],
): Promise<Accompaniment> {
  if (served.accompany === undefined) return { changes };
  const all = [...changes];
  for (const [index, { id, next }] of changes.entries()) {
    const more = await served.accompany({ ask, id, before: standing[index], next });
    if ('refused' in more) return more;
    all.push(...more.changes);
  }
  return { changes: all };
}

/** @param unit the one that the store refused at a change of this collection */
export async function problemOfCommit(
  served: Served,
  ask: Ask,
  unit: Unit,
  commit: Exclude<Commit, { outcome: 'committed' | 'superseded' }>,
): Promise<Problem> {
  if (commit.outcome === 'depended-on') return dependence(served, ask, unit, commit);
  const { id } = unit.changes[commit.change] ?? { id: '' };
  if (commit.outcome === 'taken') {
    return takenProblem(commit.fields, placeIn(served, id));
  }
  return danglingProblem(served, commit.field, id);
}

/** @param place a JSON Pointer to the resource in the content */
export function takenProblem(names: readonly string[], place = ''): Problem {
  const others = (name: string): string => listOfNames(names.filter((other) => other !== name));
  return {
    code: 'unique_taken',
    message: takenText(names),
    errors: names.map((name) => ({
      pointer: place + formatJsonPointer([name]),
      message: names.length === 1 ? 'already in use' : `already in use together with ${others(name)}`,
    })),
  };
}

/** `sku is already in use` */
export function takenText(names: readonly string[]): string {
  return names.length === 1
    ? `${names[0]} is already in use`
    : `${listOfNames(names)} are already in use together`;
}

function placeIn({ placeOf }: Served, id: string): string {
  return placeOf?.(id) ?? '';
}

function danglingProblem(served: Served, name: string, id: string): Problem {
  const reference = served.collection.references.find(({ field }) => field === name);
  return {
    code: 'reference_missing',
    errors: [
      {
        pointer: placeIn(served, id) + formatJsonPointer([name]),
        message: `names a resource that does not exist in ${reference?.collection ?? 'its collection'}`,
      },
    ],
  };
}

/**
 * Describes why a deletion is refused: all dependants prevent it, but only those visible to the principal are counted
 * (§5.1).
 */
async function dependence(
  served: Served,
  ask: Ask,
  unit: Unit,
  commit: Extract<Commit, { outcome: 'depended-on' }>,
): Promise<Problem> {
  const { table, field } = commit;
  const id = unit.changes[commit.change]?.id ?? '';
  const count = await served.countDependants({ table, field, id, count: commit.count }, ask.principal);
  const dependant = served.collection.dependants.find(
    (reference) => reference.from === table && reference.field === field,
  );
  const message =
    count === 0 ? 'in use' : `in use by ${count} ${count === 1 ? 'resource' : 'resources'} of ${table}`;
  return { code: 'dependants_exist', message, context: { [dependant?.countAs ?? 'count']: count } };
}

/** A change as its author may see it (§4.4 to §4.7). */
type MadeChange = {
  readonly created: boolean;
  /** The path of the created or changed resource; null if it was deleted. */
  readonly location: string | null;
  /** Milliseconds since the epoch; null if it was deleted. */
  readonly modifiedAt: number | null;
  /** False for PUT and DELETE, whose responses carry no validators. */
  readonly validated: boolean;
};

/**
 * The result of a change. Stored results (for replay, and of operations) are made from it, so they contain nothing that is hidden from the author.
 * @param row after the change; for a deletion, before it
 */
export function madeOf(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
  change: MadeChange,
): Made {
  const seen = seenOf(served, principal, row);
  // Responses to changes tag by the revision alone, which is the tag of the whole representation.
  if (seen !== undefined) return { ...change, outcome: 'made', doc: seen.doc, validated: false };
  return { ...change, outcome: 'made', doc: row.doc };
}
