/** The shared state of one listener: its options, and the little that changes while it runs. Created in listener.ts. */

import type { Handler, Request } from '../http/message.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { MemoryBudget } from '../memory/budget.ts';
import type { OctetLine } from '../memory/program-memory.ts';
import type { LoopTurns } from '../observe/event-loop.ts';
import type { Observe } from '../observe/observation.ts';
import type { Fleet } from '../realtime/websocket/frames.ts';
import type { OpenSocket } from '../realtime/websocket/websocket-wire.ts';
import type { HttpProxy } from '../tunnel/proxy-call.ts';
import type { ConnectionShares, HeldAnswers } from './connection.ts';
import type { ContentWatch } from './content-reading.ts';
import type { ServerLimits } from './limits.ts';

export type HeldStream = {
  close(): void;
  sweep(nowMs: number): void;
};

/** The memory budget of requests, streams and WebSockets. */
export type ServerMemory = {
  readonly budget: MemoryBudget;
  readonly work: OctetLine;
  readonly made: OctetLine;
};

export type Context = {
  readonly handler: Handler;
  /** The pattern of the resource that a request is for. */
  readonly routeOf: (request: Request) => string | undefined;
  /** Targets of probes: health. */
  readonly probes: ReadonlySet<string>;
  readonly observe: Observe;
  readonly limits: ServerLimits;
  /** Milliseconds since the epoch, for `Date`. */
  readonly clock: () => number;
  readonly formatDate: (ms: number) => string;
  /** Milliseconds that never go back, for durations and bounds. */
  readonly monotonic: () => number;
  readonly requestIdPrefix: string;
  readonly apiVersion: string;
  /** The path before every path that clients see: `/backend`, or empty. */
  readonly root: string;
  /** Names and values of every answer of this program: its version, and that no browser guesses another media type. */
  readonly fieldsOfAll: readonly string[];
  readonly allow: string;
  /** Fields by which a page of this origin may read a response that no resource made; empty if it may not. */
  readonly corsFields: (origin: string | undefined) => readonly string[];
  /** The proxy (§4.10); undefined: CONNECT is answered 405. */
  readonly proxy: HttpProxy | undefined;
  /** A proxy is in front, which may not read a response before it has sent everything. */
  readonly behindProxy: boolean;
  /** Connections of the listener's own port, without those of a server that the handler is mounted in. */
  readonly connections: ConnectionShares;
  readonly streams: HeldAnswers<HeldStream>;
  /** Open WebSockets. The code that opens one adds it, and removes it after its close. */
  readonly sockets: HeldAnswers<OpenSocket>;
  readonly fleet: Fleet;
  readonly contentWatch: ContentWatch;
  readonly turns: LoopTurns;
  /** The address by which a caller without a principal is counted. */
  readonly addressOf: CallerAddress;
  readonly memory: ServerMemory;
  /** Requests received so far: the counter in request ids. */
  received: number;
  /** Requests without a complete response. */
  underWay: number;
  draining: boolean;
  /** See `keepTick` in listener.ts. */
  tick: object | undefined;
};
