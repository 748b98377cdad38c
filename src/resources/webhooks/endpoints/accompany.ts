/**
 * What goes with a change of an endpoint, in one unit. One that is removed takes its secrets along and what is known of its health; one that
 * is enabled again starts in good health; and every change makes another generation (with-generation.ts), so that all processes read it.
 *
 * The deliveries of an endpoint that was removed stay in the log until their time is over, and are never tried again: the sender finds no
 * endpoint to them.
 *
 * Values of header fields are not served with the endpoint: a change of them, and of the URL that they are sent to, is one of its secrets.
 *
 * An endpoint is told what the credential that made it could read. One that may do less cannot lead that elsewhere.
 */
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { isAdministrator, type Principal } from '../../../model/principal.ts';
import { keptRow } from '../../../store/kept-row.ts';
import type { Change, Store } from '../../../store/store.ts';
import { type Headers, withHeaders } from '../../../webhooks/outbound/endpoint-headers.ts';
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
): (written: Written, headers?: Headers) => Promise<Accompaniment> {
  return async ({ ask, id, before, next }, headers) => {
    if (next === null) {
      const tables = [endpointSecretsTable, endpointHealthTable];
      const removals = await Promise.all(tables.map((table) => removalOf(store, table, id)));
      return { changes: [...removals.flat(), ...directory.generationChanges()] };
    }
    const stood = before === undefined ? undefined : readEndpoint(before.doc);
    const after = readEndpoint(next.doc);
    const values = await headersChange(store, id, after, headers);
    if (stood !== undefined && stood.url !== after.url && !(await mayLead(store, ask.principal, id))) {
      return { refused: { code: 'forbidden', message: narrower } };
    }
    const isEnabled = stood?.status === 'disabled' && after.status === 'enabled';
    const health = isEnabled ? await removalOf(store, endpointHealthTable, id) : [];
    return { changes: [...values, ...health, ...directory.generationChanges()] };
  };
}

/** @param headers as they were asked for; undefined: none */
async function headersChange(
  store: Pick<Store, 'read'>,
  id: string,
  { url, updatedAt }: Endpoint,
  headers: Headers | undefined,
): Promise<readonly Change[]> {
  const row = await store.read(endpointSecretsTable, id);
  if (row === undefined) return [];
  const before = JSON.parse(row.doc) as EndpointSecrets;
  const after = withHeaders(before, headers, url);
  if (after === before) return [];
  const at = Math.max(Date.parse(updatedAt), row.updatedAt);
  const next = keptRow(JSON.stringify(after), row.owner, row.createdAt, at);
  return [{ table: endpointSecretsTable, id, expect: { rev: row.rev }, next }];
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

/** The removal of a row, where there is one. */
async function removalOf(store: Pick<Store, 'read'>, table: string, id: string): Promise<readonly Change[]> {
  const row = await store.read(table, id);
  return row === undefined ? [] : [{ table, id, expect: { rev: row.rev }, next: null }];
}
