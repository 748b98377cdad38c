/**
 * Puts a unit through the store with the companions of the ask, and says what became of it in terms of the
 * collection: which field was taken, which reference dangles, how many dependants stand in the way (§7).
 */
import type { Problem } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Commit, Unit } from '../../store/store.ts';
import type { Ask, Made, Result } from '../resource.ts';
import type { Served } from './served.ts';

export async function commitUnit(served: Served, ask: Ask, unit: Unit, made: Made): Promise<Result> {
  if (unit.changes.some(({ next }) => (next?.doc.length ?? 0) > served.documentCharactersMax)) {
    const message = `the resource would be longer than ${served.documentCharactersMax} characters`;
    return { refused: { code: 'content_too_large', message } };
  }
  const companions = ask.companions.map((companion) => companion(made));
  const commit = await served.store.commit({
    changes: [...unit.changes, ...companions],
    events: unit.events,
  });
  if (commit.outcome === 'committed') return { made, rev: commit.rev };
  if (commit.outcome !== 'superseded') return { refused: refusal(served, commit) };
  // A companion that was superseded means that another process took this request over: it answers, not we.
  if (commit.change >= unit.changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  return { superseded: true };
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
