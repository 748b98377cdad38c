/** What the resources of received messages need besides what every collection does. */
import type { DeclaredSender } from '../../../config/senders.ts';

export type ReceivedResourcesOptions = {
  /** Those that are declared now: a message of any other can be read and marked, and not replayed. */
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** The setting: messages that one request may put back. */
  readonly receivedReplayMax: number;
};
