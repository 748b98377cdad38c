/**
 * `/endpoints`: the collection of webhook endpoints (§5.6, §6). Every caller whose credential has the scope `webhooks`
 * has its own; administrators see all. The secret is only in the responses that create it.
 */

import { Type } from 'typebox';
import type { Settings } from '../../../config/settings.ts';
import type { Problem } from '../../../http/problem.ts';
import { actionResource, type Done } from '../../../kernel/action.ts';
import { type Item, named, representationOf } from '../../../kernel/documentation.ts';
import type { Ask, Operation, Resource } from '../../../kernel/resource.ts';
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { eventDocument } from '../../../model/event.ts';
import { equalJson } from '../../../model/json-value.ts';
import type { Principal } from '../../../model/principal.ts';
import { type MemberStanding, memberStanding, onMember } from '../../../resources/collection/member.ts';
import { type ServedCollection, serveCollection } from '../../../resources/collection/serve-collection.ts';
import type {
  Accompaniment,
  Served,
  Serving,
  Written,
} from '../../../resources/collection/served-collection.ts';
import {
  patchOperation,
  type Revise,
  type RevisedProposal,
  replaceOperation,
  revised,
} from '../../../resources/collection/write-operations.ts';
import { type Change, type EventEntry, keptRow, type Row, type Store } from '../../../store/store.ts';
import { targeted, testEventId } from '../new-deliveries.ts';
import { recoverResource } from '../recovery/recover-endpoint.ts';
import type { SendingParts } from '../sending-parts.ts';
import {
  deliveriesCollection,
  type EndpointHealth,
  type EndpointSecrets,
  endpointHealthTable,
  endpointSecretsTable,
  endpointsCollection,
  recoveriesCollection,
} from '../sending-tables.ts';
import { createDocumentation, createEndpointOperation } from './create-endpoint.ts';
import {
  administrators,
  hasRightsOf,
  isPortalSession,
  keepingRights,
  ownerAfter,
  withOwnerAfter,
} from './endpoint-owner.ts';
import {
  disabledProblem,
  type Headers,
  hiddenValue,
  reviseEndpoint,
  withHeaders,
} from './revise-endpoint.ts';
import { rotateSecretResource } from './rotate-secret.ts';

export function endpointResources(parts: SendingParts, serving: Serving): ServedCollection {
  const { settings } = parts;
  const revise = reviseEndpoint(settings, parts);
  const accompany = accompanyEndpoint(serving.store);
  const plain = serveCollection(serving, endpointsCollection, {
    announced: false,
    accompany,
    create: (served) => createEndpointOperation(parts, served, revise),
    documentation: {
      names: { singular: 'Endpoint', plural: 'Endpoints', one: 'an endpoint', many: 'endpoints' },
      audience: 'operator',
      idPrefix: 'ep_',
      revise: {
        create: createDocumentation,
        read: (standard) => ({ ...standard, representationFields: ['Allow'] }),
      },
    },
  });
  const { served } = plain;
  const deliveries = `${serving.base}/${deliveriesCollection.name}`;
  const recoveries = `${serving.base}/${recoveriesCollection.name}`;
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => withChecks(resource, served, { revise, accompany })),
      rotateSecretResource(parts, served),
      testEndpointResource(parts, served, deliveries),
      recoverResource(parts, served, recoveries),
      endpointHealthResource(settings, served),
    ],
  };
}

type Checks = { readonly revise: Revise; readonly accompany: ReturnType<typeof accompanyEndpoint> };

/** Synchronous only: an asynchronous request is stored as it came, including the values of its header fields. */
function withChecks(resource: Resource, served: Served, { revise, accompany }: Checks): Resource {
  const operations = [...resource.operations].map(([method, operation]) => {
    if (method === 'GET' && resource.pattern === `${served.path}/{id}`)
      return [method, withAllowed(operation, served.store)] as const;
    const build = method === 'PUT' ? replaceOperation : method === 'PATCH' ? patchOperation : undefined;
    if (build === undefined) return [method, operation] as const;
    const act: NonNullable<Operation['act']> = async (ask, standing, proposal) => {
      const { secret } = (proposal ?? {}) as Partial<RevisedProposal>;
      const kept = await served.store.read(endpointSecretsTable, ask.captures[0] ?? '');
      const { scopes }: Pick<EndpointSecrets, 'scopes'> =
        kept === undefined ? { scopes: [] } : JSON.parse(kept.doc);
      const own = build({
        ...served,
        store: withOwnerAfter(served.store, { scopes }, ask.principal),
        accompany: (written) => accompany(written, secret as Headers | undefined),
      }) as Operation;
      if (own.act === undefined) throw new Error('a change of an endpoint requires an act stage');
      return own.act(ask, standing, proposal);
    };
    return [method, revised({ ...operation, act, asynchronous: false }, revise)] as const;
  });
  return { ...resource, operations: new Map(operations) };
}

/**
 * Shows a session of the portal in `Allow` (RFC 9110 §10.2.1) that it may not delete what an administrator made, nor what goes with that
 * (§5.10.5); so its page offers only what it may do.
 */
function withAllowed(operation: Operation, store: Pick<Store, 'read'>): Operation {
  const { represent } = operation;
  if (represent === undefined) throw new Error('a read of an endpoint has a representation');
  return {
    ...operation,
    represent: async (ask, standing, proposal) => {
      const representation = await represent(ask, standing, proposal);
      const isLimited =
        isPortalSession(ask.principal) &&
        (await refusalOf(store, ask.principal, ask.captures[0] ?? '')) !== undefined;
      if (!isLimited) return representation;
      return { ...representation, fields: [...(representation.fields ?? []), 'Allow', limitedMethods] };
    },
  };
}

const limitedMethods = 'GET, HEAD, OPTIONS, PATCH';

/**
 * Returns the changes that accompany a change of an endpoint in one unit. Removing an endpoint removes its secrets and
 * health; enabling it again resets its health. Deliveries of a removed endpoint stay in the log until retention, and are never tried again,
 * because the sender finds no endpoint for them.
 *
 * Header values are stored with the secrets, so a change of them, or of the URL to which they are sent, changes the
 * secrets.
 *
 * An endpoint receives what the credential that created it could read. A credential with fewer rights may not change
 * its URL, and a session of the portal little else (§5.10.5).
 */
function accompanyEndpoint(
  store: Pick<Store, 'read'>,
): (written: Written, headers?: Headers) => Promise<Accompaniment> {
  return async ({ ask, id, before, next }, headers) => {
    const { principal } = ask;
    const current = before === undefined ? undefined : readEndpoint(before.doc);
    const after = next === null ? undefined : readEndpoint(next.doc);
    if (current !== undefined && needsRights(principal, current, after, headers)) {
      const refusal = await refusalOf(store, principal, id);
      if (refusal !== undefined) return refusal;
    }
    if (next === null || after === undefined) {
      const tables = [endpointSecretsTable, endpointHealthTable];
      const removals = await Promise.all(tables.map((table) => removalOf(store, table, id)));
      return { changes: removals.flat() };
    }
    const values = await secretsChange(store, id, after, headers, (secrets) => {
      const owner = ownerAfter(next.owner, after.tenant, secrets, principal);
      return keepingRights(secrets, next.owner, owner);
    });
    const isEnabled = current?.status === 'disabled' && after.status === 'enabled';
    const health = isEnabled ? await removalOf(store, endpointHealthTable, id) : [];
    return { changes: [...values, ...health] };
  };
}

/** @param headers as requested; undefined: none */
async function secretsChange(
  store: Pick<Store, 'read'>,
  id: string,
  { url, updatedAt }: Endpoint,
  headers: Headers | undefined,
  revise: (secrets: EndpointSecrets) => EndpointSecrets,
): Promise<readonly Change[]> {
  const row = await store.read(endpointSecretsTable, id);
  if (row === undefined) return [];
  const before = JSON.parse(row.doc) as EndpointSecrets;
  const after = revise(withHeaders(before, headers, url));
  if (after === before) return [];
  const at = Math.max(Date.parse(updatedAt), row.updatedAt);
  const next = keptRow(JSON.stringify(after), row.owner, row.createdAt, at);
  return [{ table: endpointSecretsTable, id, expect: { rev: row.rev }, next }];
}

const narrower =
  'the endpoint was created with a credential that has more rights than this one, so this one cannot change its URL';

/** The members that a tenant may change of the endpoints that administrators made for it; of the events it may only take some away. */
const tenantsMembers: ReadonlySet<string> = new Set([
  'status',
  'disabledReason',
  'description',
  'events',
  'updatedAt',
]);

/** True if the change needs the rights with which the endpoint was created. @param after undefined: a deletion */
function needsRights(
  principal: Principal,
  current: Endpoint,
  after: Endpoint | undefined,
  headers: Headers = {},
): boolean {
  if (!isPortalSession(principal)) return after !== undefined && current.url !== after.url;
  if (after === undefined || after.events.some((pattern) => !current.events.includes(pattern))) return true;
  const [before, next] = [new Map(Object.entries(current)), new Map(Object.entries(after))];
  const differs = (name: string) => !equalJson(before.get(name), next.get(name));
  const names = [...before.keys(), ...next.keys()].filter((name) => !tenantsMembers.has(name));
  return names.some(differs) || Object.values(headers).some((value) => value !== hiddenValue);
}

async function refusalOf(
  store: Pick<Store, 'read'>,
  principal: Principal,
  id: string,
): Promise<{ readonly refused: Problem } | undefined> {
  const row = await store.read(endpointSecretsTable, id);
  const secrets = row === undefined ? undefined : (JSON.parse(row.doc) as EndpointSecrets);
  if (secrets !== undefined && hasRightsOf(principal, secrets)) return undefined;
  return isPortalSession(principal) ? administrators : { refused: { code: 'forbidden', message: narrower } };
}

async function removalOf(store: Pick<Store, 'read'>, table: string, id: string): Promise<readonly Change[]> {
  const row = await store.read(table, id);
  return row === undefined ? [] : [{ table, id, expect: { rev: row.rev }, next: null }];
}

/*
 * POST to `/endpoints/{id}/test` (§6.6): sends an event to this endpoint alone, regardless of its patterns:
 * `endpoint.test`, or a sample of the requested type. The event is in the log, for the owner of the endpoint, and its
 * delivery is retried like any other; the 202 refers to the delivery.
 */

const testType = 'endpoint.test';
const testInput = Type.Object({
  type: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'An event type with a sample; `/event-types` lists them. Default: `endpoint.test`.',
    }),
  ),
});

/** @param deliveries the path of the deliveries */
function testEndpointResource(parts: SendingParts, served: Served, deliveries: string): Resource {
  return actionResource(
    {
      ...onMember(served, 'test', 'update', 'Id of the endpoint.'),
      id: 'testEndpoint',
      summary: 'Send a test event to an endpoint',
      description: 'Sends it only to this endpoint, regardless of its patterns. Location names the delivery.',
      input: { name: 'EndpointTest', schema: testInput, example: { type: testType }, optional: true },
      output: { schema: representationOf(deliveriesCollection) },
      answers: 'queued',
      codes: ['endpoint_unavailable'],
      handler: (ask, { type = testType }) => sendTest(parts, served, deliveries, ask, type),
    },
    parts.settings,
  );
}

async function sendTest(
  { store, wakes, sampleOf }: SendingParts,
  served: Served,
  path: string,
  ask: Ask,
  type: string,
): Promise<Done> {
  const { exists, permitted, row } = await memberStanding(served, ask, 'update');
  // Removed since the request was permitted.
  if (!exists || !permitted || row === undefined) return { refused: { code: 'not_found' } };
  const endpoint = readEndpoint(row.doc);
  if (endpoint.status === 'disabled') return { refused: disabledProblem };
  const object = type === testType ? { id: endpoint.id, message: 'A test.' } : sampleOf(type, ask.principal);
  if (object === undefined) {
    const message = 'must be an event type that has a sample; GET /event-types lists them';
    return { refused: { code: 'validation_failed', errors: [{ pointer: '/type', message }] } };
  }
  const at = served.clock();
  const event = testEvent(row, testEventId(served.newId), type, object, at);
  const { newId } = served;
  const unit = targeted(event, { endpoint, owner: row.owner }, { wakes, newId });
  const [delivery] = unit.changes;
  if (delivery === undefined) throw new Error('a test requires its delivery');
  const commit = await store.commit(unit);
  if (commit.outcome !== 'committed') throw new Error(`the test could not be stored: ${commit.outcome}`);
  wakes.announce([endpoint.id], delivery.id);
  return { content: JSON.parse(delivery.next?.doc ?? '{}'), queued: `${path}/${delivery.id}` };
}

/** Without a collection, so that only the owner of the endpoint and administrators see it. */
function testEvent({ owner }: Row, id: string, type: string, object: object, at: number): EventEntry {
  const doc = eventDocument(id, type, at, JSON.stringify(object));
  return { id, type, collection: '', owner, doc, createdAt: at };
}

/*
 * GET `/endpoints/{id}/health` (§6.6): since when an endpoint fails, when it would be disabled, and until when each of its secrets signs.
 * Secrets themselves are in no response.
 */

function endpointHealthResource(settings: Settings, served: Served): Resource {
  return actionResource(
    {
      ...onMember(served, 'health', 'read', 'Id of the endpoint.'),
      method: 'GET',
      name: 'EndpointHealth',
      id: 'readEndpointHealth',
      summary: 'Read the health of an endpoint',
      output: { schema: healthSchema, example: healthExample },
      mayBeMissing: true,
      codes: [],
      handler: async (_ask, _input, standing) => ({ content: await healthOf(settings, served, standing) }),
    },
    settings,
  );
}

const timeOrNull = (description: string): Item => ({
  type: ['string', 'null'],
  format: 'date-time',
  description,
});

const healthSchema = named('EndpointHealth', {
  description: 'The health of an endpoint.',
  type: 'object',
  properties: {
    status: { enum: ['healthy', 'failing', 'disabled'] },
    failingSince: timeOrNull('The first failure after the last success; null: the last attempt succeeded.'),
    failures: { type: 'integer', description: 'Scheduled attempts that failed since then.' },
    warnedAt: timeOrNull('When its owner was warned.'),
    disablesAt: timeOrNull('The earliest time at which it is disabled, unless an attempt succeeds before.'),
    secrets: {
      type: 'array',
      description: 'Its secrets, without their values, the current one first.',
      items: {
        type: 'object',
        properties: { until: timeOrNull('When a replaced secret stops signing; null: the current one.') },
        required: ['until'],
      },
    },
  },
  required: ['status', 'failingSince', 'failures', 'warnedAt', 'disablesAt', 'secrets'],
});

const healthExample = {
  status: 'failing',
  failingSince: '2026-08-01T09:30:00.000Z',
  failures: 4,
  warnedAt: null,
  disablesAt: '2026-08-06T09:30:00.000Z',
  secrets: [{ until: null }],
};

async function healthOf(
  { endpointDisableSeconds }: Settings,
  { store, clock }: Served,
  { row, id }: MemberStanding,
): Promise<Readonly<Record<string, unknown>>> {
  const [healthRow, secretsRow] = await Promise.all([
    store.read(endpointHealthTable, id),
    store.read(endpointSecretsTable, id),
  ]);
  const isEnabled = row !== undefined && readEndpoint(row.doc).status === 'enabled';
  const health = healthRow === undefined ? undefined : (JSON.parse(healthRow.doc) as EndpointHealth);
  const { secrets } = secretsRow === undefined ? noSecrets : (JSON.parse(secretsRow.doc) as EndpointSecrets);
  const now = clock();
  const standing = secrets.filter(({ until }) => until === null || until > now);
  return {
    status: isEnabled ? (health === undefined ? 'healthy' : 'failing') : 'disabled',
    failingSince: isoOrNull(health?.failingSince),
    failures: health?.failures ?? 0,
    warnedAt: isoOrNull(health?.warnedAt),
    disablesAt: isoOrNull(
      isEnabled && health !== undefined ? health.failingSince + endpointDisableSeconds * 1000 : null,
    ),
    secrets: standing.map(({ until }) => ({ until: isoOrNull(until) })),
  };
}

const noSecrets: Pick<EndpointSecrets, 'secrets'> = { secrets: [] };

function isoOrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
