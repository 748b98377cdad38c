/**
 * A message that a sender of webhooks gave to us (§4.14, §6): verified, stored once, and handed on. Its body stands apart, as it came. How it
 * changes is said in webhooks/inbound/settle/conclude.ts.
 */

export const receivedStatuses = ['pending', 'processed', 'failed'] as const;
export type ReceivedStatus = (typeof receivedStatuses)[number];

export type Received = {
  /** `rec_...` */
  readonly id: string;
  /** As in the path it was sent to. */
  readonly sender: string;
  /** What the sender told it apart by, or `sha256:` and the digest of its body. */
  readonly dedupeKey: string;
  /** Null where it says none. */
  readonly type: string | null;
  /** ISO 8601, as are all times here. */
  readonly receivedAt: string;
  /** `pending` until it was handed on; `failed` when no attempt is left. */
  readonly status: ReceivedStatus;
  /** How often handing it on was tried. */
  readonly attempts: number;
  /** Of these, how many count in the schedule: all since it came, or since it was replayed. */
  readonly scheduledAttempts: number;
  /** When it is tried next; null: not by itself. */
  readonly dueAt: string | null;
  /** Kind of the last failure, such as `thrown`, `timeout` or `status`; null: none, or it was processed. */
  readonly lastError: string | null;
  readonly contentType: string | null;
  /** Octets of the body. */
  readonly contentLength: number;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** The document as served and stored. Written by hand: it is made twice for every message. */
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
