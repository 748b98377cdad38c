/** What the figures must reach: each a ratio within one run. */
import type { PairName, RowName, StoreName } from './options.ts';

/** Least ratio of Comity's requests a second to the floor's. */
export const leastRatio: Readonly<Record<StoreName, Readonly<Record<PairName, number>>>> = {
  sqlite: {
    read: 0.85,
    'not-modified': 0.85,
    list: 0.7,
    query: 0.7,
    'list-new': 0.7,
    'query-new': 0.7,
    create: 0.8,
  },
  postgres: {
    read: 0.8,
    'not-modified': 0.8,
    list: 0.7,
    query: 0.7,
    'list-new': 0.7,
    'query-new': 0.7,
    create: 0.7,
  },
};

/** Least times as many requests a second with twice the processors. */
export const scaleLeast: Readonly<Record<StoreName, Readonly<Record<'read' | 'create', number>>>> = {
  sqlite: { read: 1.8, create: 1.6 },
  postgres: { read: 1.6, create: 1.6 },
};

/** Least times as many creates a second in two schemas as in one, where the lock of the counter is the bound. */
export const shardsLeast = 1.6;

/** Most that a request may cost with the most rows against the fewest. */
export const growthMost = 1.3;
/** Least ratio of reads with a credential to the same reads without one. */
export const authenticatedLeast = 0.9;
/** Most that eight logins under way may raise the p99 of reads. */
export const loginsP99Most = 2;
/** Most that a scan in progress may raise the p99 of reads. */
export const scanP99Most = 2;
/** Least ratio of changes of one row to the same changes of many. */
export const busyRowLeast = 0.5;
/** Least ratio of a download of a long file to that of node:http with pipeline. */
export const filesDownloadLeast = 0.9;
/** Least ratio of an upload of a long file to one by node:http with pipeline into a synchronised file. */
export const filesUploadLeast = 0.7;
/** Least ratio of either to that of a peer. */
export const filesToPeersLeast = 1;
/** Most memory that 64 uploads at once may take above that of the idle program. */
export const filesMemoryMebibytesMost = 40;
/** Most of it, of what a peer takes. */
export const filesMemoryToPeersMost = 0.5;
/** Least times as many documents a second by bulk creates as by single ones, over one connection. */
export const bulkLeast = 5;
/** Least documents a minute by bulk creates over one connection. */
export const bulkMinuteLeast = 50_000;
/** Least ratio of the time of plain SQL to that of an aggregate query. */
export const aggregateLeast = 0.15;
/** Most that a search may cost with the most rows against the fewest. */
export const searchGrowthMost = 1.5;
/** Most that the p99 of reads may be beside a migration, of that alone. */
export const migrationReadsMost = 2;
/** Least ratio of a list with the documents that it refers to, to the list alone. */
export const expandLeast = 0.6;
/** Least ratio of a list under a rule over a parent to that under a rule over an own field. */
export const relatedRuleLeast = 0.6;
/** Least ratio of what functions do to the same without them. */
export const functionLeast = 0.9;
/** Most that the p99 of changes of one row by a crowd may be of the median. */
export const busyRowP99Most = 20;
export const idleMemoryBytesMax = 90 * 1_000_000;
/** Over data that an earlier process left. */
export const readyMsMax = 300;
/** Webhooks out: each a ratio within one run, but for the one time. */
export const webhookTargets = {
  /** Least deliveries a second, of those of bare signed posts. */
  toBareLeast: { sqlite: 0.45, postgres: 0.35 } satisfies Record<StoreName, number>,
  arrivalP95MsMost: 20,
  /** Most that hanging receivers may raise the p95 of the others. */
  hangingRatioMost: 1.5,
  /** Most that a delivery may cost among a million against among a thousand. */
  backlogCostMost: 1.3,
} as const;
/** Webhooks in. */
export const receivedTargets = {
  /** Least messages a second, of those of the floor. */
  toFloorLeast: 0.7,
  /** Most that the slowest of a hundred answers may take while handlers are stuck, at half of the rate above. */
  stuckP99MsMost: 50,
} as const;
/** Connections. */
export const connectionTargets = {
  /** Least requests a second over HTTP/2, of those of the stream API of `node:http2`. */
  http2Least: 0.9,
  /** Least deliveries a second to WebSockets, of those of bare `ws`. */
  fanOutLeast: 0.8,
  /** Most that an idle WebSocket may take beyond one of bare `ws`. */
  idleSocketBytesMost: 20 * 1024,
  /** Least octets a second through a tunnel, of those of squid. */
  toSquidLeast: 1,
} as const;
/** Most that a request may cost against another commit (`--compare`). */
export const lossMost = 1.2;
/** Medians of two equal programs differ by less. */
export const comparisonNoise = 0.05;
/**
 * Processor time of a request against the floor's, each in its cheapest of eight rounds of a second, on two shared cores: what
 * test/full/measured/costs.test.ts holds. Runs of 2026-12-01 had 1.78 to 2.41 for a create, and 1.97 to 2.16 with the program of 2026-11-27;
 * 0.98 to 1.21 for a read, and 0.86 to 1.07 for a list.
 */
export const processorRatios = { read: 1.05, list: 1.1, create: 2 } as const;
/** Two equal programs must come out within this of 1. */
export const noiseMost = 0.05;

export const titles: Readonly<Record<RowName, string>> = {
  read: 'read by id',
  'not-modified': 'conditional, 304',
  list: 'list of 20 by an index, 256 different',
  query: 'QUERY of 20, JSON body, 256 different',
  'list-new': 'list of 20, never the same twice',
  'query-new': 'QUERY of 20, never the same twice',
  create: 'durable create + event',
  'busy-row': 'changes of one row',
  'busy-own-rows': 'changes of one row of Comity',
  authenticated: 'read by id with a credential',
  logins: 'read by id while eight log in',
  scan: 'read by id under a scan',
  scale: 'two processes against one',
  commits: 'commits of one store',
  webhooks: 'webhooks out',
  'webhook-backlog': 'webhooks with many waiting',
  'webhook-peer': 'webhooks beside BullMQ',
  received: 'webhooks in',
  functions: 'functions of an application',
  bulk: 'bulk requests and aggregates',
  search: 'searches by an index of words',
  migrations: 'a migration of all documents',
  relations: 'relations',
  files: 'files',
  http2: 'HTTP/2',
  'fan-out': 'events to WebSockets',
  tunnel: 'tunnels',
};
