/** Options of the received messages' resources, in addition to those of every collection. */
import type { DeclaredSender } from '../../../config/senders.ts';

export type ReceivedResourcesOptions = {
  /** Declared senders: a message of any other can be read and marked, but not replayed. */
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** The setting: messages that one request may replay. */
  readonly receivedReplayMax: number;
};
