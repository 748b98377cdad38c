/**
 * What the parts of one listener share: its options, and the little that changes while it runs. One object for each
 * listener, made in listener.ts; nothing here outlives it.
 */
import type { Handler } from '../http/message.ts';
import type { Observe } from '../observe/observation.ts';
import type { Connection } from './connection.ts';
import type { ContentWatch } from './content-watch.ts';
import type { ServerLimits } from './limits.ts';

export type Context = {
  readonly handler: Handler;
  readonly observe: Observe;
  readonly limits: ServerLimits;
  /** Milliseconds since the epoch, for `Date`. */
  readonly clock: () => number;
  /** The time as an HTTP-date. */
  readonly formatDate: (ms: number) => string;
  /** Milliseconds that never go back, for durations and bounds. */
  readonly monotonic: () => number;
  readonly requestIdPrefix: string;
  readonly apiVersion: string;
  /** Connections of the listener's own port; not those of a server that the handler is mounted in. */
  readonly connections: Set<Connection>;
  readonly streams: Set<{ close(): void }>;
  readonly contentWatch: ContentWatch;
  /** Requests received so far: the counter in request ids. */
  received: number;
  /** Requests that are not answered yet. */
  underWay: number;
  draining: boolean;
};
