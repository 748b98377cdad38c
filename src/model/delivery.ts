/**
 * A delivery (§3): one event on its way to one endpoint. Its document is all there is of it; how it changes is said in
 * webhooks/outbound/conclude.ts.
 *
 * Two times say when it is tried. `nextAttemptAt` is the schedule's, null when the policy has no attempt left. `dueAt` is when the sender
 * will really try: the same time, or an earlier one because somebody asked for a resend, which leaves the schedule where it was.
 */

export const deliveryStatuses = ['pending', 'delivered', 'not_delivered'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why there was an attempt: the schedule, or somebody who asked. */
export type Trigger = 'automatic' | 'manual';

export type Delivery = {
  /** `dlv_...` */
  readonly id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly endpointId: string;
  readonly status: DeliveryStatus;
  /** Attempts of either trigger. */
  readonly attemptCount: number;
  /** Attempts by schedule: how far the policy has come. */
  readonly scheduledAttemptCount: number;
  /** ISO 8601, as are all times here. */
  readonly nextAttemptAt: string | null;
  readonly dueAt: string | null;
  readonly lastStatusCode: number | null;
  /** Kind of the last failure without a status, such as `timeout`. */
  readonly lastError: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** The document as served and stored. Written by hand: it is made twice for every delivery. */
export function deliveryDocument(delivery: Delivery): string {
  const { id, eventId, eventType, endpointId, status, attemptCount, scheduledAttemptCount } = delivery;
  const { nextAttemptAt, dueAt, lastStatusCode, lastError, createdAt, updatedAt } = delivery;
  return (
    `{"id":"${id}","eventId":${JSON.stringify(eventId)},"eventType":${JSON.stringify(eventType)},"endpointId":"${endpointId}",` +
    `"status":"${status}","attemptCount":${attemptCount},"scheduledAttemptCount":${scheduledAttemptCount},` +
    `"nextAttemptAt":${textOrNull(nextAttemptAt)},"dueAt":${textOrNull(dueAt)},"lastStatusCode":${lastStatusCode},` +
    `"lastError":${textOrNull(lastError)},"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`
  );
}

/** Times and names of failures: nothing in them is escaped. */
function textOrNull(text: string | null): string {
  return text === null ? 'null' : `"${text}"`;
}

/** What the next attempt is there for. */
export function triggerOf({ dueAt, nextAttemptAt }: Pick<Delivery, 'dueAt' | 'nextAttemptAt'>): Trigger {
  return dueAt === nextAttemptAt ? 'automatic' : 'manual';
}
