/** Messages between the supervisor and a worker. */
import type { MessagePort } from 'node:worker_threads';
import type { Running } from '../../compose.ts';
import type { Environment, WrittenSettings } from '../../config/load-settings.ts';
import type { HomeData } from '../../store/sqlite/home-state.ts';
import type { Tally } from '../../store/store.ts';

export type WorkerData = {
  /** From 1 on; a worker that replaces another has its number. */
  readonly number: number;
  readonly environment: Environment;
  readonly written: WrittenSettings;
  /** Identifies the configuration that the supervisor read; the worker refuses to serve another one. */
  readonly fingerprint: string;
  readonly port: number;
  readonly tlsPort: number | undefined;
  /** This worker's part of the memory budget. */
  readonly memoryBytesMax: number;
  /** Undefined on PostgreSQL. */
  readonly home: HomeData | undefined;
  /** The id of the supervisor, a full stop and a number. */
  readonly processId: string;
  /** When the process started, in milliseconds since the epoch. */
  readonly startedAt: number;
};

export type Started = Pick<Running, 'url' | 'tlsUrl' | 'adminKey' | 'madeSecrets'>;

/** Questions, each with its answer. */
export type Questions = {
  readonly tally: { readonly asked: readonly Tally[]; readonly answer: readonly number[] };
  readonly hasEnded: { readonly asked: string; readonly answer: boolean };
  /** The metrics of all workers. */
  readonly metrics: { readonly asked: undefined; readonly answer: string };
  /** The metrics of the worker that is asked. */
  readonly ownMetrics: { readonly asked: undefined; readonly answer: string };
  /** Whether the event loop of the worker turns: true, or no answer. */
  readonly turns: { readonly asked: undefined; readonly answer: true };
};

export type Message =
  /** From a worker. */
  | { readonly kind: 'ready'; readonly started: Started }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: number }
  /** An uncaught error: the worker drains and ends. */
  | { readonly kind: 'ending'; readonly message: string }
  | { readonly kind: 'join'; readonly port: MessagePort }
  /** To a worker. */
  | { readonly kind: 'stop'; readonly reason: string };
