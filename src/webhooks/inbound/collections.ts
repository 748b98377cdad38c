/** The inbox (§4.14, surface "Webhooks in"): every message that was accepted, and what became of it. Administrators alone see it. */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Collection } from '../../model/collection.ts';
import { receivedStatuses } from '../../model/received.ts';

const time = Type.String({ format: 'date-time' });
const textOrNull = Type.Union([Type.String(), Type.Null()]);

export const receivedCollection: Collection = resolveBuiltIn('received', {
  description: 'Webhooks that senders posted here: verified, stored once, and handed on.',
  schema: Type.Object({
    sender: Type.String(),
    dedupeKey: Type.String(),
    type: textOrNull,
    receivedAt: time,
    status: Type.Union(receivedStatuses.map((name) => Type.Literal(name))),
    attempts: Type.Integer(),
    scheduledAttempts: Type.Integer(),
    dueAt: Type.Union([time, Type.Null()]),
    lastError: textOrNull,
    contentType: textOrNull,
    contentLength: Type.Integer(),
  }),
  access: {
    read: 'administrator',
    create: 'administrator',
    update: 'administrator',
    delete: 'administrator',
  },
  // The first is the queue of each sender, the second finds what failed.
  indexes: [['sender', 'dueAt'], 'status'],
  search: [],
});
