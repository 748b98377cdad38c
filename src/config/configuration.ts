/**
 * A configuration, checked and complete, from which compose.ts wires the program, and its fingerprint. It comes from a configuration file
 * (load-configuration.ts) or from a declaration passed to `createComity`.
 */
import { type TSchema, Type } from 'typebox';
import type { Collection, CollectionDeclaration } from '../model/collection.ts';
import { inspectAccounts, type ResolvedAccounts, resolveAccounts } from './accounts.ts';
import { type DeclaredAction, resolveActions } from './actions.ts';
import { type Referring, referringOf, resolveCollections } from './collections.ts';
import type { ConfigurationDeclaration } from './define.ts';
import { type DeclaredEventType, inspectEventTypes } from './event-types.ts';
import {
  type DeclaredSubscriber,
  inspectJobs,
  inspectNamesInFunctions,
  inspectSubscribedTypes,
  inspectSubscribers,
} from './inspect-functions.ts';
import { inspectSenders } from './inspect-senders.ts';
import { ConfigurationError, isRecord, kindOf } from './inspection.ts';
import type { DeclaredJob } from './jobs.ts';
import { type DeclaredMail, inspectMail } from './mail-templates.ts';
import { type DeclaredMigration, inspectMigrations } from './migrations.ts';
import type { NamedInFunctions } from './named-in-functions.ts';
import { inspectPortal, type Portal } from './portal.ts';
import { reservedBases } from './reserved-names.ts';
import type { DeclaredSender } from './senders.ts';
import { commonSettings, type SettingOverrides, type Settings } from './settings.ts';
import { inspectShape, type Reporter, textThat, textUpTo, unshaped } from './shape.ts';
import { inspectIssuers, type TrustedIssuer } from './trusted-issuers.ts';
import { inspectTunnel, type TunnelAccess } from './tunnel.ts';
import { inspectWebhooks, type WebhookSchedules } from './webhook-schedules.ts';

export type Configuration = {
  readonly title: string;
  /** Starts with a slash and does not end with one. */
  readonly base: string;
  readonly apiVersion: string;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly accounts: ResolvedAccounts;
  /** The actions of all collections, and those of the configuration itself. */
  readonly actions: readonly DeclaredAction[];
  readonly eventTypes: ReadonlyMap<string, DeclaredEventType>;
  readonly issuers: readonly TrustedIssuer[];
  readonly mail: DeclaredMail;
  readonly schedules: WebhookSchedules;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly subscribers: ReadonlyMap<string, DeclaredSubscriber>;
  readonly jobs: ReadonlyMap<string, DeclaredJob>;
  /** In the order in which they run. */
  readonly migrations: readonly DeclaredMigration[];
  readonly portal: Portal;
  readonly tunnel: TunnelAccess;
  /** Of the declaration; undefined: it is no file. */
  readonly module: URL | undefined;
  /** Checked by `loadSettings`, together with the environment. */
  readonly settings: SettingOverrides;
};

const titleCharactersMax = 200;
const basePath = /^(?:\/[A-Za-z0-9._~-]+)+$/;
const versionToken = /^[A-Za-z0-9._-]{1,64}$/;

const configurationShape = Type.Object(
  {
    title: Type.Optional(
      textUpTo(titleCharactersMax, `must be a string of 1 to ${titleCharactersMax} characters`),
    ),
    base: Type.Optional(
      textThat(isBase, {
        must: 'must be a path such as /api/v1, outside the pages that the program itself serves',
      }),
    ),
    apiVersion: Type.Optional(
      textThat((version) => versionToken.test(version), {
        must: 'must be a string of 1 to 64 letters, digits and . _ -',
      }),
    ),
    ...unshaped('accounts', 'actions', 'collections', 'eventTypes', 'issuers', 'jobs', 'mail', 'migrations'),
    ...unshaped('portal', 'senders', 'settings', 'subscribers', 'tunnel', 'webhooks'),
  } satisfies Record<keyof ConfigurationDeclaration, TSchema>,
  { calls: 'member of the configuration' },
);

/**
 * Checks a declaration and fills in its defaults.
 * @param warn receives a sentence about each declaration that works but will surprise
 * @param module of the declaration: paths in it begin in its folder, and without it in the working directory
 * @param inFunctions the names that the source of its functions has as literals
 * @throws ConfigurationError with every mistake
 */
export function resolveConfiguration(
  declaration: ConfigurationDeclaration,
  warn?: (sentence: string) => void,
  module?: URL,
  inFunctions?: NamedInFunctions,
): Configuration {
  const written: unknown = declaration;
  if (!isRecord(written)) {
    throw new ConfigurationError([
      `the configuration must be what defineConfig returns, not ${kindOf(written)}`,
    ]);
  }
  const mistakes: string[] = [];
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  const {
    title = 'Comity',
    base = '/api/v1',
    apiVersion = '1',
  } = inspectShape(configurationShape, written, '', report) ?? {};
  const { settings = {} } = written;
  if (!isRecord(settings)) mistakes.push(`settings must be an object, not ${kindOf(settings)}`);
  else if (Object.hasOwn(settings, 'config')) {
    mistakes.push(
      'settings.config cannot be set in the configuration file itself; set COMITY_CONFIG or --config instead',
    );
  }
  const named = isRecord(written.collections) ? written.collections : {};
  const ofAccounts = inspectAccounts(written.accounts, Object.keys(named), mistakes, warn ?? ignore);
  const accountReferences = ofAccounts === undefined ? [] : referringOf({ users: ofAccounts });
  const collections = collectionsOf(written.collections, mistakes, warn, accountReferences);
  const actions = resolveActions(written, collections, mistakes);
  const eventTypes = inspectEventTypes(written.eventTypes, new Set(collections.keys()), mistakes);
  const issuers = inspectIssuers(written.issuers, mistakes);
  const before = mistakes.length;
  const mail = inspectMail(written.mail, module, mistakes);
  const templates = mistakes.length > before ? undefined : mail.templates;
  const schedules = inspectWebhooks(written.webhooks, report);
  const senders = inspectSenders(written.senders, mistakes);
  const subscribers = inspectSubscribers(written.subscribers, mistakes);
  const names = { collections: new Set(Object.keys(named)), eventTypes, templates };
  inspectSubscribedTypes(subscribers, names, mistakes);
  if (inFunctions !== undefined) inspectNamesInFunctions(inFunctions, names, mistakes);
  const jobs = inspectJobs(written.jobs, mistakes);
  const migrations = inspectMigrations(written.migrations, collections, mistakes);
  const [tunnel, portal] = [inspectTunnel(written.tunnel, mistakes), inspectPortal(written.portal, mistakes)];
  if (mistakes.length > 0)
    throw new ConfigurationError(mistakes, { settings: isRecord(settings) ? settings : {} });
  const declared = named as Readonly<Record<string, CollectionDeclaration>>;
  return {
    ...{ title, base, apiVersion },
    collections,
    accounts: resolveAccounts(ofAccounts, [...referringOf(declared), ...accountReferences]),
    actions,
    eventTypes,
    issuers,
    mail,
    schedules,
    senders,
    subscribers,
    jobs,
    migrations,
    ...{ portal, tunnel, module },
    settings: settings as SettingOverrides,
  };
}

function collectionsOf(
  declared: unknown,
  mistakes: string[],
  warn: ((sentence: string) => void) | undefined,
  ofAccounts: readonly Referring[],
): ReadonlyMap<string, Collection> {
  try {
    return resolveCollections(declared as Readonly<Record<string, CollectionDeclaration>>, warn, ofAccounts);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    mistakes.push(...error.mistakes);
    return new Map();
  }
}

function isBase(base: string): boolean {
  const segments = base.split('/').slice(1);
  const dotted = segments.some((segment) => segment === '.' || segment === '..');
  return basePath.test(base) && !dotted && !reservedBases.has(segments[0] ?? '');
}

function ignore(): void {
  // Warnings were not asked for.
}

// Digests of what processes that share a store must have in common: what they serve, and the settings by which each judges shared data. Equal
// texts mean equal configurations. They contain no secret, and no setting can be derived from them.

type Fingerprint = {
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
