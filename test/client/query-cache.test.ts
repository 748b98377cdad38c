/** The example for TanStack Query, with its cache and observers, against the running shop. */
import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { MutationObserver, QueryClient, QueryObserver } from '@tanstack/query-core';
import { categories, keepCategoriesLive, renaming } from '../../examples/query-cache/categories.ts';
import { ConflictError } from '../../src/client/index.ts';
import { serverOfFile } from '../harness/running-server.ts';
import { until } from '../harness/until.ts';
import { clientOf } from './client-of.ts';

const program = await serverOfFile();
const client = clientOf(`${program.url}/api/v1`);
const writer = clientOf(`${program.url}/api/v1`);
const cache = new QueryClient();
const over = new AbortController();
after(() => {
  over.abort();
  client.close();
  cache.clear();
});

it('shows a query that a live list keeps current, and changes of it at once', async () => {
  const made = await writer.categories.create({ name: 'Kitchen' });
  const observer = new QueryObserver(cache, categories(client));
  const leave = observer.subscribe(() => undefined);
  const names = () =>
    observer
      .getCurrentResult()
      .data?.map(({ name }) => name)
      .join();
  await until(() => names() === 'Kitchen');
  await keepCategoriesLive(cache, client, over.signal);
  await writer.categories.create({ name: 'Garden' });
  await until(() => names() === 'Garden,Kitchen');

  const mutation = new MutationObserver(cache, renaming(cache, client));
  const [category] = observer.getCurrentResult().data?.filter(({ id }) => id === made.id) ?? [];
  assert.ok(category !== undefined);
  const renamed = mutation.mutate({ category, name: 'Attic' });
  await until(() => names()?.includes('Attic') === true);
  assert.equal((await renamed).name, 'Attic');
  await until(() => names() === 'Attic,Garden');

  // Someone else was faster: it is the version that was seen which is changed.
  await writer.categories.update(made.id, { name: 'Cellar' });
  await assert.rejects(mutation.mutate({ category, name: 'Loft' }), ConflictError);
  await until(() => names() === 'Cellar,Garden');
  leave();
});
