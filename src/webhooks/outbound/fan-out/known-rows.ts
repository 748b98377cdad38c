/** Endpoints put together from their rows, the rows of their secrets and the principals of their owners. */
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import type { Row } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import type { EndpointSecrets } from '../tables.ts';
import type { KeptRows } from './kept-rows.ts';
import type { Principals, Wanted } from './principals.ts';

export type ParsedEndpoint = {
  readonly endpoint: Endpoint;
  readonly owner: string | null;
  readonly url: URL;
};

export function parseEndpoint({ doc, owner }: Row): ParsedEndpoint {
  const endpoint = readEndpoint(doc);
  return { endpoint, owner, url: new URL(endpoint.url) };
}

export function parseSecrets({ doc }: Row): EndpointSecrets {
  return JSON.parse(doc) as EndpointSecrets;
}

type Sources = {
  readonly endpoints: Pick<KeptRows<ParsedEndpoint>, 'rows'>;
  readonly secrets: Pick<KeptRows<EndpointSecrets>, 'rows'>;
};

/** Whose principals are needed for these endpoints. */
export function* ownersOf({ endpoints, secrets }: Sources, ids: Iterable<string>): Generator<Wanted> {
  for (const id of ids) {
    const row = endpoints.rows.get(id);
    const beside = secrets.rows.get(id);
    if (row !== undefined && beside !== undefined) {
      yield { owner: row.value.owner, scopes: beside.value.scopes };
    }
  }
}

/**
 * The endpoint as the directory is to know it; undefined where there is none. The two tables are read one after the other, so an endpoint
 * without a row of secrets was made or removed in between. One whose header values go with another URL was changed in between and stays as
 * it was before: no value is sent to a URL that it was not given for. The next reading, which the change brings about, finds both rows as
 * they are. Where nothing changed, the object stays the same.
 */
export function knownEndpoint(
  { endpoints, secrets }: Sources,
  principals: Pick<Principals, 'get'>,
  id: string,
  before: KnownEndpoint | undefined,
): KnownEndpoint | undefined {
  const row = endpoints.rows.get(id);
  const beside = secrets.rows.get(id)?.value;
  if (row === undefined || beside === undefined) return undefined;
  const { rev, value } = row;
  const { endpoint, owner, url } = value;
  const { headers } = beside;
  if (headers !== undefined && headers.url !== endpoint.url) return before;
  const principal = principals.get(owner, beside.scopes);
  const isSame = before?.rev === rev && before.secrets === beside.secrets && before.principal === principal;
  if (isSame) return before;
  return { endpoint, rev, owner, principal, url, secrets: beside.secrets, headers: headers?.values };
}
