/**
 * Digests of what processes that share a store must have in common: what they serve, and the settings by which each judges shared data. Equal
 * texts mean equal configurations. They contain no secret, and no setting can be derived from them.
 */
import type { Collection } from '../model/collection.ts';
import type { Configuration } from './configuration.ts';
import type { SettingName, Settings } from './settings.ts';

/** Settings that lead to contradicting processes when they differ. */
const commonSettings: readonly SettingName[] = [
  'idempotencySeconds',
  'operationSeconds',
  'storedQuerySeconds',
  'storedQueriesBytesMax',
  'eventRetentionSeconds',
  'rateLimitReads',
  'rateLimitWrites',
];

export type Fingerprint = {
  readonly program: string;
  readonly collections: string;
  readonly settings: string;
};

type FingerprintedConfiguration = Pick<Configuration, 'base' | 'apiVersion' | 'collections'> &
  Partial<Pick<Configuration, 'accounts'>>;

/**
 * @param program version of the program
 * @param digest a hash that is long enough to be free of collisions
 */
export function fingerprintOf(
  configuration: FingerprintedConfiguration,
  settings: Settings,
  program: string,
  digest: (text: string) => string,
): Fingerprint {
  const { base, apiVersion, accounts } = configuration;
  const served = [...configuration.collections.values(), ...(accounts === undefined ? [] : [accounts.users])];
  const collections = served.map(describe).sort();
  const common = commonSettings.map((name) => [name, settings[name]]);
  return {
    program,
    collections: digest(JSON.stringify([base, apiVersion, collections])),
    // Whether each process has an administrator key of its own, or all use the one in the store.
    settings: digest(JSON.stringify([...common, ['adminKey', settings.adminKey !== undefined]])),
  };
}

/** The configuration as one text, to compare what two threads of a process have read. */
export function fingerprintText(configuration: FingerprintedConfiguration, settings: Settings): string {
  return JSON.stringify([fingerprintOf(configuration, settings, '', (text) => text), settings]);
}

/** Everything in a collection that its responses depend on, as one text with sorted members. */
function describe(collection: Collection): string {
  return JSON.stringify(collection, (_name, value: unknown) => {
    if (value instanceof Set) return [...value].sort();
    if (value instanceof Map) return [...value.entries()];
    if (typeof value === 'function') return String(value);
    return sortMembers(value);
  });
}

/** The order of a schema's properties decides only the order of members, so processes may differ in it. */
function sortMembers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
