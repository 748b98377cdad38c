/** What the description of receiving webhooks is made from: the senders that are declared, the inbox, and limits. */
import type { DeclaredSender } from '../../config/senders.ts';
import type { Collection } from '../../model/collection.ts';
import type { Components } from '../components.ts';
import type { CollectionLimits } from '../described.ts';

/** How the program is set up, as far as it shows. */
export type ReceivingOptions = {
  /** The inbox, as it is served. */
  readonly collection: Collection;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** The settings of these names. */
  readonly receivedBytesMax: number;
  readonly receivedReplayMax: number;
  readonly secretOverlapSecondsMax: number;
};

/** What the paths of one part are made from. */
export type ReceivingSetting = ReceivingOptions & {
  readonly base: string;
  readonly limits: CollectionLimits;
  readonly components: Components;
};
