/**
 * The header fields that an endpoint adds to its deliveries. Their values are often credentials, so a representation
 * shows a mask for each value, and the values are stored with the endpoint's encrypted secrets. A mask in a PUT or a
 * patch keeps the value.
 */
import { searchText } from '../../model/collection.ts';
import { always, byId } from '../../model/filter.ts';
import { rowBatches } from '../../store/in-batches.ts';
import { type Change, keptRow, type Row, type Store } from '../../store/store.ts';
import type { EndpointDirectory } from './known-endpoint.ts';
import {
  type EndpointSecrets,
  endpointSecretsTable,
  endpointsCollection,
  type HeaderValues,
} from './sending-tables.ts';

/** The mask of every value; therefore invalid as a value. */
export const hiddenValue = '********';

export type Headers = Readonly<Record<string, string>>;

/** Returns the header fields as served. */
export function hideValues(headers: Headers): Headers {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, hiddenValue]));
}

/** Returns the names whose value is the mask although the endpoint has no value to keep. */
export function namesWithoutValue(headers: Headers, before: Headers | undefined): readonly string[] {
  return Object.entries(headers)
    .filter(([name, value]) => value === hiddenValue && !Object.hasOwn(before ?? {}, name))
    .map(([name]) => name);
}

/**
 * Returns the secrets of an endpoint after a change of its header fields or URL; the same object if nothing changed.
 */
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

/** Each up to 176 KiB, including header fields stored by earlier versions. */
const endpointsPerRead = 32;

/**
 * Moves values that earlier versions stored in the endpoints to the secrets. If several processes run it, one of them
 * moves each.
 *
 * @param store updates the generation of the endpoints, so that running processes read the moved values
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
  for await (const rows of rowBatches(plan, endpointsPerRead)) {
    for (const row of rows) await moveOf(store, directory, row);
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
  const secretsRow = await store.read(endpointSecretsTable, row.id);
  if (secretsRow === undefined) return;
  const secrets = withHeaders(JSON.parse(secretsRow.doc) as EndpointSecrets, headers, url);
  const next = { ...endpoint, headers: hideValues(headers) };
  await store.commit({
    changes: [
      changeOf(endpointsCollection.name, row, next, searchText(endpointsCollection.searchFields, next)),
      changeOf(endpointSecretsTable, secretsRow, secrets, null),
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
