/**
 * What processes that share a store must have in common, as short texts to compare: what they serve, and the settings that
 * each of them judges shared data by. Equal texts mean equal configurations; no setting can be read out of them, and
 * no secret goes into them.
 */
import type { Collection } from '../model/collection.ts';
import type { Configuration } from './configuration.ts';
import type { SettingName, Settings } from './settings.ts';

/** Settings by which one process would undo or contradict what another does. */
const commonSettings: readonly SettingName[] = [
  'idempotencySeconds',
  'operationSeconds',
  'storedQuerySeconds',
  'storedQueryBytesMax',
  'storedQueriesPerOwnerBytesMax',
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

/**
 * @param program version of the program
 * @param digest a hash of a text, long enough that no two configurations share one
 */
export function fingerprintOf(
  configuration: Pick<Configuration, 'base' | 'apiVersion' | 'collections'>,
  settings: Settings,
  program: string,
  digest: (text: string) => string,
): Fingerprint {
  const { base, apiVersion } = configuration;
  const collections = [...configuration.collections.values()].map(described).sort();
  const common = commonSettings.map((name) => [name, settings[name]]);
  return {
    program,
    collections: digest(JSON.stringify([base, apiVersion, collections])),
    // Whether each has a key of its own, or all take the one in the store.
    settings: digest(JSON.stringify([...common, ['adminKey', settings.adminKey !== undefined]])),
  };
}

/** Everything of a collection that its answers depend on, as one text; members in one order, whichever they were written in. */
function described(collection: Collection): string {
  return JSON.stringify(collection, (_name, value: unknown) => {
    if (value instanceof Set) return [...value].sort();
    if (value instanceof Map) return [...value.entries()];
    return ordered(value);
  });
}

/** The order of the properties of a schema is that of a representation's members, but nobody's answers contradict each other by it. */
function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
