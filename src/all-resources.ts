/** All resources of the program, in the order of the OpenAPI document, from the features that compose.ts made. */
import { join } from 'node:path';
import type { Accounts } from './accounts/accounts.ts';
import { createOwnerPrincipal } from './accounts/owner-principal.ts';
import { jwksResource } from './accounts/tokens/signing-keys.ts';
import { dashboardAssets, portalAssets } from './app-assets.ts';
import { backupResources, createBackups, diskOf } from './backups/backups.ts';
import type { Configuration } from './config/configuration.ts';
import { type LoadedSettings, shownSettings } from './config/load-settings.ts';
import { findNamesInFunctions } from './config/named-in-functions.ts';
import { copiedBytes, placeName } from './files/backup-files.ts';
import type { Files } from './files/files.ts';
import { holdResources } from './hold/hold.ts';
import { problems } from './http/problem-registry.ts';
import { publicRoot } from './http/syntax/uri.ts';
import { jobResources } from './jobs/job-routes.ts';
import type { CorsPolicy } from './kernel/answer/cors.ts';
import type { CallerAddress } from './kernel/rate-limit/caller-address.ts';
import type { Resource } from './kernel/resource.ts';
import { actionResources } from './logic/actions/action-routes.ts';
import type { ApplicationLogic } from './logic/logic.ts';
import type { Mails } from './mail/mails.ts';
import { shownMigrations } from './migrations/migration-state.ts';
import { idPrefixes } from './model/id.ts';
import { scopes } from './model/principal.ts';
import type { LoopTurns } from './observe/event-loop.ts';
import type { Metrics } from './observe/metrics.ts';
import type { OpenConnections } from './observe/open-connections.ts';
import { type ApplicationCode, docsAssets } from './openapi/docs-assets.ts';
import { createDocuments } from './openapi/document.ts';
import { guidePages } from './openapi/guide-pages.ts';
import { packageRoot, packageVersion } from './package-version.ts';
import { realtimeResources } from './realtime/realtime-routes.ts';
import { SlowLists } from './resources/collection/slow-lists.ts';
import type { ContentThreads } from './resources/content-threads/content-threads.ts';
import { createLogViews, createWithholds } from './resources/events/seen-event.ts';
import { accessResource } from './resources/program/access-routes.ts';
import {
  connectionsResource,
  metaResources,
  type ProgramReport,
  slowListResource,
  storeResource,
} from './resources/program/meta-routes.ts';
import type { Asset, Phase } from './resources/program/program-routes.ts';
import { programResources } from './resources/program/program-routes.ts';
import { createRoutes } from './resources/routes.ts';
import type { Services } from './store/capabilities.ts';
import type { Store } from './store/store.ts';
import { replayEventsResource, subscriberResources } from './subscribers/subscriber-routes.ts';
import type { Receiving } from './webhooks/receiving/receiving.ts';
import type { Webhooks } from './webhooks/sending/sending.ts';

/** The services and the features of the program. */
type Features = Services & {
  readonly configuration: Configuration;
  readonly metrics: Metrics;
  readonly turns: LoopTurns;
  readonly connections: OpenConnections;
  readonly accounts: Accounts;
  readonly webhooks: Webhooks<Store>;
  readonly received: Receiving;
  /** Absent: no collection has files. */
  readonly files?: Files | undefined;
  readonly mails: Mails;
  readonly contentThreads: ContentThreads;
  readonly cors: CorsPolicy;
  readonly addressOf: CallerAddress;
  readonly mac: (text: string) => string;
  readonly phase: () => Phase;
  readonly sources?: LoadedSettings['sources'];
  readonly program: Pick<ProgramReport, 'startedAt' | 'differences' | 'storeBytes' | 'certificateEnd'> & {
    readonly clockDifference: () => string | undefined;
  };
  readonly logic: ApplicationLogic;
};

export function resourcesOf(options: Features): readonly Resource[] {
  const root = publicRoot(options.settings.publicUrl);
  const { base } = options.configuration;
  // Features make their paths of the base that clients see. The router finds resources without the root, which proxies remove.
  const routed: readonly Resource[] = rootedResources(options, root, () => routed).map((resource) => {
    const { pattern } = resource;
    return pattern.startsWith(`${base}/`) ? { ...resource, pattern: pattern.slice(root.length) } : resource;
  });
  return routed;
}

/** @param routed the same resources at the paths of the router, for the OpenAPI document */
function rootedResources(
  options: Features,
  root: string,
  routed: () => readonly Resource[],
): readonly Resource[] {
  const { configuration, settings, metrics, accounts, webhooks, received } = options;
  const collections = [...configuration.collections.values()];
  const logViews = createLogViews(collections, (error) => options.observe({ kind: 'hook-failed', error }));
  const dashboard = settings.dashboard === 'on' ? dashboardAssets() : [];
  const slowLists = new SlowLists({ ...settings, clock: options.clock });
  return [
    ...createRoutes({
      ...options,
      ...{
        base: configuration.base,
        collections: configuration.collections,
        accounts: configuration.accounts,
      },
      ...{ slowLists, longContent: options.contentThreads, logic: options.logic.writesOf },
      files: options.files?.documents,
      ofDeclared: (declared) => options.files?.resources(declared, options.mac) ?? [],
      builtIn: (serving) => [
        ...actionResources(serving, configuration.actions, options.logic.open),
        ...accounts.resources,
        ...accounts.builtIn(webhooks.generation, serving),
        jwksResource([accounts.keys, webhooks.keys]),
        ...webhooks.builtIn(serving).map((each) => ({
          ...each,
          resources: accounts.openToPortal(each.resources),
        })),
        ...accounts.openToPortal(webhooks.resources),
        ...received.builtIn(serving),
        ...received.resources,
        ...subscriberResources(options, configuration),
        replayEventsResource(options, configuration, received.wake, options.turns),
        ...jobResources(options, configuration, received.wake),
        ...options.mails.builtIn(serving),
        ...holdResources(options, configuration.base),
      ],
      postedEvents: (serving) =>
        webhooks.postedEvents(serving, {
          audited: accounts.auditExpunction,
          expungeFiles: options.files?.expungerFor(serving.store),
        }),
    }),
    ...realtimeResources({
      ...{ ...settings, ...options, base: configuration.base, limits: settings },
      ...{
        collections,
        views: logViews,
        withholds: createWithholds(options.store, collections),
        crossSite: accounts.isCrossSite,
      },
    }),
    ...metaResources(options, configuration.base, reportOf(options)),
    ...reportResources(options),
    slowListResource(configuration.base, settings, slowLists),
    connectionsResource(configuration.base, settings, options.connections),
    ...programResources({
      ...{ ...options, metrics, root, base: configuration.base, hasDashboard: dashboard.length > 0 },
      ...{ metricsToken: settings.metricsToken, limits: settings },
      assets: [...documentationOf(configuration, root), ...dashboard, ...portalOf(options, root)],
      openApi: documentsOf(options, root, routed),
    }),
  ];
}

function documentsOf(
  { configuration, settings, webhooks }: Features,
  root: string,
  routed: () => readonly Resource[],
): ReturnType<typeof createDocuments> {
  return createDocuments(() => ({
    ...{ ...configuration, root, resources: routed(), verifiedEmailRequired: settings.verifiedEmailRequired },
    traceEnabled: settings.traceMethod,
    corsEnabled: settings.corsOrigins !== '',
    eventTypes: [...webhooks.eventTypes.values()],
  }));
}

function documentationOf(configuration: Configuration, root: string): readonly Asset[] {
  const { title } = configuration;
  const guides = guidePages({ title, root }, join(packageRoot(), 'docs'));
  const hasGuides = guides.length > 0;
  return [...docsAssets({ title, root, hasGuides }, () => codesOf(configuration)), ...guides];
}

/** The page adds the root by itself, from its address. */
function portalOf({ configuration, settings }: Features, root: string): readonly Asset[] {
  if (settings.portal === 'off') return [];
  return portalAssets({ ...configuration, base: configuration.base.slice(root.length) });
}

/** The codes that the application refuses with: those of actions with their statuses, and those that stand in its functions. */
async function codesOf({ actions, module }: Configuration): Promise<readonly ApplicationCode[]> {
  const found = module === undefined ? [] : [...(await findNamesInFunctions(module, 'all')).codes];
  const declared = actions.flatMap(({ name, codes }) =>
    [...(codes ?? [])].map(([code, status = problems.refused_by_application.status]) => ({
      ...{ code, status, actions: [name] },
    })),
  );
  const named = found.map((code) => ({ code, status: undefined, actions: [] }));
  const byCode = Map.groupBy<string, ApplicationCode>([...declared, ...named], ({ code }) => code);
  return [...byCode]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([code, of]) => {
      const statuses = new Set(of.flatMap(({ status }) => status ?? []));
      const [status] = statuses;
      return {
        ...{ code, status: statuses.size === 1 ? status : undefined },
        actions: of.flatMap((each) => each.actions),
      };
    });
}

function reportOf({ settings, sources, program }: Features): ProgramReport {
  return {
    ...{ ...program, version: packageVersion(), node: process.versions.node },
    shownSettings: shownSettings(settings, sources),
  };
}

/** An account with all scopes of its own, as a session of it has them. */
function accountNow(store: Store) {
  const principalOf = createOwnerPrincipal(store);
  return async (id: string) => (id.startsWith(idPrefixes.account) ? principalOf(id, scopes) : undefined);
}

function reportResources(options: Features): readonly Resource[] {
  const { configuration, settings, store, accounts, program } = options;
  const { base, collections } = configuration;
  const { users, creation } = configuration.accounts;
  const names = [...collections.keys(), users.name];
  const folder = settings.backupFolder || join(settings.data, 'backups');
  const storeBytes = async () => program.storeBytes() ?? (await store.report([])).bytes;
  const disk = async () => (settings.databaseUrl === undefined ? diskOf(settings.data) : undefined);
  const place = options.files?.place;
  const backups = createBackups(options, folder, storeBytes, {
    ...{ place, placeName: placeName(settings) },
    bytes: (into) => (place === undefined ? 0 : copiedBytes(store, place, into)),
  });
  return [
    storeResource({ ...options, disk }, base, names, () => shownMigrations(store, configuration)),
    ...backupResources(options, base, backups, accounts.auditBackup),
    accessResource({
      ...configuration,
      store,
      collections: new Map([
        ...collections,
        [users.name, { ...users, access: { ...users.access, create: creation.access.create } }],
      ]),
      accountNow: accountNow(store),
    }),
  ];
}
