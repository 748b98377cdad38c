/**
 * The OpenAPI document (design §4), generated from the declarations that the program serves: a collection that
 * changes changes its description with it. Statuses come from the decision graph (reach.ts), codes from the registry.
 */
import type { Collection } from '../model/collection.ts';
import { type AccountOptions, accountPaths, accountTags } from './accounts/account-paths.ts';
import { collectionPaths } from './collection-paths.ts';
import { Components } from './components.ts';
import type { CollectionLimits } from './described.ts';
import { earlierNote, toEarlierVersion } from './earlier-version.ts';
import { eventPaths } from './event-paths.ts';
import type { Item } from './item.ts';
import { operationPaths } from './operation-paths.ts';
import { type PathDescription, pathItem, type Setting } from './path-item.ts';
import { queryPaths } from './query-paths.ts';
import { realtimePaths, realtimeTag } from './realtime-paths.ts';
import { addErrorSchemas } from './refusals.ts';
import type { FieldName } from './response-fields.ts';
import { schemaNames } from './schema-names.ts';
import { addSecuritySchemes } from './security-schemes.ts';
import { servicePaths } from './service-paths.ts';
import { postEventDescription } from './webhooks/posted-event-paths.ts';
import { receivingPaths, receivingTags } from './webhooks/receiving-paths.ts';
import type { ReceivingOptions } from './webhooks/receiving-setting.ts';
import { sentEvents } from './webhooks/sent-events.ts';
import { webhookPaths, webhookTags } from './webhooks/webhook-paths.ts';
import type { WebhookOptions } from './webhooks/webhook-setting.ts';

export type OpenApiVersion = '3.2' | '3.1';

export type OpenApiOptions = {
  readonly title: string;
  /** Value of API-Version. */
  readonly apiVersion: string;
  /** `/api/v1` */
  readonly base: string;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly traceEnabled: boolean;
  /** Whether any cross-origin page may read answers. */
  readonly corsEnabled: boolean;
  readonly limits: CollectionLimits;
  /** Absent: the program keeps no accounts. */
  readonly accounts?: AccountOptions;
  /** Absent: the program sends no webhooks. */
  readonly webhooks?: WebhookOptions;
  /** Absent: the program receives no webhooks. */
  readonly receiving?: ReceivingOptions;
  readonly version: OpenApiVersion;
};

/** The document as plain JSON values, the same for the same options. */
export function openApiDocument(options: OpenApiOptions): Item {
  const steps = openApiSteps(options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same in steps of some milliseconds, so that a caller may do something else in between. */
export function* openApiSteps(options: OpenApiOptions): Generator<void, Item> {
  const { base, collections, accounts, webhooks, receiving, limits, version } = options;
  const components = new Components();
  const security = addSecuritySchemes(components);
  addErrorSchemas(components);
  const names = schemaNames(collections.values());
  const described: PathDescription[] = [];
  for (const collection of collections.values()) {
    const own = names.get(collection.name);
    if (own === undefined) throw new Error(`no names for ${collection.name}`);
    described.push(...collectionPaths(collection, own, base, limits, components));
    yield;
  }
  if (accounts !== undefined) described.push(...accountPaths(base, accounts, limits, components));
  if (webhooks !== undefined) described.push(...webhookPaths(base, webhooks, limits, components));
  if (receiving !== undefined) described.push(...receivingPaths(base, receiving, limits, components));
  const builtIn = [
    ...(accounts === undefined ? [] : Object.values(accounts.collections)),
    ...(webhooks === undefined ? [] : Object.values(webhooks.collections)),
    ...(receiving === undefined ? [] : [receiving.collection]),
  ];
  described.push(
    ...queryPaths(base, [...collections.values(), ...builtIn], components),
    ...operationPaths(base, components),
    ...eventPaths(
      base,
      limits,
      components,
      webhooks === undefined ? undefined : postEventDescription(components),
    ),
    ...realtimePaths(base, components),
    ...servicePaths(components),
  );
  const setting: Setting = {
    components,
    security,
    verifiedEmailRequired: accounts?.verifiedEmailRequired ?? false,
    traceEnabled: options.traceEnabled,
    corsFields: options.corsEnabled ? crossOriginFields : [],
  };
  const paths: Record<string, Item> = {};
  for (const path of described) {
    yield;
    paths[path.path] = pathItem(path, setting);
  }
  const sent = webhooks === undefined ? {} : { webhooks: sentEvents(webhooks.eventTypes, names, components) };
  yield;
  const document: Item = {
    openapi: '3.2.0',
    info: {
      title: options.title,
      version: options.apiVersion,
      description: version === '3.1' ? `${preface}\n\n${earlierNote}` : preface,
    },
    servers: [{ url: '/' }],
    tags: tags(options),
    paths,
    ...sent,
    components: components.toItem({ paths, ...sent }),
  };
  yield;
  return version === '3.1' ? toEarlierVersion(document) : document;
}

/** Of every answer where any origin is allowed, as in resources/answer/cors.ts. */
const crossOriginFields: readonly FieldName[] = [
  'Access-Control-Allow-Credentials',
  'Access-Control-Allow-Origin',
  'Access-Control-Expose-Headers',
  'Vary',
];

const preface = `Every answer carries \`API-Version\`. A refusal is \`{"error": "message", "code": "stable_code"}\`, or RFC 9457 for \
\`Accept: application/problem+json\`; [what each code means](/docs/errors). One credential is enough, in any of its places; two are refused. \
Reads have strong entity tags: send one back in \`If-Match\` and a change never overwrites another's. Lists page by \
cursor, and \`QUERY\` (RFC 10008) asks for the same lists in the content.`;

function tags({ collections, accounts, webhooks, receiving }: OpenApiOptions): readonly Item[] {
  return [
    ...[...collections.values()].map(({ name, description }) =>
      description === '' ? { name } : { name, description },
    ),
    ...(accounts === undefined ? [] : accountTags(accounts.collections)),
    ...(webhooks === undefined ? [] : webhookTags(webhooks.collections)),
    ...(receiving === undefined ? [] : receivingTags(receiving)),
    { name: 'queries', description: 'Stored queries and their results.' },
    { name: 'operations', description: 'Requests that were answered 202 and are carried out later.' },
    { name: 'events', description: 'Everything that happened, as a list and as a stream.' },
    realtimeTag,
    { name: 'service', description: 'What the program tells about itself.' },
  ];
}
