/** Whether one endpoint wants an event and may be told of it: what `matching` of the directory asks of all at once. */
import type { Collection } from '../../../model/collection.ts';
import { matchesEventPattern } from '../../../model/event-pattern.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { createEventRights, isTold, type MatchedEvent } from './event-rights.ts';

/** Whether it is enabled is not asked: a recovery makes up for the time in which it was not. */
export function createWants(
  collections: Iterable<Collection>,
): (known: KnownEndpoint, event: MatchedEvent) => boolean {
  const rights = createEventRights(collections);
  return (known, event) => {
    const { type } = event;
    return (
      known.endpoint.events.some((text) => matchesEventPattern(text, type)) && isTold(rights, known, event)
    );
  };
}
