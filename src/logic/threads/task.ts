/** Work for a thread of handlers: which function of the configuration, and what it gets. */

import type { Opening } from '../transaction/resource-call.ts';

/** A received message, with its content coding; a short body in base64, as it is stored. */
export type GivenMessage = {
  readonly id: string;
  readonly sender: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  readonly receivedAt: string;
  readonly attempt: number;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
};

/** An event for a subscriber, or the run of a job: its name in the configuration, and the content in base64. */
export type GivenContent = {
  readonly of: string;
  readonly attempt: number;
  readonly body: string;
};

export type Given =
  | { readonly kind: 'message'; readonly message: GivenMessage }
  | ({ readonly kind: 'subscriber' | 'job' } & GivenContent);

export type Task = {
  /** The id of the message: one that ended a thread is a suspect by it. */
  readonly id: string;
  /** What declares the function. Its tasks wait while it probably keeps a thread busy. */
  readonly source: string;
  readonly given: Given;
  /** Undefined: the setting applies. */
  readonly timeoutMs?: number | undefined;
  /** Counts what the function reads and writes; absent: nothing does. */
  readonly memory?: Opening['memory'];
};
