/**
 * `/meta/store` (§4.21.5): size, documents, indexes and migrations of the store, for administrators. One report serves all who ask within
 * ten seconds, so that no number of requests makes the store work more.
 */
import { type ActionLimits, actionResource } from '../../kernel/action.ts';
import { type Item, named } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { Store } from '../../store/store.ts';
import type { StoreReport } from '../../store/store-report.ts';
import { serviceTag } from './document.ts';

export type ReportedMigration = Readonly<Record<string, string | number | null>>;

export type StoreRoutesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly limits: ActionLimits;
  readonly store: Pick<Store, 'report'>;
  readonly engine: 'sqlite' | 'postgresql';
  /** Names of the tables to tell of. */
  readonly collections: readonly string[];
  readonly migrations: () => Promise<readonly ReportedMigration[]>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
};

/** A report is given again for so long. */
const freshMs = 10_000;

type Shown = {
  readonly engine: string;
  readonly readAt: string;
  readonly bytes: number;
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

const schema = named('StoreReport', {
  description: 'The store as it was at `readAt`.',
  type: 'object',
  properties: {
    engine: { enum: ['sqlite', 'postgresql'] },
    readAt: { type: 'string', format: 'date-time' },
    bytes: { type: 'integer', description: 'Octets on disk.' },
    schemaVersion: { type: 'integer', description: "Number of the last migration of Comity's own tables." },
    collections: { type: 'array', items: collectionSchema },
    migrations: { type: 'array', items: migrationSchema, description: 'Migrations of documents.' },
  },
  required: ['engine', 'readAt', 'bytes', 'schemaVersion', 'collections', 'migrations'],
});

const example: Shown = {
  engine: 'sqlite',
  readAt: '2026-08-01T09:30:00.000Z',
  bytes: 1_048_576,
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

export function storeResource(options: StoreRoutesOptions): Resource {
  const { base, limits } = options;
  const read = keepFresh(options);
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/store`, tag: serviceTag, name: 'MetaStore', noun: 'the store' },
      id: 'readStore',
      summary: 'Read what the store has',
      description:
        'Administrators only. Tells of the collections of the configuration and of accounts. A report is given again for ten seconds.',
      output: { schema, example },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: async () => ({ content: await read() }),
    },
    limits,
  );
}

/** Shares one report among all who ask meanwhile; a failed one is not kept. */
function keepFresh(options: StoreRoutesOptions): () => Promise<Shown> {
  const { clock } = options;
  let kept: { readonly at: number; readonly shown: Promise<Shown> } | undefined;
  return () => {
    const now = clock();
    if (kept !== undefined && now >= kept.at && now - kept.at < freshMs) return kept.shown;
    const shown = report(options, now);
    const mine = { at: now, shown };
    kept = mine;
    shown.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return shown;
  };
}

async function report(options: StoreRoutesOptions, now: number): Promise<Shown> {
  const { store, engine, collections, migrations } = options;
  const { bytes, schemaVersion, tables } = await store.report(collections);
  return {
    ...{ engine, readAt: new Date(now).toISOString(), bytes, schemaVersion },
    collections: tables.map(({ name, rows, isEstimate, bytes: size, indexes }) => ({
      ...{ name, documents: rows, isEstimate, bytes: size, indexes },
    })),
    migrations: await migrations(),
  };
}
