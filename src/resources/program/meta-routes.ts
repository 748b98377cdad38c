/**
 * `/meta` and the resources below it (§4.21): what the program is, how it is set, its store, slow lists and open
 * connections, for administrators. Each process answers for itself. Secrets are never shown, only that they are set.
 */
import type { ShownSetting } from '../../config/load-settings.ts';
import { type ActionLimits, actionResource } from '../../kernel/action.ts';
import { type Item, named, pageSchema } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { Difference } from '../../observe/differences.ts';
import type { OpenConnections, ShownConnection } from '../../observe/open-connections.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Store } from '../../store/store.ts';
import type { StoreReport } from '../../store/store-report.ts';
import type { SlowList, SlowLists } from '../collection/slow-lists.ts';
import { serviceTag } from './document.ts';

/** The process that answers. */
export type ProgramReport = {
  readonly version: string;
  readonly node: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Undefined: the size is not known to the program. */
  readonly storeBytes: () => number | undefined;
  readonly shownSettings: readonly ShownSetting[];
  /** The end of the certificate of the TLS port, as an ISO 8601 time; undefined: there is none. */
  readonly certificateEnd: () => Promise<string | undefined>;
  readonly differences: () => readonly Difference[];
};

type Reporting = Pick<Services, 'settings'> & { readonly store: Pick<Store, 'processId'> };

function engineOf({ settings }: Pick<Services, 'settings'>): 'sqlite' | 'postgresql' {
  return settings.databaseUrl === undefined ? 'sqlite' : 'postgresql';
}

const mayRead = (principal: Principal) => permission('administrator', 'read', principal);

export function metaResources(
  services: Reporting,
  base: string,
  program: ProgramReport,
): readonly Resource[] {
  return [
    programResource(services, base, program),
    settingsResource(services.settings, base, program.shownSettings),
  ];
}

const programSchema = named('Program', {
  description: 'The process that answers.',
  type: 'object',
  properties: {
    version: { type: 'string' },
    node: { type: 'string', description: 'Version of Node.' },
    startedAt: { type: 'string', format: 'date-time' },
    process: { type: 'string', description: 'Id of the process among all that ever opened the store.' },
    store: {
      type: 'object',
      properties: {
        engine: { enum: ['sqlite', 'postgresql'] },
        bytes: { type: ['integer', 'null'], description: 'Size of its files; null on PostgreSQL.' },
      },
      required: ['engine', 'bytes'],
    },
    tls: {
      description: 'The certificate of the TLS port; null: there is none.',
      type: ['object', 'null'],
      properties: { notAfter: { type: 'string', format: 'date-time' } },
      required: ['notAfter'],
    },
    differences: {
      type: 'array',
      description:
        'Other processes of the store that were started with another configuration, as this one noticed.',
      items: {
        type: 'object',
        properties: { what: { type: 'string' }, noticedAt: { type: 'string', format: 'date-time' } },
        required: ['what', 'noticedAt'],
      },
    },
  },
  required: ['version', 'node', 'startedAt', 'process', 'store', 'tls', 'differences'],
});

const programExample = {
  version: '1.0.0',
  node: '26.0.0',
  startedAt: '2026-08-01T09:30:00.000Z',
  process: '01k1jx7v2mh5s8b4c9d0e6f3ga',
  store: { engine: 'sqlite', bytes: 1_048_576 },
  tls: null,
  differences: [],
};

function programResource(services: Reporting, base: string, program: ProgramReport): Resource {
  const { version, node, startedAt, storeBytes, certificateEnd, differences } = program;
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta`, tag: serviceTag, name: 'Meta' },
      id: 'readMeta',
      summary: 'Read what the program is',
      description: 'Administrators only. The process that answers describes itself.',
      output: { schema: programSchema, example: programExample },
      codes: [],
      permission: mayRead,
      async handler() {
        const notAfter = await certificateEnd();
        return {
          content: {
            version,
            node,
            startedAt: new Date(startedAt).toISOString(),
            process: services.store.processId,
            store: { engine: engineOf(services), bytes: storeBytes() ?? null },
            tls: notAfter === undefined ? null : { notAfter },
            differences: differences(),
          },
        };
      },
    },
    services.settings,
  );
}

const plainValue = { type: ['string', 'number', 'boolean', 'null'] };

const settingSchema = named('Setting', {
  description: 'A setting of the process that answers.',
  type: 'object',
  properties: {
    name: { type: 'string' },
    variable: { type: 'string', description: 'The environment variable.' },
    section: { type: 'string' },
    meaning: { type: 'string' },
    unit: { type: ['string', 'null'] },
    value: { ...plainValue, description: 'Null for a secret.' },
    default: plainValue,
    source: { enum: ['default', 'configuration', 'environment', 'command line'] },
    secret: { type: 'boolean' },
  },
  required: ['name', 'variable', 'section', 'meaning', 'unit', 'value', 'default', 'source', 'secret'],
});

const settingExample: ShownSetting = {
  name: 'listLimitMax',
  variable: 'COMITY_LIST_LIMIT_MAX',
  section: 'Lists',
  meaning: 'Most resources on a page.',
  unit: 'resources',
  value: 1000,
  default: 1000,
  source: 'default',
  secret: false,
};

function settingsResource(limits: ActionLimits, base: string, settings: readonly ShownSetting[]): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/settings`, tag: serviceTag },
      ...{ name: 'MetaSettings' },
      id: 'listSettings',
      summary: 'List the settings with their sources',
      description: 'Administrators only. All settings are on one page; secrets are not shown.',
      output: {
        schema: pageSchema('Settings', 'The settings.', settingSchema),
        example: { items: [settingExample], nextCursor: null },
      },
      codes: [],
      permission: mayRead,
      handler: () => ({ content: { items: settings, nextCursor: null } }),
    },
    limits,
  );
}

// `/meta/store` (§4.21.5): size, documents, indexes and migrations of the store, for administrators. One report serves all who ask within
// ten seconds, so that no number of requests makes the store work more.

type ReportedMigration = Readonly<Record<string, string | number | null>>;

/** A report is given again for so long. */
const freshMs = 10_000;

/** The file system that has the files of the store. */
export type Disk = { readonly bytes: number; readonly freeBytes: number };

type ShownStore = {
  readonly engine: string;
  readonly readAt: string;
  readonly bytes: number;
  readonly disk: Disk | null;
  readonly schemaVersion: number;
  readonly collections: readonly {
    readonly name: string;
    readonly documents: number;
    readonly isEstimate: boolean;
    readonly bytes: number | null;
    readonly indexes: StoreReport['tables'][number]['indexes'];
  }[];
  readonly migrations: readonly ReportedMigration[];
};

const indexSchema: Item = {
  type: 'object',
  properties: {
    kind: {
      enum: ['index', 'unique', 'search'],
      description: '`unique` also refuses equal values; `search` has the words of the fields.',
    },
    fields: { type: 'array', items: { type: 'string' } },
    stands: {
      type: 'boolean',
      description: '`false`: it waits for a migration of documents, is still being filled, or is damaged.',
    },
  },
  required: ['kind', 'fields', 'stands'],
};

const collectionSchema: Item = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    documents: { type: 'integer', description: 'Without softly deleted ones, unless it is an estimate.' },
    isEstimate: { type: 'boolean', description: '`false`: they were counted, as up to 10,000 are.' },
    bytes: { type: ['integer', 'null'], description: 'With indexes; null on SQLite.' },
    indexes: { type: 'array', items: indexSchema },
  },
  required: ['name', 'documents', 'isEstimate', 'bytes', 'indexes'],
};

const migrationSchema: Item = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    collection: { type: 'string' },
    state: { enum: ['made', 'running', 'pending'] },
    at: { type: ['string', 'null'], format: 'date-time', description: 'When it was made, or begun.' },
    documents: { type: ['integer', 'null'], description: 'Documents that it looked at.' },
    changed: { type: ['integer', 'null'], description: 'Documents that it changed.' },
    program: { type: ['string', 'null'], description: 'Version of the program that made it.' },
  },
  required: ['id', 'collection', 'state', 'at', 'documents', 'changed', 'program'],
};

const storeSchema = named('StoreReport', {
  description: 'The store as it was at `readAt`.',
  type: 'object',
  properties: {
    engine: { enum: ['sqlite', 'postgresql'] },
    readAt: { type: 'string', format: 'date-time' },
    bytes: { type: 'integer', description: 'Octets on disk.' },
    disk: {
      type: ['object', 'null'],
      description: 'The file system of the store; null on PostgreSQL, and where it reports no size.',
      properties: { bytes: { type: 'integer' }, freeBytes: { type: 'integer' } },
      required: ['bytes', 'freeBytes'],
    },
    schemaVersion: { type: 'integer', description: "Number of the last migration of Comity's own tables." },
    collections: { type: 'array', items: collectionSchema },
    migrations: { type: 'array', items: migrationSchema, description: 'Migrations of documents.' },
  },
  required: ['engine', 'readAt', 'bytes', 'disk', 'schemaVersion', 'collections', 'migrations'],
});

const storeExample: ShownStore = {
  engine: 'sqlite',
  readAt: '2026-08-01T09:30:00.000Z',
  bytes: 1_048_576,
  disk: { bytes: 107_374_182_400, freeBytes: 53_687_091_200 },
  schemaVersion: 1,
  collections: [
    {
      ...{ name: 'products', documents: 120, isEstimate: false, bytes: null },
      indexes: [{ kind: 'unique', fields: ['sku'], stands: true }],
    },
  ],
  migrations: [
    {
      ...{ id: '2-split-name', collection: 'products', state: 'made', at: '2026-07-01T09:30:00.000Z' },
      ...{ documents: 118, changed: 118, program: '1.0.0' },
    },
  ],
};

type ReportingStore = Pick<Services, 'clock' | 'settings'> & {
  readonly store: Pick<Store, 'report'>;
  readonly disk: () => Promise<Disk | undefined>;
};

/** @param collections names of the tables to report */
export function storeResource(
  services: ReportingStore,
  base: string,
  collections: readonly string[],
  migrations: () => Promise<readonly ReportedMigration[]>,
): Resource {
  const read = keepFresh(services.clock, async (now) => {
    const { bytes, schemaVersion, tables } = await services.store.report(collections);
    return {
      ...{ engine: engineOf(services), readAt: new Date(now).toISOString(), bytes, schemaVersion },
      disk: (await services.disk()) ?? null,
      collections: tables.map(({ name, rows, isEstimate, bytes: size, indexes }) => ({
        ...{ name, documents: rows, isEstimate, bytes: size, indexes },
      })),
      migrations: await migrations(),
    };
  });
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/store`, tag: serviceTag, name: 'MetaStore' },
      id: 'readStore',
      summary: 'Read what the store has',
      description:
        'Administrators only. Tells of the collections of the configuration and of accounts. A report is given again for ten seconds.',
      output: { schema: storeSchema, example: storeExample },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: async () => ({ content: await read() }),
    },
    services.settings,
  );
}

/** Shares one report among all who ask meanwhile; a failed one is not kept. */
function keepFresh(
  clock: () => number,
  read: (now: number) => Promise<ShownStore>,
): () => Promise<ShownStore> {
  let kept: { readonly at: number; readonly shown: Promise<ShownStore> } | undefined;
  return () => {
    const now = clock();
    if (kept !== undefined && now >= kept.at && now - kept.at < freshMs) return kept.shown;
    const shown = read(now);
    const mine = { at: now, shown };
    kept = mine;
    shown.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return shown;
  };
}

// `/meta/slow-lists` (§4.21.7): the slowest lists that the process which answers has read lately, for administrators.

const count = { type: 'integer', minimum: 0 };
const time = { type: 'string', format: 'date-time' };

const slowListSchema = named('SlowList', {
  description: 'Reads of one list with one shape of filter and order.',
  type: 'object',
  properties: {
    list: { type: 'string', description: 'Name of the collection, or of another list.' },
    filter: { type: 'string', description: 'Fields and operators without values; empty: none.' },
    sort: { type: 'string', description: 'The order, or the fields that make groups.' },
    plan: { type: 'string', description: 'The token of `Comity-Plan`, such as `scan`.' },
    words: { type: 'string', description: 'The sentence of `Comity-Plan`, of the latest read.' },
    count: { ...count, description: 'Slow reads.' },
    failures: { ...count, description: 'Those of them that failed, for instance by a timeout.' },
    p50Ms: { type: 'number', description: 'About the median of the slow reads.' },
    maxMs: { type: 'number' },
    firstAt: time,
    lastAt: time,
  },
  required: [
    ...['list', 'filter', 'sort', 'plan', 'words', 'count', 'failures', 'p50Ms', 'maxMs'],
    ...['firstAt', 'lastAt'],
  ],
});

const slowListExample: SlowList = {
  list: 'products',
  filter: '(name eq and price gte)',
  sort: '-createdAt,-id',
  plan: 'scan',
  words: 'Looks at every document until the page is full: no index serves this filter and order.',
  count: 12,
  failures: 0,
  p50Ms: 45.3,
  maxMs: 120.4,
  firstAt: '2026-08-01T09:00:00.000Z',
  lastAt: '2026-08-01T09:30:00.000Z',
};

export function slowListResource(
  base: string,
  limits: ActionLimits,
  slowLists: Pick<SlowLists, 'list'>,
): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/slow-lists`, tag: serviceTag },
      ...{ name: 'SlowLists' },
      id: 'listSlowLists',
      summary: 'List the slowest lists of late',
      description:
        'Administrators only. The process that answers lists what it read in the last hour and what took `COMITY_SLOW_LIST_MS` or more, the slowest first, all on one page. Values of filters are not kept.',
      output: {
        schema: pageSchema('SlowLists', 'The slow lists.', slowListSchema),
        example: { items: [slowListExample], nextCursor: null },
      },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: () => ({ content: { items: slowLists.list(), nextCursor: null } }),
    },
    limits,
  );
}

// `/meta/connections` (§4.21.8): the event streams, WebSockets and tunnels of the process that answers, for administrators.

/** There may be ten thousand; the newest answer what is going on, and the metrics have the numbers. */
const shownMax = 200;

const connectionSchema = named('OpenConnection', {
  description: 'An event stream, a WebSocket or a tunnel that is open.',
  type: 'object',
  properties: {
    id: { type: 'string', description: 'Among those of this process.' },
    kind: { enum: ['stream', 'websocket', 'tunnel'] },
    principal: { type: ['string', 'null'], description: 'Null: it came without a credential.' },
    peer: { type: 'string', description: 'Address of the peer.' },
    openedAt: { type: 'string', format: 'date-time' },
    about: {
      type: 'string',
      description:
        'The query of a stream, the patterns of a WebSocket, the kind and destination of a tunnel.',
    },
    octets: { type: 'integer', description: 'Carried to the client; by a tunnel in both directions.' },
  },
  required: ['id', 'kind', 'principal', 'peer', 'openedAt', 'about', 'octets'],
});

const connectionExample: ShownConnection = {
  id: '7',
  kind: 'websocket',
  principal: 'usr_01k1jx7v2mh5s8b4c9d0e6f3ga',
  peer: '192.0.2.7',
  openedAt: '2026-08-01T09:30:00.000Z',
  about: 'products.* orders.created',
  octets: 48_210,
};

export function connectionsResource(
  base: string,
  limits: ActionLimits,
  connections: Pick<OpenConnections, 'newest'>,
): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/connections`, tag: serviceTag },
      ...{ name: 'MetaConnections' },
      id: 'listConnections',
      summary: 'List open streams, WebSockets and tunnels',
      description: `Administrators only. The newest ${shownMax} of the process that answers, on one page.`,
      output: {
        schema: pageSchema('Connections', 'The newest connections.', connectionSchema),
        example: { items: [connectionExample], nextCursor: null },
      },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: () => ({ content: { items: connections.newest(shownMax), nextCursor: null } }),
    },
    limits,
  );
}
