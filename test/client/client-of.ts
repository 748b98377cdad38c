/** Clients of a running program, typed by the configuration of the shop. */
import type config from '../../examples/shop/comity.config.ts';
import type { Client } from '../../src/client/calls.ts';
import { type ApiOf, type ClientDeclaration, createClient } from '../../src/client/index.ts';
import { adminKey } from '../harness/exchange.ts';

export type Shop = ApiOf<typeof config>;
export type ShopClient = Client<typeof config>;

/** A client with the administrator key, unless it is given another credential. */
export function clientOf(
  baseUrl: string,
  given: Partial<ClientDeclaration<Shop>> = { key: adminKey },
): ShopClient {
  return createClient<typeof config>({ baseUrl, ...given });
}

/** A storage, as all tabs of an origin have it. */
export function memoryStorage(): Storage & { readonly values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    getItem: (name: string) => values.get(name) ?? null,
    setItem: (name: string, value: string) => void values.set(name, value),
    removeItem: (name: string) => void values.delete(name),
  } as unknown as Storage & { readonly values: Map<string, string> };
}
