/**
 * A received webhook message (§4.14, §6): verified, stored once, and processed. Its body is stored separately,
 * unchanged. webhooks/receiving/settle-received.ts has its state changes.
 */

export const receivedStatuses = ['pending', 'processed', 'failed'] as const;
export type ReceivedStatus = (typeof receivedStatuses)[number];

export type Received = {
  readonly id: string;
  readonly sender: string;
  /** The sender's own id of the message, or `sha256:` and the digest of its body. */
  readonly dedupeKey: string;
  readonly type: string | null;
  /** ISO 8601, as all times here. */
  readonly receivedAt: string;
  /** `pending` until it is processed; `failed` without a further attempt. */
  readonly status: ReceivedStatus;
  readonly attempts: number;
  /** Those that count in the schedule: all since its receipt or its last replay. */
  readonly scheduledAttempts: number;
  /** Time of the next attempt; null: none is planned. */
  readonly dueAt: string | null;
  /** Kind of the last failure, such as `thrown`, `timeout` or `status`; null: none, or it was processed. */
  readonly lastError: string | null;
  readonly contentType: string | null;
  readonly contentLength: number;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** The document as served and stored. Written by hand, because it is created twice for every message. */
export function receivedDocument(received: Received): string {
  const { id, sender, dedupeKey, type, receivedAt, status, attempts, scheduledAttempts } = received;
  const { dueAt, lastError, contentType, contentLength, createdAt, updatedAt } = received;
  return (
    `{"id":"${id}","sender":"${sender}","dedupeKey":${JSON.stringify(dedupeKey)},"type":${JSON.stringify(type)},` +
    `"receivedAt":"${receivedAt}","status":"${status}","attempts":${attempts},"scheduledAttempts":${scheduledAttempts},` +
    `"dueAt":${dueAt === null ? 'null' : `"${dueAt}"`},"lastError":${JSON.stringify(lastError)},` +
    `"contentType":${JSON.stringify(contentType)},"contentLength":${contentLength},"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`
  );
}
