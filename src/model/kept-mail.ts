/**
 * A mail that is kept until the server of mail takes it. Its content is stored separately, sealed. mail/mail-engine.ts has its state
 * changes.
 */

export const mailStatuses = ['pending', 'sent', 'failed'] as const;
export type MailStatus = (typeof mailStatuses)[number];

export type KeptMail = {
  readonly id: string;
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly bcc: readonly string[];
  readonly subject: string;
  /** The name of the template; null: none. */
  readonly template: string | null;
  /** `pending` until every recipient was accepted; `failed` without a further attempt. */
  readonly status: MailStatus;
  readonly attempts: number;
  /** Those that count in the schedule: all since the mail was kept, or was last sent again. */
  readonly scheduledAttempts: number;
  /** Recipients that the server accepted. */
  readonly accepted: readonly string[];
  /** Recipients that the server refused for good. */
  readonly refused: readonly string[];
  /** Time of the next attempt, ISO 8601 as all times here; null: none is planned. */
  readonly dueAt: string | null;
  /** When the server accepted the last recipient that it did; null: none. */
  readonly sentAt: string | null;
  /** Code and text of the server's last refusal, or why it was not reached; null: none. */
  readonly lastError: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
};
