/**
 * A delivery (§3): one event on its way to one endpoint. webhooks/sending/conclude-delivery.ts has its state changes.
 *
 * `nextAttemptAt` is the time in the schedule, null without a further attempt. `dueAt` is the time of the next attempt:
 * the same, or earlier after a resend, which leaves the schedule unchanged.
 */

export const deliveryStatuses = ['pending', 'delivered', 'not_delivered'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The cause of an attempt: the schedule, or a resend. */
export type Trigger = 'automatic' | 'manual';

export type Delivery = {
  readonly id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly endpointId: string;
  readonly status: DeliveryStatus;
  readonly attemptCount: number;
  /** Attempts by schedule: the position in the schedule. */
  readonly scheduledAttemptCount: number;
  /** ISO 8601, as all times here. */
  readonly nextAttemptAt: string | null;
  readonly dueAt: string | null;
  readonly lastStatusCode: number | null;
  /** Kind of the last failure without a status, such as `timeout`. */
  readonly lastError: string | null;
  /** Milliseconds of the last attempt, until its answer began or it failed; absent before the first. */
  readonly lastLatencyMs?: number;
  /** The digest of the key by which the endpoint's deliveries are ordered; absent: it needs no order. */
  readonly orderKey?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** The document as served and stored. Written by hand, because it is created twice for every delivery. */
export function deliveryDocument(delivery: Delivery): string {
  const { id, eventId, eventType, endpointId, status, attemptCount, scheduledAttemptCount } = delivery;
  const { nextAttemptAt, dueAt, lastStatusCode, lastError, lastLatencyMs, orderKey, createdAt, updatedAt } =
    delivery;
  const latency = lastLatencyMs === undefined ? '' : `"lastLatencyMs":${lastLatencyMs},`;
  const order = orderKey === undefined ? '' : `"orderKey":"${orderKey}",`;
  return (
    `{"id":"${id}","eventId":${JSON.stringify(eventId)},"eventType":${JSON.stringify(eventType)},"endpointId":"${endpointId}",` +
    `"status":"${status}","attemptCount":${attemptCount},"scheduledAttemptCount":${scheduledAttemptCount},` +
    `"nextAttemptAt":${textOrNull(nextAttemptAt)},"dueAt":${textOrNull(dueAt)},"lastStatusCode":${lastStatusCode},` +
    `"lastError":${textOrNull(lastError)},${latency}${order}"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`
  );
}

/** Quotes times and names of failures, in which nothing needs escaping. */
function textOrNull(text: string | null): string {
  return text === null ? 'null' : `"${text}"`;
}

export function triggerOf({ dueAt, nextAttemptAt }: Pick<Delivery, 'dueAt' | 'nextAttemptAt'>): Trigger {
  return dueAt === nextAttemptAt ? 'automatic' : 'manual';
}
