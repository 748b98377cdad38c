/**
 * `/endpoints`: the collection of webhook endpoints (§5.6, §6). Every caller whose credential has the scope `webhooks`
 * has its own; administrators see all. The secret is only in the responses that create it.
 */
import type { Problem } from '../../../http/problem.ts';
import type { Operation, Resource } from '../../../kernel/resource.ts';
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { equalJson } from '../../../model/json-value.ts';
import type { Principal } from '../../../model/principal.ts';
import { patchOperation, replaceOperation } from '../../../resources/collection/proposing.ts';
import { type FieldsProposal, type Revise, revised } from '../../../resources/collection/revised.ts';
import type { Accompaniment, Served, Written } from '../../../resources/collection/served.ts';
import {
  type ServedCollection,
  type Serving,
  serveCollection,
} from '../../../resources/collection/serving.ts';
import { type Change, keptRow, type Store } from '../../../store/store.ts';
import { type Headers, hiddenValue, withHeaders } from '../endpoint-headers.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import type { SendingParts } from '../sending-parts.ts';
import {
  deliveriesCollection,
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
import { endpointHealthResource } from './read-health.ts';
import { recoverResource } from './recover-endpoint.ts';
import { reviseEndpoint } from './revise-endpoint.ts';
import { rotateSecretResource } from './rotate-secret.ts';
import { testEndpointResource } from './test-endpoint.ts';

export function endpointResources(parts: SendingParts, serving: Serving): ServedCollection {
  const { directory, settings, refuseUrl } = parts;
  const revise = reviseEndpoint(settings, refuseUrl);
  const accompany = accompanyEndpoint(serving.store, directory);
  const plain = serveCollection(serving, endpointsCollection, {
    announced: false,
    accompany,
    create: (served) => createEndpointOperation(parts, served, revise),
    documentation: {
      names: { singular: 'Endpoint', plural: 'Endpoints', one: 'an endpoint', many: 'endpoints' },
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
      const { secret } = (proposal ?? {}) as Partial<FieldsProposal>;
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
 * health; enabling it again resets its health; every change advances the generation (with-generation.ts), so that all
 * processes read it. Deliveries of a removed endpoint stay in the log until retention, and are never tried again,
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
  directory: Pick<EndpointDirectory, 'generationChanges'>,
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
      return { changes: [...removals.flat(), ...directory.generationChanges()] };
    }
    const values = await secretsChange(store, id, after, headers, (secrets) => {
      const owner = ownerAfter(next.owner, after.tenant, secrets, principal);
      return keepingRights(secrets, next.owner, owner);
    });
    const isEnabled = current?.status === 'disabled' && after.status === 'enabled';
    const health = isEnabled ? await removalOf(store, endpointHealthTable, id) : [];
    return { changes: [...values, ...health, ...directory.generationChanges()] };
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
