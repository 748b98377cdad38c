/** How the sender hears, without asking, that an endpoint has something due. */
import type { Change } from '../../store/store.ts';

export type Wakes = {
  /** What a unit must contain that makes something due without an event, so that other processes hear of it; often nothing. */
  changesFor(endpointId: string): readonly Change[];
  /** Tells this process, after the commit. */
  announce(endpointIds: Iterable<string>): void;
  /** Calls back with an endpoint that may have something due, however that came about and in whichever process. Returns the way to stop. */
  onWake(listener: (endpointId: string) => void): () => void;
  close(): Promise<void>;
};
