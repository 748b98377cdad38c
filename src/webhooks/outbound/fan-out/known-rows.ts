/** Endpoints put together from their rows, the rows of their secrets and the principals of their owners. */
import type { Endpoint } from '../../../model/endpoint.ts';
import type { Row } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import type { EndpointSecrets } from '../tables.ts';
import type { Kept, KeptRows } from './kept-rows.ts';
import type { Principals, Wanted } from './principals.ts';

export type ParsedEndpoint = {
  readonly endpoint: Endpoint;
  readonly owner: string | null;
  readonly url: URL;
};

export function parseEndpoint({ doc, owner }: Row): ParsedEndpoint {
  const endpoint = JSON.parse(doc) as Endpoint;
  return { endpoint, owner, url: new URL(endpoint.url) };
}

export function parseSecrets({ doc }: Row): EndpointSecrets {
  return JSON.parse(doc) as EndpointSecrets;
}

type Sources = {
  readonly endpoints: Pick<KeptRows<ParsedEndpoint>, 'rows'>;
  readonly secrets: Pick<KeptRows<EndpointSecrets>, 'rows'>;
};

/** Whose principals are needed. */
export function* ownersOf({ endpoints, secrets }: Sources): Generator<Wanted> {
  for (const [id, { value }] of endpoints.rows) {
    const beside = secrets.rows.get(id);
    if (beside !== undefined) yield { owner: value.owner, scopes: beside.value.scopes };
  }
}

/**
 * One without a row of secrets was made or removed while the two tables were read: the next reading, which its change brings about, has
 * it or has it not. What nothing changed about stays the same object.
 */
export function knownEndpoints(
  { endpoints, secrets }: Sources,
  principals: Pick<Principals, 'get'>,
  before: ReadonlyMap<string, KnownEndpoint>,
): ReadonlyMap<string, KnownEndpoint> {
  const known = new Map<string, KnownEndpoint>();
  for (const [id, row] of endpoints.rows) {
    const beside = secrets.rows.get(id);
    if (beside !== undefined) known.set(id, knownEndpoint(row, beside.value, principals, before.get(id)));
  }
  return known;
}

function knownEndpoint(
  { rev, value: { endpoint, owner, url } }: Kept<ParsedEndpoint>,
  { secrets, scopes }: EndpointSecrets,
  principals: Pick<Principals, 'get'>,
  before: KnownEndpoint | undefined,
): KnownEndpoint {
  const principal = principals.get(owner, scopes);
  if (before?.rev === rev && before.secrets === secrets && before.principal === principal) return before;
  return { endpoint, rev, owner, principal, url, secrets };
}
