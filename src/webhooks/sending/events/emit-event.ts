/** An event that an application's function emits: checked like a POST to `/events`, and appended with the function's unit. */

import { askOf, contentOf, refusalOf } from '../../../logic/transaction/asking.ts';
import type { EmitEvent } from '../../../logic/transaction/transaction.ts';
import type { Collection } from '../../../model/collection.ts';
import type { Serving } from '../../../resources/collection/serving.ts';
import type { EventTypes } from '../event-types/event-types.ts';
import { postEventOperation, postedEntry } from './post-event.ts';

export type EmitOptions = {
  readonly serving: Serving;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly eventTypes: EventTypes;
  /** Octets of an event. */
  readonly webhookContentBytesMax: number;
};

/** The schemas of event types are compiled when a function first emits. */
export function createEmitEvent(options: EmitOptions): EmitEvent {
  const { serving } = options;
  let operation: ReturnType<typeof postEventOperation> | undefined;
  return async ({ type, tenant, object: given }, principal) => {
    operation ??= postEventOperation({ ...serving, ...options, path: '' });
    const ask = askOf(principal, []);
    const object: unknown = typeof given === 'string' ? JSON.parse(given) : given;
    const content = JSON.stringify({ type, data: { object }, ...(tenant === undefined ? {} : { tenant }) });
    const understood = await contentOf(operation, ask, content);
    const proposal = await operation.propose?.(ask, await operation.standing(ask), understood);
    if (proposal === undefined || proposal.problem !== null)
      throw refusalOf(proposal?.problem ?? { code: 'internal' });
    const { posted } = proposal;
    if (posted === undefined) throw new Error('a proposed event requires its content');
    // Without an owner, like resources that a handler creates; administrators and the members of its tenant see it.
    const at = serving.clock();
    return { entry: (id) => postedEntry(posted, { id, at, owner: null }), characters: content.length };
  };
}
