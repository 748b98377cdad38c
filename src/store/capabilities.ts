/**
 * The services of the program, which every feature takes. src/compose.ts creates them once; tests replace some. A feature takes the
 * services and at most three arguments beside them.
 */
import type { Settings } from '../config/settings.ts';
import type { ProgramMemory } from '../memory/program-memory.ts';
import type { Observe } from '../observe/observation.ts';
import type { Tracing } from '../observe/tracing.ts';
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
  readonly settings: Settings;
  readonly memory: ProgramMemory;
  /** Absent: no traces are sent. */
  readonly tracing?: Tracing | undefined;
};
