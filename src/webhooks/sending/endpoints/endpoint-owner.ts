/**
 * The owner of an endpoint (§5.10). An endpoint that an administrator creates for a tenant belongs to the tenant, which sees and changes
 * it in its portal, as those that it creates there. Its rights stay those of the administrator (`rightsOf`): the events that it gets do
 * not depend on who owns it.
 */
import type { Problem } from '../../../http/problem.ts';
import { searchTextOf } from '../../../model/collection.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import { isAdministrator, type Principal, tenantOfId, tenantPrincipalId } from '../../../model/principal.ts';
import { type Change, keptRow, type Row, type Store } from '../../../store/store.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import { type EndpointSecrets, endpointSecretsTable, endpointsCollection } from '../sending-tables.ts';

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

/**
 * Gives endpoints that administrators created for tenants under earlier versions to these tenants. Another process may do the same: the
 * first one counts.
 * @throws StoreUnavailable
 */
export async function giveToTenants(
  store: Pick<Store, 'read' | 'commit'>,
  directory: Pick<EndpointDirectory, 'all' | 'generationChanges'>,
): Promise<void> {
  for (const known of [...directory.all()].filter(isAdministrators)) {
    const { id } = known.endpoint;
    const row = await store.read(endpointsCollection.name, id);
    const secretsRow = await store.read(endpointSecretsTable, id);
    if (row === undefined || secretsRow === undefined) continue;
    const secrets = JSON.parse(secretsRow.doc) as EndpointSecrets;
    const { tenant } = readEndpoint(row.doc);
    if (tenant === undefined || !secrets.scopes.includes('admin')) continue;
    const owner = tenantPrincipalId(tenant);
    const search = searchTextOf(endpointsCollection, JSON.parse(row.doc));
    await store.commit({
      changes: [
        changeOf(endpointsCollection.name, row, { doc: row.doc, owner, search }),
        changeOf(endpointSecretsTable, secretsRow, {
          doc: JSON.stringify(keepingRights(secrets, row.owner, owner)),
          owner: secretsRow.owner,
          search: null,
        }),
        ...directory.generationChanges(),
      ],
      events: [],
    });
  }
}

function isAdministrators({ endpoint: { tenant }, owner, principal }: KnownEndpoint): boolean {
  return tenant !== undefined && tenantOfId(owner) === undefined && principal?.scopes.has('admin') === true;
}

function changeOf(
  table: string,
  { id, rev, createdAt, updatedAt }: Row,
  {
    doc,
    owner,
    search,
  }: { readonly doc: string; readonly owner: string | null; readonly search: string | null },
): Change {
  const next = { ...keptRow(doc, owner, createdAt, updatedAt), search };
  return { table, id, expect: { rev }, next };
}
