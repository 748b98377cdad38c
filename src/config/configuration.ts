/**
 * A configuration, checked and complete, from which compose.ts wires the program. It comes from a configuration file (load-configuration.ts)
 * or from a declaration passed to `createComity`.
 */
import type { Collection, CollectionDeclaration } from '../model/collection.ts';
import { type ResolvedAccounts, resolveAccounts } from './accounts.ts';
import { type DeclaredAction, resolveActions } from './actions.ts';
import { type Referring, referringOf, resolveCollections } from './collections.ts';
import type { ConfigurationDeclaration } from './define.ts';
import { type DeclaredEventType, inspectEventTypes } from './event-types.ts';
import { inspectAccounts } from './inspect-accounts.ts';
import { inspectJobs, inspectSubscribers, warnOfMisspeltEvents } from './inspect-functions.ts';
import { inspectSenders } from './inspect-senders.ts';
import { inspectTunnel } from './inspect-tunnel.ts';
import { ConfigurationError, isRecord, kindOf } from './inspection.ts';

import type { DeclaredJob } from './jobs.ts';
import { inspectMail, type MailOptions } from './mail-templates.ts';
import { type DeclaredMigration, inspectMigrations } from './migrations.ts';
import { suggestion } from './nearest.ts';
import { inspectPortal, type Portal } from './portal.ts';
import { reservedBases } from './reserved-names.ts';
import type { DeclaredSender } from './senders.ts';
import type { SettingOverrides } from './settings.ts';
import type { DeclaredSubscriber } from './subscribers.ts';
import { inspectIssuers, type TrustedIssuer } from './trusted-issuers.ts';
import type { TunnelAccess } from './tunnel.ts';
import { inspectSchedules, type WebhookSchedules } from './webhook-schedules.ts';

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
  readonly mail: MailOptions;
  readonly schedules: WebhookSchedules;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly subscribers: ReadonlyMap<string, DeclaredSubscriber>;
  readonly jobs: ReadonlyMap<string, DeclaredJob>;
  /** In the order in which they run. */
  readonly migrations: readonly DeclaredMigration[];
  readonly portal: Portal;
  readonly tunnel: TunnelAccess;
  /** Checked by `loadSettings`, together with the environment. */
  readonly settings: SettingOverrides;
};

const known: ReadonlySet<string> = new Set<keyof ConfigurationDeclaration>([
  'accounts',
  'actions',
  'title',
  'base',
  'apiVersion',
  'collections',
  'eventTypes',
  'issuers',
  'jobs',
  'mail',
  'migrations',
  'portal',
  'senders',
  'settings',
  'subscribers',
  'tunnel',
  'webhooks',
]);
const titleCharactersMax = 200;
const basePath = /^(?:\/[A-Za-z0-9._~-]+)+$/;
const versionToken = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Checks a declaration and fills in its defaults.
 * @param warn receives a sentence about each declaration that works but will surprise
 * @param module of the declaration: paths in it begin in its folder, and without it in the working directory
 * @throws ConfigurationError with every mistake
 */
export function resolveConfiguration(
  declaration: ConfigurationDeclaration,
  warn?: (sentence: string) => void,
  module?: URL,
): Configuration {
  const written: unknown = declaration;
  if (!isRecord(written)) {
    throw new ConfigurationError([
      `the configuration must be what defineConfig returns, not ${kindOf(written)}`,
    ]);
  }
  const { title = 'Comity', base = '/api/v1', apiVersion = '1', settings = {} } = written;
  const mistakes: string[] = [];
  for (const name of Object.keys(written)) {
    if (!known.has(name))
      mistakes.push(`"${name}" is not a member of the configuration${suggestion(name, known)}`);
  }
  if (typeof title !== 'string' || title === '' || title.length > titleCharactersMax) {
    mistakes.push(`title must be a string of 1 to ${titleCharactersMax} characters`);
  }
  if (typeof base !== 'string' || !isBase(base)) {
    mistakes.push('base must be a path such as /api/v1, outside the pages that the program itself serves');
  }
  if (typeof apiVersion !== 'string' || !versionToken.test(apiVersion)) {
    mistakes.push('apiVersion must be a string of 1 to 64 letters, digits and . _ -');
  }
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
  const mail = inspectMail(written.mail, module, mistakes);
  const schedules = schedulesOf(written.webhooks, mistakes);
  const senders = inspectSenders(written.senders, mistakes);
  const subscribers = inspectSubscribers(written.subscribers, mistakes);
  if (warn !== undefined) warnOfMisspeltEvents(subscribers, collections, eventTypes, warn);
  const jobs = inspectJobs(written.jobs, mistakes);
  const migrations = inspectMigrations(written.migrations, collections, mistakes);
  const [tunnel, portal] = [inspectTunnel(written.tunnel, mistakes), inspectPortal(written.portal, mistakes)];
  if (mistakes.length > 0)
    throw new ConfigurationError(mistakes, { settings: isRecord(settings) ? settings : {} });
  const declared = named as Readonly<Record<string, CollectionDeclaration>>;
  return {
    title: String(title),
    base: String(base),
    apiVersion: String(apiVersion),
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
    ...{ portal, tunnel },
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

function schedulesOf(written: unknown, mistakes: string[]): WebhookSchedules {
  if (written !== undefined && !isRecord(written)) {
    mistakes.push(`webhooks must be an object, not ${kindOf(written)}`);
    return inspectSchedules(undefined, mistakes);
  }
  for (const name of Object.keys(written ?? {})) {
    if (name !== 'schedules') {
      mistakes.push(
        `webhooks.${name} is not a member of the configuration${suggestion(name, ['schedules'])}`,
      );
    }
  }
  return inspectSchedules(written?.schedules, mistakes);
}

function isBase(base: string): boolean {
  const segments = base.split('/').slice(1);
  const dotted = segments.some((segment) => segment === '.' || segment === '..');
  return basePath.test(base) && !dotted && !reservedBases.has(segments[0] ?? '');
}

function ignore(): void {
  // Nobody asked for warnings.
}
