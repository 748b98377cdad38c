/** The inbox as it is served: everything but `status` is what the program says of a message, and nobody else does. */
import type { Collection } from '../../../model/collection.ts';
import { receivedCollection } from '../../../webhooks/inbound/collections.ts';

const changeable = 'status';

export const inboxCollection: Collection = {
  ...receivedCollection,
  unpatchable: new Set(
    Object.keys(receivedCollection.schema.properties).filter((name) => name !== changeable),
  ),
};
