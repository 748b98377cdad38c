/**
 * PATCH of `/received/{id}`: marks a message `processed` or `failed` by hand, which takes it from whoever hands messages on. What was
 * written meanwhile by a handler that still runs is dropped with its attempt: the mark stands (webhooks/inbound/settle). `pending` is no
 * mark; a message becomes it again by a replay, which says when it is due as well.
 */
import type { FieldError, Problem } from '../../../http/problem.ts';
import { formatJsonPointer } from '../../../http/syntax/json-pointer.ts';
import type { Received } from '../../../model/received.ts';
import { type NewFields, type Revise, revised } from '../../collection/revised.ts';
import type { Operation, Proposal } from '../../resource.ts';
import { inboxCollection } from './collection.ts';

/** What `lastError` says of a message that somebody gave up. */
export const markedError = 'marked';

/** @param operation PATCH of the collection @param path `/api/v1/received` */
export function markOperation(operation: Operation, path: string): Operation {
  return revised(saidRight(operation), marking(path));
}

function marking(path: string): Revise {
  return ({ before, fields }) => {
    const { status } = fields as Pick<Received, 'status'>;
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as Received);
    if (status === stood?.status) return { fields };
    if (status === 'pending') {
      const message = `cannot be set back to pending; POST to ${path}/${stood?.id ?? '{id}'}/replay hands the message on again`;
      return { refused: { code: 'validation_failed', errors: [{ pointer: '/status', message }] } };
    }
    const lastError = status === 'failed' ? markedError : null;
    return { fields: { ...fields, dueAt: null, lastError } satisfies NewFields };
  };
}

/** A collection calls what may not change fixed at creation; here it changes by itself. */
function saidRight(operation: Operation): Operation {
  const { propose } = operation;
  if (propose === undefined) throw new Error('a patch that proposes nothing');
  return {
    ...operation,
    propose: async (ask, standing, content): Promise<Proposal> => {
      const proposal = await propose(ask, standing, content);
      const { problem } = proposal;
      return problem?.code === 'field_unpatchable' ? { ...proposal, problem: readOnly(problem) } : proposal;
    },
  };
}

const own = new Set([...inboxCollection.unpatchable].map((name) => formatJsonPointer([name])));

/** A patch that removes one is refused for two reasons, which here are one. */
function readOnly(problem: Problem): Problem {
  const errors = new Map<string, FieldError>();
  for (const error of problem.errors ?? []) {
    const message = own.has(error.pointer) ? 'is read-only: status alone can be changed' : error.message;
    errors.set(error.pointer, { ...error, message });
  }
  return { ...problem, errors: [...errors.values()] };
}
