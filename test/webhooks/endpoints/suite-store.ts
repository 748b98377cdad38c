/** One embedded store for all tests of a file. */
import type { Store } from '../../../src/store/store.ts';
import { openEmbedded } from '../../harness/stores.ts';

export function openSuiteStore(): Promise<Store> {
  return openEmbedded();
}
