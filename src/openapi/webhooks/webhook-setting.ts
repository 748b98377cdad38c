/** What the description of sending webhooks is made from: the collections of the program's own, types of events, and limits. */
import type { Collection } from '../../model/collection.ts';
import type { Components } from '../components.ts';
import type { CollectionLimits } from '../described.ts';
import type { Item } from '../item.ts';

export type WebhookCollections = {
  readonly endpoints: Collection;
  readonly deliveries: Collection;
  readonly recoveries: Collection;
};

/** How the program is set up, as far as it shows. */
export type WebhookOptions = {
  /** Those that the program brings itself. */
  readonly collections: WebhookCollections;
  readonly eventTypes: readonly DescribedEventType[];
  /** The setting of that name. */
  readonly secretOverlapSecondsMax: number;
};

/** What the paths of one part are made from. */
export type WebhookSetting = {
  readonly collections: WebhookCollections;
  readonly base: string;
  readonly limits: CollectionLimits & Pick<WebhookOptions, 'secretOverlapSecondsMax'>;
  readonly components: Components;
};

/** A type that the program knows: the same list as it answers requests with. */
export type DescribedEventType = {
  readonly type: string;
  readonly description: string;
  /** The collection whose writes these are. */
  readonly collection: { readonly name: string } | undefined;
  /** Of `data.object`; undefined: any object. */
  readonly schema: Item | undefined;
  /** A `data.object`. */
  readonly sample: Item | undefined;
};
