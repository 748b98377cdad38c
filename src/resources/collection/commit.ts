/**
 * Puts a unit through the store with the companions of the ask, and says what became of it in terms of the
 * collection: which field was taken, which reference dangles, how many dependants stand in the way (§7).
 */
import type { Problem } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Change, Commit, Row, Unit } from '../../store/store.ts';
import type { Ask, Made, Result } from '../resource.ts';
import type { Accompaniment, Served } from './served.ts';

/** @param standing rows that the changes were computed from, in their order; undefined for those that are made */
export async function commitUnit(
  served: Served,
  ask: Ask,
  unit: Unit,
  made: Made,
  standing: readonly (Row | undefined)[],
): Promise<Result> {
  if (unit.changes.some(({ next }) => (next?.doc.length ?? 0) > served.documentCharactersMax)) {
    const message = `the resource would be longer than ${served.documentCharactersMax} characters`;
    return { refused: { code: 'content_too_large', message } };
  }
  const accompanied = await accompany(served, ask, unit.changes, standing);
  if ('refused' in accompanied) return accompanied;
  const companions = ask.companions.map((companion) => companion(made));
  const commit = await served.store.commit({
    changes: [...accompanied.changes, ...companions],
    events: served.announced ? unit.events : [],
  });
  if (commit.outcome === 'committed') return { made, rev: commit.rev };
  if (commit.outcome !== 'superseded') return { refused: refusal(served, commit) };
  // A companion that was superseded means that another process took this request over: it answers, not we.
  if (commit.change >= accompanied.changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  return { superseded: true };
}

/** The changes, and after them what the resource demands besides. */
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

function refusal(served: Served, commit: Exclude<Commit, { outcome: 'committed' | 'superseded' }>): Problem {
  if (commit.outcome === 'taken') {
    return {
      code: 'unique_taken',
      message: `${commit.field} is already in use`,
      errors: [{ pointer: formatJsonPointer([commit.field]), message: 'already in use' }],
    };
  }
  if (commit.outcome === 'dangling') {
    const reference = served.collection.references.find(({ field }) => field === commit.field);
    return {
      code: 'reference_missing',
      errors: [
        {
          pointer: formatJsonPointer([commit.field]),
          message: `names no resource in ${reference?.collection ?? 'its collection'}`,
        },
      ],
    };
  }
  const dependant = served.collection.dependants.find(
    ({ from, field }) => from === commit.table && field === commit.field,
  );
  return {
    code: 'dependants_exist',
    message: `in use by ${commit.count} ${commit.count === 1 ? 'resource' : 'resources'} of ${commit.table}`,
    context: { [dependant?.countAs ?? 'count']: commit.count },
  };
}
