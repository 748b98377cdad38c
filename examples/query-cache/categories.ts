/**
 * TanStack Query over `comity/client`: a query, a mutation that shows its result before it is there, and a live list that writes into the
 * cache. This is its core, which the adapters of React, Vue, Solid and Svelte have in common: `useQuery(categories(client))`.
 */
import type { MutationObserverOptions, QueryClient, QueryObserverOptions } from '@tanstack/query-core';
import { type Client, ConflictError } from 'comity/client';
import type config from '../shop/comity.config.ts';

export type Shop = Client<typeof config>;
export type Category = Awaited<ReturnType<Shop['categories']['get']>>;

const query = { sort: ['name'], limit: 100 } as const;
const queryKey = ['categories'];

/** What is on the server. The client repeats by itself what may be repeated, and a 304 makes reading again cheap. */
export function categories(client: Shop): QueryObserverOptions<readonly Category[]> & { queryKey: string[] } {
  return {
    queryKey,
    queryFn: async ({ signal }) => (await client.categories.list(query, { signal })).items,
    retry: false,
  };
}

/** Keeps the cache current until the signal: what is in it is never old, so nothing needs to be fetched again. */
export async function keepCategoriesLive(
  cache: QueryClient,
  client: Shop,
  signal: AbortSignal,
): Promise<void> {
  const list = await client.categories.live(query, { signal });
  const write = (): void => {
    if (list.state === 'live') cache.setQueryData(queryKey, list.page.items);
  };
  cache.setQueryDefaults(queryKey, { staleTime: Number.POSITIVE_INFINITY });
  list.subscribe(write);
  write();
}

type Renaming = { readonly category: Category; readonly name: string };

/** Renames the version that its user saw. A `ConflictError` goes to the caller, and the cache then has what is there. */
export function renaming(
  cache: QueryClient,
  client: Shop,
): MutationObserverOptions<Category, Error, Renaming> {
  // Only the one document: a live list may have written others meanwhile.
  const show = (shown: Category) =>
    cache.setQueryData<readonly Category[]>(queryKey, (items) =>
      items?.map((item) => (item.id === shown.id ? shown : item)),
    );
  return {
    mutationFn: ({ category, name }) => client.categories.update(category, { name }),
    onMutate: async ({ category, name }) => {
      await cache.cancelQueries({ queryKey });
      show({ ...category, name });
    },
    onError: (error, { category }) =>
      show(error instanceof ConflictError ? (error as ConflictError<Category>).theirs : category),
    onSuccess: show,
  };
}
