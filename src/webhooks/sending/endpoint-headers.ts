/**
 * The header fields that an endpoint adds to its deliveries. Their values are often credentials, so an endpoint is served with each value
 * replaced by a mark, and the values are kept with its secrets, which are encrypted. The mark sent back in a PUT or a patch keeps a value.
 */
import { searchText } from '../../model/collection.ts';
import { always, byId } from '../../model/filter.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, Keyset, Row, Store } from '../../store/store.ts';
import type { EndpointDirectory } from './known-endpoint.ts';
import {
  type EndpointSecrets,
  endpointSecretsTable,
  endpointsCollection,
  type HeaderValues,
} from './sending-tables.ts';

/** Shown in place of every value; therefore refused as a value itself. */
export const hiddenValue = '********';

export type Headers = Readonly<Record<string, string>>;

/** The header fields as they are served. */
export function hideValues(headers: Headers): Headers {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, hiddenValue]));
}

/** Names of header fields that are sent masked although the endpoint has no value to keep for them. */
export function namesWithoutValue(headers: Headers, before: Headers | undefined): readonly string[] {
  return Object.entries(headers)
    .filter(([name, value]) => value === hiddenValue && !Object.hasOwn(before ?? {}, name))
    .map(([name]) => name);
}

/** The secrets of an endpoint after its header fields or its URL were changed; the same object where that changes nothing. */
export function withHeaders(
  secrets: EndpointSecrets,
  headers: Headers | undefined,
  url: string,
): EndpointSecrets {
  const before = secrets.headers;
  const { headers: _before, ...others } = secrets;
  if (headers === undefined || Object.keys(headers).length === 0)
    return before === undefined ? secrets : others;
  const entries = Object.entries(headers).flatMap(([name, value]) => {
    const kept = value === hiddenValue ? before?.values[name] : value;
    return kept === undefined ? [] : [[name, kept] as const];
  });
  const after: HeaderValues = { url, values: Object.fromEntries(entries) };
  return JSON.stringify(after) === JSON.stringify(before) ? secrets : { ...others, headers: after };
}

/** Each up to 176 KiB, with the header fields that earlier versions kept in them. */
const endpointsPerRead = 32;

/**
 * Moves values that earlier versions kept in the endpoints themselves to the secrets. Of several processes one moves each.
 * @param store keeps the generation of the endpoints in step, so that processes that already run read what was moved
 * @throws StoreUnavailable
 */
export async function moveHeaderValues(
  store: Pick<Store, 'plan' | 'read' | 'commit'>,
  directory: Pick<EndpointDirectory, 'generationChanges'>,
): Promise<void> {
  const plan = store.plan({
    ...{ table: endpointsCollection.name, filter: always, sort: byId },
    limit: endpointsPerRead,
  });
  for (let position: Keyset = { from: 'start' }; ; ) {
    const rows = await plan.rows(position);
    for (const row of rows) await moveOf(store, directory, row);
    const last = rows.at(-1);
    if (last === undefined || rows.length < endpointsPerRead) return;
    position = { from: 'after', key: [last.id] };
  }
}

async function moveOf(
  store: Pick<Store, 'read' | 'commit'>,
  directory: Pick<EndpointDirectory, 'generationChanges'>,
  row: Row,
): Promise<void> {
  const endpoint = JSON.parse(row.doc) as { readonly url: string; readonly headers?: Headers };
  const { headers, url } = endpoint;
  if (headers === undefined || Object.values(headers).every((value) => value === hiddenValue)) return;
  const beside = await store.read(endpointSecretsTable, row.id);
  if (beside === undefined) return;
  const secrets = withHeaders(JSON.parse(beside.doc) as EndpointSecrets, headers, url);
  const next = { ...endpoint, headers: hideValues(headers) };
  await store.commit({
    changes: [
      changeOf(endpointsCollection.name, row, next, searchText(endpointsCollection.searchFields, next)),
      changeOf(endpointSecretsTable, beside, secrets, null),
      ...directory.generationChanges(),
    ],
    events: [],
  });
}

function changeOf(
  table: string,
  { id, rev, owner, createdAt, updatedAt }: Row,
  doc: object,
  search: string | null,
): Change {
  const next = { ...keptRow(JSON.stringify(doc), owner, createdAt, updatedAt), search };
  return { table, id, expect: { rev }, next };
}
