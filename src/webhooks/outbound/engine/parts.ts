/** What the engine is made with, and what its parts share. */
import type { Observe } from '../../../observe/observation.ts';
import type { Store } from '../../../store/store.ts';
import type { Claim, Send, Settle } from '../claim.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import type { Lanes } from '../lanes.ts';
import type { Wakes } from '../wakes.ts';
import type { Alarm } from './alarm.ts';
import type { BreakerSettings } from './breaker.ts';
import type { Capacity, CapacityTicket } from './capacity.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import type { Queues } from './queues.ts';
import type { Timers } from './timers.ts';
import type { Turns } from './turns.ts';

export type EngineSettings = BreakerSettings & {
  readonly webhookInFlightMax: number;
  readonly webhookEndpointInFlightDefault: number;
  readonly webhookResendsInFlightMax: number;
};

export type EngineOptions = {
  readonly store: Pick<Store, 'plan' | 'read' | 'shared'>;
  readonly directory: Pick<EndpointDirectory, 'get' | 'all' | 'onChange'>;
  readonly wakes: Pick<Wakes, 'onWake'>;
  readonly lanes: Pick<Lanes, 'owns' | 'hold' | 'release' | 'onChange'>;
  readonly send: Send;
  readonly settle: Settle;
  /** Milliseconds since the epoch: what deliveries are due by. */
  readonly clock: () => number;
  /** Milliseconds that no setting of the clock changes: how long something took. */
  readonly monotonic: () => number;
  /** Uniformly from 0 to 1. */
  readonly random: () => number;
  readonly timers?: Timers;
  readonly settings: EngineSettings;
  readonly observe: Observe;
};

/** One attempt that has begun. */
export type Attempt = {
  readonly queue: EndpointQueue;
  readonly claim: Claim;
  /** Whether the breaker lets no other begin before its end. */
  readonly probe: boolean;
  /** Its number in the window. */
  readonly number: number;
  readonly ticket: CapacityTicket;
};

/** What the parts of the engine share. */
export type EngineParts = EngineOptions & {
  readonly timers: Timers;
  readonly queues: Queues;
  readonly capacity: Capacity;
  readonly alarm: Alarm;
  /** Where capacity is wanting for one endpoint though not for all. */
  readonly held: Set<EndpointQueue>;
  /** Where it is wanting for the endpoint's party. */
  readonly crowded: Set<EndpointQueue>;
  readonly turns: Turns<EndpointQueue>;
  /** Whether all endpoints that are sent to are one party's. */
  readonly isAlone: () => boolean;
  /** With deliveries that somebody asked for and that wait. */
  readonly asking: Set<EndpointQueue>;
  readonly isRunning: () => boolean;
  /** It may be able to begin something: gives it a turn. */
  readonly ready: (queue: EndpointQueue) => void;
  /** Reads what is due; true where it is there already. */
  readonly read: (queue: EndpointQueue) => boolean;
  readonly start: (attempt: Attempt) => void;
  /** Aborted when what is under way is given up. */
  readonly sending: AbortSignal;
  /** Aborted when nobody waits for the store any longer. */
  readonly settling: AbortSignal;
};
