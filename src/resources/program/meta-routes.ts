/**
 * `/meta` and `/meta/settings` (§4.21): what the program is and how it is set, for administrators. Each process answers for itself. Secrets
 * are never shown, only that they are set.
 */
import type { ShownSetting } from '../../config/load-settings.ts';
import { type ActionLimits, actionResource } from '../../kernel/action.ts';
import { named, pageSchema } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { Difference } from '../../observe/differences.ts';
import { serviceTag } from './document.ts';

export type MetaOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly limits: ActionLimits;
  readonly version: string;
  readonly node: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly store: {
    readonly engine: 'sqlite' | 'postgresql';
    /** Undefined: the size is not known to the program. */
    readonly bytes: () => number | undefined;
    readonly process: string;
  };
  readonly settings: readonly ShownSetting[];
  readonly differences: () => readonly Difference[];
};

const mayRead = (principal: Principal) => permission('administrator', 'read', principal);

export function metaResources(options: MetaOptions): readonly Resource[] {
  return [programResource(options), settingsResource(options)];
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
  required: ['version', 'node', 'startedAt', 'process', 'store', 'differences'],
});

const programExample = {
  version: '1.0.0',
  node: '26.0.0',
  startedAt: '2026-08-01T09:30:00.000Z',
  process: '01k1jx7v2mh5s8b4c9d0e6f3ga',
  store: { engine: 'sqlite', bytes: 1_048_576 },
  differences: [],
};

function programResource(options: MetaOptions): Resource {
  const { base, limits, version, node, startedAt, store, differences } = options;
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta`, tag: serviceTag, name: 'Meta', noun: 'the program' },
      id: 'readMeta',
      summary: 'Read what the program is',
      description: 'Administrators only. The process that answers describes itself.',
      output: { schema: programSchema, example: programExample },
      codes: [],
      permission: mayRead,
      handler: () => ({
        content: {
          version,
          node,
          startedAt: new Date(startedAt).toISOString(),
          process: store.process,
          store: { engine: store.engine, bytes: store.bytes() ?? null },
          differences: differences(),
        },
      }),
    },
    limits,
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

function settingsResource({ base, limits, settings }: MetaOptions): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/settings`, tag: serviceTag },
      ...{ name: 'MetaSettings', noun: 'the settings of the program' },
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
