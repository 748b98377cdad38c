/** Hands the OpenAPI document what it describes: the declarations, the collections of the program itself, and how it is set up. */
import type { Configuration } from './config/configuration.ts';
import type { LoadedSettings } from './config/load-settings.ts';
import type { Settings } from './config/settings.ts';
import { type OpenApiVersion, openApiDocument } from './openapi/document.ts';
import { auditCollection, keysCollection, usersCollection } from './resources/accounts/collections.ts';
import { contentTag } from './resources/program/document.ts';
import type { ProgramOptions } from './resources/program/resources.ts';
import { inboxCollection } from './resources/webhooks/received/collection.ts';
import {
  deliveriesCollection,
  endpointsCollection,
  recoveriesCollection,
} from './webhooks/outbound/collections.ts';
import type { EventTypes } from './webhooks/outbound/event-types/event-types.ts';

export type DocumentOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  readonly eventTypes: EventTypes;
};

/** Each version of the document is made when it is first asked for: it takes some milliseconds, and few ask. */
export function composeDocument({
  configuration,
  settings,
  providers,
  eventTypes,
}: DocumentOptions): ProgramOptions['openApi'] {
  const made = new Map<OpenApiVersion, { content: string; tag: string }>();
  return (version = '3.2') => {
    if (version !== '3.2' && version !== '3.1') return undefined;
    const known = made.get(version);
    if (known !== undefined) return known;
    const content = JSON.stringify(
      openApiDocument({
        ...configuration,
        traceEnabled: settings.traceMethod,
        corsEnabled: settings.corsOrigins !== '',
        limits: settings,
        accounts: {
          ...settings,
          collections: { users: usersCollection, keys: keysCollection, audit: auditCollection },
          limits: settings,
          providers: [...providers.keys()],
        },
        webhooks: {
          ...settings,
          collections: {
            endpoints: endpointsCollection,
            deliveries: deliveriesCollection,
            recoveries: recoveriesCollection,
          },
          eventTypes: [...eventTypes.values()],
        },
        receiving: { ...settings, collection: inboxCollection, senders: configuration.senders },
        version,
      }),
    );
    const document = { content, tag: contentTag(content) };
    made.set(version, document);
    return document;
  };
}
