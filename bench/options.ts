/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util';

export const rowNames = [
  'read',
  'not-modified',
  'list',
  'query',
  'list-new',
  'query-new',
  'create',
  'busy-row',
  'busy-own-rows',
  'authenticated',
  'logins',
  'scan',
  'scale',
  'commits',
  'webhooks',
  'webhook-backlog',
  'webhook-peer',
  'received',
  'functions',
  'bulk',
  'search',
  'migrations',
  'relations',
  'files',
  'http2',
  'fan-out',
  'tunnel',
] as const;
export type RowName = (typeof rowNames)[number];
/** The rows that compare a kind of request with its floor. */
export type PairName = Exclude<
  RowName,
  | 'busy-row'
  | 'busy-own-rows'
  | 'functions'
  | 'bulk'
  | 'search'
  | 'migrations'
  | 'relations'
  | 'files'
  | 'authenticated'
  | 'logins'
  | 'scan'
  | 'scale'
  | 'commits'
  | 'received'
  | WebhookRowName
  | ConnectionRowName
>;
/** The rows of what is sent, measured with programs of their own. */
export type WebhookRowName = 'webhooks' | 'webhook-backlog' | 'webhook-peer';
/** The rows of connections, which have nothing to do with the kind of store: measured over SQLite alone. */
export type ConnectionRowName = 'http2' | 'fan-out' | 'tunnel';

const singleNames: ReadonlySet<RowName> = new Set([
  ...([
    'busy-row',
    'busy-own-rows',
    'functions',
    'bulk',
    'search',
    'migrations',
    'relations',
    'files',
    'authenticated',
    'logins',
    'scan',
    'scale',
    'commits',
    'received',
  ] as const),
  ...(['webhooks', 'webhook-backlog', 'webhook-peer'] as const),
  ...(['http2', 'fan-out', 'tunnel'] as const),
]);

export function isPairName(name: RowName): name is PairName {
  return !singleNames.has(name);
}

export function isWebhookRow(name: RowName): name is WebhookRowName {
  return name.startsWith('webhook');
}

export function isConnectionRow(name: RowName): name is ConnectionRowName {
  return name === 'http2' || name === 'fan-out' || name === 'tunnel';
}

export const storeNames = ['sqlite', 'postgres'] as const;
export type StoreName = (typeof storeNames)[number];

export type BenchOptions = {
  readonly stores: readonly StoreName[];
  /** By store; a million rows take PostgreSQL too long to be loaded one by one unless asked for. */
  readonly rows: Readonly<Record<StoreName, readonly number[]>>;
  readonly only: readonly RowName[];
  readonly warmupMs: number;
  readonly measuredMs: number;
  /** Rounds before them that are thrown away. */
  readonly settlingRounds: number;
  readonly rounds: number;
  readonly connections: number;
  /** Reads a second while something else goes on: scans, logins. */
  readonly scanReadsPerSecond: number;
  readonly jsonFile: string | undefined;
  readonly writeDocs: boolean;
  /** Two copies of each floor against each other: the noise of the machine. */
  readonly noise: boolean;
  /** A commit to compare this tree with. */
  readonly compare: string | undefined;
};

export const usage = `Usage: npm run bench -- [options]
  --quick             1,000 rows, short cells: a smoke test of under 20 s
  --store sqlite      or postgres (default both, one after the other)
  --rows 1000,100000  stored rows (default 1000,100000 and, for SQLite, 1000000)
  --only read,list    of ${rowNames.join(', ')};
                      webhook-peer takes redis-server and measures webhooks besides;
                      for received, rows are keys of messages, of which 10000000
                      take some minutes to be stored;
                      http2, fan-out and tunnel are measured with --store sqlite,
                      commits with --store postgres
  --seconds N         measured seconds of a cell (default 2)
  --rounds N          interleaved rounds of all cells (default 5)
  --connections N     connections, one outstanding request each (default 64)
  --scan-rate N       reads a second while a scan or logins run (default 2000)
  --noise             the floors against themselves
  --compare REF       this tree against another commit, without floors; ends with 1
                      where a request costs more than a fifth more
  --json FILE         write all figures
  --write-docs        write the table into docs/performance.md`;

/** Reads the options; throws a TypeError or RangeError that names what is wrong. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      store: { type: 'string' },
      rows: { type: 'string' },
      only: { type: 'string' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      connections: { type: 'string', default: '64' },
      'scan-rate': { type: 'string', default: '2000' },
      noise: { type: 'boolean', default: false },
      compare: { type: 'string' },
      json: { type: 'string' },
      'write-docs': { type: 'boolean', default: false },
    },
  });
  const { quick } = values;
  const seconds = positive('--seconds', values.seconds ?? (quick ? '0.25' : '2'));
  return {
    stores: (values.store ?? storeNames.join(',')).split(',').map(storeName),
    rows: {
      sqlite: rowsFrom(values.rows ?? (quick ? '1000' : '1000,100000,1000000')),
      postgres: rowsFrom(values.rows ?? (quick ? '1000' : '1000,100000')),
    },
    only: (values.only ?? rowNames.join(',')).split(',').map(rowName),
    warmupMs: quick ? 200 : 500,
    measuredMs: seconds * 1000,
    settlingRounds: quick ? 0 : 3,
    rounds: positive('--rounds', values.rounds ?? (quick ? '1' : '5')),
    connections: positive('--connections', values.connections),
    scanReadsPerSecond: positive('--scan-rate', values['scan-rate']),
    jsonFile: values.json,
    writeDocs: values['write-docs'],
    noise: values.noise,
    compare: values.compare,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value))
    throw new RangeError(`${name} must be a positive number, got "${text}"`);
  return value;
}

function rowsFrom(text: string): readonly number[] {
  return text.split(',').map((rows) => positive('--rows', rows));
}

function storeName(text: string): StoreName {
  const found = storeNames.find((name) => name === text);
  if (found === undefined)
    throw new RangeError(`--store must name ${storeNames.join(' or ')}, got "${text}"`);
  return found;
}

function rowName(text: string): RowName {
  const found = rowNames.find((name) => name === text);
  if (found === undefined) throw new RangeError(`--only must name ${rowNames.join(', ')}, got "${text}"`);
  return found;
}
