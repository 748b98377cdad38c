/** Options of the received messages' resources, in addition to those of every collection. */
import type { Source } from '../../../config/sources.ts';

export type ReceivedResourcesOptions = {
  /** Declared senders, subscribers and jobs: a message of any other can be read and marked, but not replayed. */
  readonly senders: ReadonlyMap<string, Source>;
  /** The setting: messages that one request may replay. */
  readonly receivedReplayMax: number;
};
