/** The resource `realtime` on a store of its own, with clients in memory: everything but the sockets. */

import { createHash, randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Conversation } from '../../src/http/message.ts';
import { corsPolicy } from '../../src/kernel/answer/cors.ts';
import { contentLimitsDefault } from '../../src/kernel/content/content-shape.ts';
import { createCallerAddress } from '../../src/kernel/rate-limit/caller-address.ts';
import type { Resource } from '../../src/kernel/resource.ts';
import { eventDocument } from '../../src/model/event.ts';
import { anonymous, authenticated, type Known, type Principal } from '../../src/model/principal.ts';
import { createOpenConnections } from '../../src/observe/open-connections.ts';
import { type RealtimeOptions, realtimeResources } from '../../src/realtime/realtime-routes.ts';
import { createLogViews } from '../../src/resources/events/seen-event.ts';
import type { EventEntry, Store } from '../../src/store/store.ts';
import { askOf } from '../resources/ask.ts';
import { configuration } from '../wire/resources/house-of-rules.ts';
import { MemoryPeer } from './memory-peer.ts';

export const administrator = authenticated({ id: 'root', scopes: ['admin'] });
export const collections = [...configuration.collections.values()];

export type WalkContext = {
  readonly resources: readonly Resource[];
  connect(principal?: Principal, known?: Known, peer?: MemoryPeer): Promise<MemoryPeer>;
};

export function optionsOf(store: Store, options: Partial<RealtimeOptions> = {}): RealtimeOptions {
  return {
    store,
    mac: (text) => createHash('sha256').update(text).digest('base64url'),
    base: '/api/v1',
    collections,
    views: createLogViews(collections),
    clock: Date.now,
    connections: createOpenConnections(Date.now),
    random: randomBytes,
    cors: corsPolicy({}),
    crossSite: () => false,
    addressOf: createCallerAddress(0),
    limits: { ...contentLimitsDefault, validationErrorsMax: 10 },
    realtimeAttemptMs: 0,
    realtimeAttemptsMax: 1,
    realtimeTicketSeconds: 30,
    realtimePatternsMax: 100,
    realtimeBufferBytesMax: 256 * 1024,
    realtimeMessagesPerMinuteMax: 600,
    eventBatchBytesMax: 256 * 1024,
    ...options,
  };
}

export const handshakeFields = [
  ...['Upgrade', 'websocket', 'Connection', 'Upgrade', 'Sec-WebSocket-Version', '13'],
  ...['Sec-WebSocket-Key', Buffer.alloc(16).toString('base64')],
];

export function openRoom(store: Store, options: Partial<RealtimeOptions> = {}): WalkContext {
  const resources = realtimeResources(optionsOf(store, options));
  const converse = resources[0]?.operations.get('GET')?.converse;
  if (converse === undefined) throw new Error('nobody is spoken to');
  return {
    resources,
    async connect(principal = anonymous, known = undefined, peer = new MemoryPeer()) {
      const ask = { ...askOf({ target: '/api/v1/realtime', fields: handshakeFields, principal }), known };
      const standing = { exists: true, visible: true, permitted: true };
      const conversation: Conversation = await converse(ask, standing);
      peer.listener = conversation.open(peer);
      return peer;
    },
  };
}

let made = 0;

export type EventParts = Partial<Pick<EventEntry, 'type' | 'collection' | 'owner'>> & {
  readonly object?: Readonly<Record<string, unknown>>;
  readonly tenant?: string;
  /** The resource before an update. */
  readonly former?: Readonly<Record<string, unknown>>;
};

/** Ids go down within a unit of several: their order in the log is not that of making. */
export function entryOf(parts: EventParts = {}): EventEntry {
  made += 1;
  const { type = 'staff.created', collection = 'staff', owner = null, object = {}, tenant } = parts;
  const id = `evt_${String(1_000_000 - made)}`;
  const doc = eventDocument(id, type, Date.now(), JSON.stringify(object), tenant);
  const { former } = parts;
  const entry = { id, type, collection, owner, doc, createdAt: Date.now() };
  return former === undefined
    ? entry
    : { ...entry, document: 'o', former: JSON.stringify({ id: 'o', ...former }) };
}

/** Resolves when live sockets of the embedded store have been told. @returns ids of the events, in log order */
export async function emit(store: Store, ...parts: readonly EventParts[]): Promise<readonly string[]> {
  const events = (parts.length === 0 ? [{}] : parts).map(entryOf);
  const commit = await store.commit({ changes: [], events });
  if (commit.outcome !== 'committed') throw new Error(commit.outcome);
  // The hub tells in the turn after the one in which the writer is answered.
  await setImmediate();
  return events.map(({ id }) => id).sort();
}

/** One of each of these types, as units of their own. */
export async function emitTypes(store: Store, ...types: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const type of types)
    ids.push(...(await emit(store, { type, collection: type.split('.', 1)[0] ?? '' })));
  return ids;
}

/** Fails the test where a peer was spoken to after its end. */
export function endWith(context: TestContext, ...peers: readonly MemoryPeer[]): void {
  context.after(() => {
    for (const peer of peers) peer.close(1000, '');
  });
}
