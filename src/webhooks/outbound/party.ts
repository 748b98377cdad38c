/** Who shares with others what attempts need: turns, exchanges under way, memory. */
import type { KnownEndpoint } from './known-endpoint.ts';

/** The tenant of an endpoint, or its owner where there are no tenants. */
export function partyOf({ endpoint, principal, owner }: KnownEndpoint): string {
  return endpoint.tenant ?? principal?.tenant ?? owner ?? '';
}
