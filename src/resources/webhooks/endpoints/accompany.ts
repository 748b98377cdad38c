/**
 * What goes with a change of an endpoint, in one unit. One that is removed takes its secrets along and what is known of its health; one that
 * is enabled again starts in good health; and whatever changes what is sent where makes another generation (with-generation.ts).
 *
 * The deliveries of an endpoint that was removed stay in the log until their time is over, and are never tried again: the sender finds no
 * endpoint to them.
 *
 * An endpoint is told what the credential that made it could read. One that may do less cannot lead that elsewhere.
 */
import type { Endpoint } from '../../../model/endpoint.ts';
import { isAdministrator, type Principal } from '../../../model/principal.ts';
import type { Change, Store } from '../../../store/store.ts';
import type { EndpointDirectory } from '../../../webhooks/outbound/known-endpoint.ts';
import {
  type EndpointSecrets,
  endpointHealthTable,
  endpointSecretsTable,
} from '../../../webhooks/outbound/tables.ts';
import type { Accompaniment, Written } from '../../collection/served.ts';

export function accompanyEndpoint(
  store: Pick<Store, 'read'>,
  directory: Pick<EndpointDirectory, 'generationChanges'>,
): (written: Written) => Promise<Accompaniment> {
  return async ({ ask, id, before, next }) => {
    if (next === null) {
      const tables = [endpointSecretsTable, endpointHealthTable];
      const removals = await Promise.all(tables.map((table) => removalOf(store, table, id)));
      return { changes: [...removals.flat(), ...directory.generationChanges()] };
    }
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as Endpoint);
    const after = JSON.parse(next.doc) as Endpoint;
    if (stood !== undefined && !changesRoutes(stood, after)) return { changes: [] };
    if (stood !== undefined && stood.url !== after.url && !(await mayLead(store, ask.principal, id))) {
      return { refused: { code: 'forbidden', message: narrower } };
    }
    const isEnabled = stood?.status === 'disabled' && after.status === 'enabled';
    const health = isEnabled ? await removalOf(store, endpointHealthTable, id) : [];
    return { changes: [...health, ...directory.generationChanges()] };
  };
}

const narrower =
  'the endpoint was made with a credential that may do more than this one, which cannot move it';

async function mayLead(store: Pick<Store, 'read'>, principal: Principal, id: string): Promise<boolean> {
  if (principal.kind !== 'authenticated') return false;
  if (isAdministrator(principal)) return true;
  const row = await store.read(endpointSecretsTable, id);
  if (row === undefined) return false;
  const { scopes } = JSON.parse(row.doc) as EndpointSecrets;
  return scopes.every((scope) => principal.scopes.has(scope));
}

const routing = ['url', 'events', 'scheme', 'status', 'tenant'] as const;

/** Whether another event may go there, or the same one elsewhere. */
function changesRoutes(before: Endpoint, after: Endpoint): boolean {
  return routing.some((member) => JSON.stringify(before[member]) !== JSON.stringify(after[member]));
}

/** The removal of a row, where there is one. */
async function removalOf(store: Pick<Store, 'read'>, table: string, id: string): Promise<readonly Change[]> {
  const row = await store.read(table, id);
  return row === undefined ? [] : [{ table, id, expect: { rev: row.rev }, next: null }];
}
