/** The capabilities that every feature is given besides its settings. src/compose.ts makes it once; tests replace the clock and the randomness. */
import type { Observe } from '../observe/observation.ts';
import type { Store } from './store.ts';

export type Services = {
  readonly store: Store;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Unguessable octets. */
  readonly random: (count: number) => Buffer;
  /** A new id, after all earlier ones in the order of text. */
  readonly newId: () => string;
  readonly observe: Observe;
};
