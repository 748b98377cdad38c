/** An event that an application's function emits: checked like a POST to `/events`, and appended with the function's unit. */
import type { Configuration } from '../../../config/configuration.ts';
import { askOf, contentOf, refusalOf } from '../../../logic/transaction/asking.ts';
import type { EmitEvent } from '../../../logic/transaction/transaction.ts';
import type { Services } from '../../../store/capabilities.ts';
import type { EventTypes } from '../event-types/event-types.ts';
import { postEventOperation, postedEntry } from './post-event.ts';

/** The schemas of event types are compiled when a function first emits. */
export function createEmitEvent(
  services: Services,
  configuration: Pick<Configuration, 'base' | 'collections'>,
  eventTypes: EventTypes,
): EmitEvent {
  let operation: ReturnType<typeof postEventOperation> | undefined;
  return async ({ type, tenant, object: given }, principal) => {
    operation ??= postEventOperation(services, configuration, eventTypes);
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
    const at = services.clock();
    return { entry: (id) => postedEntry(posted, { id, at, owner: null }), characters: content.length };
  };
}
