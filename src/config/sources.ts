/**
 * The sources of messages in the inbox (`sender` of a received message): senders of webhooks, and functions of the application that get
 * messages of the program itself, which are subscribers (an event each) and jobs (a scheduled run each).
 */
import type { HandOnTo } from './senders.ts';

export type Source = {
  /** `billing` of a sender, `subscriber:reopen`, `job:closeSolved`; it contains no slash and nothing that JSON escapes. */
  readonly name: string;
  readonly handOn: HandOnTo | OwnFunction;
  /** Seconds from each failed attempt to the next. */
  readonly schedule: readonly number[];
  /** Undefined: the setting applies. */
  readonly inFlightMax: number | undefined;
};

/** A subscriber or a job, which runs on the threads of handlers. */
export type OwnFunction = {
  readonly kind: 'subscriber' | 'job';
  /** Its name in the configuration. */
  readonly of: string;
  /** The time for one attempt; undefined: the setting for handlers applies. */
  readonly timeoutMs: number | undefined;
};

export function subscriberSource(name: string): string {
  return `subscriber:${name}`;
}

export function jobSource(name: string): string {
  return `job:${name}`;
}
