/** All resources of the program, in the order of the OpenAPI document, from the features that compose.ts made. */
import { join } from 'node:path';
import type { Accounts } from './accounts/accounts.ts';
import { jwksResource } from './accounts/tokens/signing-keys.ts';
import { dashboardAssets, portalAssets } from './app-assets.ts';
import { backupResources, createBackups } from './backups/backups.ts';
import type { Configuration } from './config/configuration.ts';
import { type LoadedSettings, shownSettings } from './config/load-settings.ts';
import { holdResources } from './hold/hold.ts';
import { jobResources } from './jobs/job-routes.ts';
import type { CorsPolicy } from './kernel/answer/cors.ts';
import type { CallerAddress } from './kernel/rate-limit/caller-address.ts';
import type { Resource } from './kernel/resource.ts';
import { actionResources } from './logic/actions/action-routes.ts';
import type { ApplicationLogic } from './logic/logic.ts';
import type { Mails } from './mail/mails.ts';
import { shownMigrations } from './migrations/migration-state.ts';
import type { LoopTurns } from './observe/event-loop.ts';
import type { Metrics } from './observe/metrics.ts';
import type { OpenConnections } from './observe/open-connections.ts';
import { docsAssets } from './openapi/docs-assets.ts';
import { createDocuments } from './openapi/document.ts';
import { guidePages } from './openapi/guide-pages.ts';
import { packageRoot, packageVersion } from './package-version.ts';
import { realtimeResources } from './realtime/realtime-routes.ts';
import { SlowLists } from './resources/collection/slow-lists.ts';
import type { ContentThreads } from './resources/content-threads/content-threads.ts';
import { createLogViews, createWithholds } from './resources/events/seen-event.ts';
import {
  connectionsResource,
  metaResources,
  type ProgramReport,
  slowListResource,
  storeResource,
} from './resources/program/meta-routes.ts';
import type { Phase } from './resources/program/program-routes.ts';
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
  readonly mails: Mails;
  readonly contentThreads: ContentThreads;
  readonly cors: CorsPolicy;
  readonly addressOf: CallerAddress;
  readonly mac: (text: string) => string;
  readonly phase: () => Phase;
  readonly sources?: LoadedSettings['sources'];
  readonly program: Pick<ProgramReport, 'startedAt' | 'differences' | 'storeBytes'> & {
    readonly clockDifference: () => string | undefined;
  };
  readonly logic: ApplicationLogic;
};

export function resourcesOf(options: Features): readonly Resource[] {
  const { configuration, settings, metrics, accounts, webhooks, received } = options;
  const collections = [...configuration.collections.values()];
  const logViews = createLogViews(collections, (error) => options.observe({ kind: 'hook-failed', error }));
  const guides = guidePages(configuration.title, join(packageRoot(), 'docs'));
  const dashboard = settings.dashboard === 'on' ? dashboardAssets() : [];
  const portal = settings.portal === 'on' ? portalAssets(configuration) : [];
  const slowLists = new SlowLists({ ...settings, clock: options.clock });
  const resources: readonly Resource[] = [
    ...createRoutes({
      ...options,
      ...{
        base: configuration.base,
        collections: configuration.collections,
        accounts: configuration.accounts,
      },
      ...{ slowLists, longContent: options.contentThreads, logic: options.logic.writesOf },
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
      postedEvents: (serving) => webhooks.postedEvents(serving, accounts.auditExpunction),
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
    ...storeResources(options),
    slowListResource(configuration.base, settings, slowLists),
    connectionsResource(configuration.base, settings, options.connections),
    ...programResources({
      ...{ ...options, metrics, base: configuration.base, hasDashboard: dashboard.length > 0 },
      metricsToken: settings.metricsToken,
      assets: [...docsAssets(configuration.title, guides.length > 0), ...guides, ...dashboard, ...portal],
      openApi: createDocuments(() => ({
        ...{ ...configuration, resources, verifiedEmailRequired: settings.verifiedEmailRequired },
        traceEnabled: settings.traceMethod,
        corsEnabled: settings.corsOrigins !== '',
        eventTypes: [...webhooks.eventTypes.values()],
      })),
    }),
  ];
  return resources;
}

function reportOf({ settings, sources, program }: Features): ProgramReport {
  return {
    ...{ ...program, version: packageVersion(), node: process.versions.node },
    shownSettings: shownSettings(settings, sources),
  };
}

function storeResources(options: Features): readonly Resource[] {
  const { configuration, settings, store, accounts, program } = options;
  const { base, collections } = configuration;
  const names = [...collections.keys(), configuration.accounts.users.name];
  const folder = settings.backupFolder || join(settings.data, 'backups');
  const storeBytes = async () => program.storeBytes() ?? (await store.report([])).bytes;
  const backups = createBackups(options, folder, storeBytes);
  return [
    storeResource(options, base, names, () => shownMigrations(store, configuration)),
    ...backupResources(options, base, backups, accounts.auditBackup),
  ];
}
