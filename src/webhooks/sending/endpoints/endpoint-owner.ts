/**
 * The owner of an endpoint (§5.10). An endpoint that an administrator creates for a tenant belongs to the tenant, which sees and changes
 * it in its portal, as those that it creates there. Its rights stay those of the administrator (`rightsOf`): the events that it gets do
 * not depend on who owns it.
 */
import type { Problem } from '../../../http/problem.ts';
import { searchTextOf } from '../../../model/collection.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import { always, byId } from '../../../model/filter.ts';
import { isAdministrator, type Principal, tenantOfId, tenantPrincipalId } from '../../../model/principal.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import { type Change, keptRow, type Row, type Store } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { type EndpointSecrets, endpointSecretsTable, endpointsCollection } from '../sending-tables.ts';
import { type Headers, hiddenValue, hideValues, withHeaders } from './revise-endpoint.ts';

/** The owner after a change. @param scopes of the credential that created the endpoint */
export function ownerAfter(
  owner: string | null,
  tenant: string | undefined,
  { scopes }: Pick<EndpointSecrets, 'scopes'>,
  principal: Principal,
): string | null {
  const isTenants = tenantOfId(owner) !== undefined;
  if (tenant === undefined) {
    return isTenants && principal.kind === 'authenticated' ? principal.id : owner;
  }
  return isTenants || scopes.includes('admin') ? tenantPrincipalId(tenant) : owner;
}

export function isPortalSession(principal: Principal): boolean {
  return principal.kind === 'authenticated' && tenantOfId(principal.id) !== undefined;
}

/** True if the principal has the rights of the credential that created the endpoint. */
export function hasRightsOf(principal: Principal, { scopes }: Pick<EndpointSecrets, 'scopes'>): boolean {
  if (principal.kind !== 'authenticated') return false;
  return isAdministrator(principal) || scopes.every((scope) => principal.scopes.has(scope));
}

/** The refusal of a session of the portal that changes what an administrator made. */
export const administrators: { readonly refused: Problem } = {
  refused: {
    code: 'forbidden',
    message:
      'an administrator created the endpoint, so a session of the portal may only enable or disable it, describe it and take events away',
  },
};

/** The same secrets, with the rights that the endpoint had under its earlier owner. */
export function keepingRights(
  secrets: EndpointSecrets,
  before: string | null,
  after: string | null,
): EndpointSecrets {
  const moves = tenantOfId(before) !== undefined && tenantOfId(after) !== undefined;
  if (before === after || before === null || moves || secrets.rightsOf !== undefined) return secrets;
  return { ...secrets, rightsOf: before };
}

/** The store for one change of an endpoint, which gives the endpoint to the owner that it has afterwards. */
export function withOwnerAfter(
  store: Store,
  secrets: Pick<EndpointSecrets, 'scopes'>,
  principal: Principal,
): Store {
  const owned = (change: Change): Change => {
    const { table, next } = change;
    if (table !== endpointsCollection.name || next === null) return change;
    const owner = ownerAfter(next.owner, readEndpoint(next.doc).tenant, secrets, principal);
    return { ...change, next: { ...next, owner } };
  };
  return {
    ...store,
    commit: ({ changes, events }) => store.commit({ changes: changes.map(owned), events }),
  };
}

/*
 * Endpoints of earlier versions, brought up to date at the start: values of header fields move from the endpoint to its
 * encrypted secrets, and what administrators created for a tenant belongs to the tenant. Of several processes, the first
 * one changes each.
 */

/** Each up to 176 KiB, including header fields stored by earlier versions. */
const endpointsPerRead = 32;

/**
 * @param store ends the generation of the endpoints, so that running processes read what changed
 * @throws StoreUnavailable
 */
export async function updateEarlierEndpoints(
  store: Pick<Store, 'plan' | 'read' | 'commit'>,
  directory: Pick<EndpointDirectory, 'get'>,
): Promise<void> {
  const plan = store.plan({
    ...{ table: endpointsCollection.name, filter: always, sort: byId },
    limit: endpointsPerRead,
  });
  for await (const rows of rowBatches(plan, endpointsPerRead)) {
    for (const row of rows) await update(store, directory, row);
  }
}

type StoredEndpoint = { readonly url: string; readonly tenant?: string; readonly headers?: Headers };

async function update(
  store: Pick<Store, 'read' | 'commit'>,
  directory: Pick<EndpointDirectory, 'get'>,
  row: Row,
): Promise<void> {
  const endpoint = JSON.parse(row.doc) as StoredEndpoint;
  const { tenant, headers = {} } = endpoint;
  const hasValues = Object.values(headers).some((value) => value !== hiddenValue);
  const isOfTenant =
    tenant !== undefined &&
    tenantOfId(row.owner) === undefined &&
    directory.get(row.id)?.principal?.scopes.has('admin') === true;
  const secretsRow = hasValues || isOfTenant ? await store.read(endpointSecretsTable, row.id) : undefined;
  if (secretsRow === undefined) return;
  const before = JSON.parse(secretsRow.doc) as EndpointSecrets;
  const owner = isOfTenant && before.scopes.includes('admin') ? tenantPrincipalId(tenant) : row.owner;
  if (!hasValues && owner === row.owner) return;
  const next = hasValues ? { ...endpoint, headers: hideValues(headers) } : endpoint;
  const kept = hasValues ? withHeaders(before, headers, endpoint.url) : before;
  const secrets = keepingRights(kept, row.owner, owner);
  const search = searchTextOf(endpointsCollection, next);
  await store.commit({
    changes: [
      {
        ...{ table: endpointsCollection.name, id: row.id, expect: { rev: row.rev } },
        next: { ...keptRow(JSON.stringify(next), owner, row.createdAt, row.updatedAt), search },
      },
      {
        ...{ table: endpointSecretsTable, id: row.id, expect: { rev: secretsRow.rev } },
        next: keptRow(JSON.stringify(secrets), secretsRow.owner, secretsRow.createdAt, secretsRow.updatedAt),
      },
    ],
    events: [],
  });
}
