/** The routes that sending webhooks adds to `/events`: POST, and the removal of one subject's events. */
import type { AuditExpunction } from '../../../accounts/audit-fact.ts';
import type { Operation, Resource } from '../../../kernel/resource.ts';
import type { Serving } from '../../../resources/collection/serving.ts';
import type { EventTypes } from '../event-types/event-types.ts';
import { expungeResource } from './expunge.ts';
import { postEventOperation } from './post-event.ts';

export type PostedEventsOptions = {
  readonly eventTypes: EventTypes;
  readonly webhookContentBytesMax: number;
  /** Drops the event from the memory of this process's sender. */
  readonly forget?: (eventId: string) => void;
  readonly audited?: AuditExpunction | undefined;
};

export type PostedEvents = {
  /** For `EventsOptions.post`. */
  readonly post: Operation;
  readonly resources: readonly Resource[];
};

export function postedEvents(options: PostedEventsOptions, serving: Serving): PostedEvents {
  const { store, base, clock, newId, collections, contentLimits, validationErrorsMax } = serving;
  const path = `${base}/events`;
  const shared = { store, path, clock };
  const post = postEventOperation({
    ...options,
    ...shared,
    newId,
    collections,
    contentLimits,
    validationErrorsMax,
  });
  const limits = { ...contentLimits, validationErrorsMax };
  return {
    post: post as Operation,
    resources: [expungeResource({ ...shared, limits, forget: options.forget, audited: options.audited })],
  };
}
