/** Every path of receiving webhooks (§4.14): one for each sender, the inbox, and the senders as administrators see them. */
import type { Components } from '../components.ts';
import type { CollectionLimits } from '../described.ts';
import type { Item } from '../item.ts';
import type { PathDescription } from '../path-item.ts';
import { receivedPaths } from './received-paths.ts';
import { receiverPaths, receiverTag } from './receiver-paths.ts';
import type { ReceivingOptions, ReceivingSetting } from './receiving-setting.ts';
import { senderPaths } from './sender-paths.ts';

export function receivingPaths(
  base: string,
  options: ReceivingOptions,
  limits: CollectionLimits,
  components: Components,
): readonly PathDescription[] {
  const setting: ReceivingSetting = { ...options, base, limits, components };
  return [...receiverPaths(setting), ...receivedPaths(setting), ...senderPaths(setting)];
}

export function receivingTags({ collection, senders }: ReceivingOptions): readonly Item[] {
  const receivers = {
    name: receiverTag,
    description: 'Where senders of webhooks post, each to a path of its own.',
  };
  return [
    ...(senders.size === 0 ? [] : [receivers]),
    { name: collection.name, description: collection.description },
    { name: 'senders', description: 'Whose webhooks are received.' },
  ];
}
