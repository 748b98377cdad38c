/**
 * What the load generator is told: one JSON value on its standard input. And what it answers: one JSON value on
 * its standard output. The kinds of requests are those of the table that `bench/run.ts` prints.
 */
import type { SigningScheme } from '../received/messages.ts';
import type { LatencySummary } from './histogram.ts';

/** `list` and `query` ask the same few hundred questions again and again, `list-new` and `query-new` never one twice. */
export type RequestKind =
  | 'constant'
  | 'read'
  | 'not-modified'
  | 'list'
  | 'list-new'
  | 'query'
  | 'query-new'
  | 'create'
  | 'change'
  | 'search'
  | 'received';

/** What `received` sends: signed messages, each key one that was never sent before. */
export type ReceivedLoad = {
  readonly scheme: SigningScheme;
  /** How often each message is sent, the first time included. */
  readonly sendings: number;
};

export type LoadPlan = {
  readonly host: string;
  readonly port: number;
  readonly kind: RequestKind;
  /** Connections, each with one outstanding request. */
  readonly connections: number;
  readonly warmupMs: number;
  readonly measuredMs: number;
  /** Stored rows, from whose identifiers the requests choose. */
  readonly rows: number;
  /** Path of the collection, for example `/api/v1/products`. */
  readonly path: string;
  /** Field lines sent with each request, each ended by CRLF. */
  readonly fieldLines: string;
  /** Each read brings another one of so many API keys of `bench/api-key.ts`. */
  readonly keys?: number;
  /** The generator never sleeps (polling.ts), if it has a processor of its own. */
  readonly polls: boolean;
  /** Requests a second over all connections; undefined sends as fast as answers come. */
  readonly ratePerSecond?: number;
  /** First index of the products that `create` sends. */
  readonly createFrom: number;
  /** The category that created products name. */
  readonly categoryId: string;
  /** Of the kind `received` alone. */
  readonly received?: ReceivedLoad;
};

export type LoadResult = {
  readonly requestsPerSecond: number;
  /** Answers since the first request, warm-up included. */
  readonly answersTotal: number;
  readonly latency: LatencySummary;
  /** Share of one processor that the generator itself needed while measuring, without the turns of polling that took nothing. */
  readonly generatorBusy: number;
  /** Processor time of the generator from its start, in microseconds. */
  readonly generatorUs: number;
  readonly sampled: number;
  readonly errors: number;
  /** The first few faults in words. */
  readonly faults: readonly string[];
  /** Some of the `Location` values of created rows, to be read back by the caller. */
  readonly locations: readonly string[];
};
