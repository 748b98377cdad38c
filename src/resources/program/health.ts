/**
 * `/health/live`: the process answers. `/health/ready`: it can serve; 503 while the store cannot or while it drains.
 */
import { type Store, StoreUnavailable } from '../../store/store.ts';
import type { Resource } from '../resource.ts';
import { documentResource } from './document.ts';

/** @param isDraining true from the moment the program was told to stop */
export function healthResources(store: Store, isDraining: () => boolean): readonly Resource[] {
  const common = { mediaType: 'application/json', cacheControl: 'no-store', stable: false, inReserve: true };
  return [
    documentResource({ ...common, path: '/health/live', read: () => ({ content: '{"status":"live"}' }) }),
    documentResource({
      ...common,
      path: '/health/ready',
      read: async () => {
        if (isDraining()) throw new StoreUnavailable('draining', { retryAfterSeconds: 5 });
        await store.ping();
        return { content: '{"status":"ready"}' };
      },
    }),
  ];
}
