/**
 * What the parts of one listener share: its options, and the little that changes while it runs. One object for each
 * listener, made in listener.ts; nothing here outlives it.
 */
import type { HttpProxy } from '../connections/proxy.ts';
import type { Fleet } from '../connections/websocket/fleet.ts';
import type { Handler } from '../http/message.ts';
import type { MemoryBudget } from '../memory/budget.ts';
import type { OctetLine } from '../memory/octet-line.ts';
import type { Observe } from '../observe/observation.ts';
import type { CallerAddress } from '../resources/rate-limit/caller-address.ts';
import type { ConnectionShares, HeldAnswers } from './connection-shares.ts';
import type { ContentWatch } from './content-watch.ts';
import type { ServerLimits } from './limits.ts';

/** A WebSocket that is open, as far as the end of the listener must know it. */
export type OpenSocket = {
  /** Ends it with a status code of RFC 6455 §7.4. */
  close(code: number, reason: string): void;
  terminate(): void;
  /** Ends it where its client takes nothing. */
  sweep(nowMs: number): void;
};

/** An event stream, likewise. */
export type HeldStream = {
  close(): void;
  sweep(nowMs: number): void;
};

/** The memory that requests, streams and WebSockets share. */
export type ServerMemory = {
  readonly budget: MemoryBudget;
  /** For content that is worked on. */
  readonly work: OctetLine;
};

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
  /** Value of Allow where CONNECT is refused. */
  readonly allow: string;
  /** What leads to other servers (§4.10); undefined: nothing does, and CONNECT is answered 405. */
  readonly proxy: HttpProxy | undefined;
  /** Connections of the listener's own port; not those of a server that the handler is mounted in. */
  readonly connections: ConnectionShares;
  readonly streams: HeldAnswers<HeldStream>;
  /** Whoever opens a WebSocket adds it, and takes it out when it has closed. */
  readonly sockets: HeldAnswers<OpenSocket>;
  /** What they have together. */
  readonly fleet: Fleet;
  readonly contentWatch: ContentWatch;
  /** The address that a caller without a principal is counted by. */
  readonly addressOf: CallerAddress;
  readonly memory: ServerMemory;
  /** Requests received so far: the counter in request ids. */
  received: number;
  /** Requests that are not answered yet. */
  underWay: number;
  draining: boolean;
};
