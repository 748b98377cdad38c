/** State that all stores over one folder share, across threads. */
import type { ConnectionOptions } from './connection.ts';
import type { TableNumbers } from './reconcile.ts';

/** Words of memory, so that each thread knows at once what another one did or found. */
export type HomeState = Int32Array<SharedArrayBuffer>;

/** Counts commits; the writer adds to it before it acknowledges one, so a snapshot that began at the present count is current. */
export const commitsAt = 0;
/** Not 0 once a thread has found damage. */
export const damageAt = 1;
/** Counts requests to the writer, which waits for it to change. */
export const requestsAt = 2;
const words = 3;

export function createHomeState(): HomeState {
  return new Int32Array(new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT));
}

/** Data from which any thread can open a store over the folder. */
export type HomeData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly numbers: TableNumbers;
  readonly state: HomeState;
};
