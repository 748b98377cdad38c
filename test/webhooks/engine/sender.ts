/**
 * The sender as the program has it, over a real store: directory, wakes, fan-out, health, settlement and engine. What is sent goes to
 * a function of the test.
 */

import { schedulesDefault } from '../../../src/config/webhook-schedules.ts';
import type { ExchangeOutcome } from '../../../src/egress/exchange.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { eventDocument } from '../../../src/model/event.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { authenticated } from '../../../src/model/principal.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { withStages } from '../../../src/store/stages.ts';
import { type Change, type Commit, type EventEntry, keptRow, type Store } from '../../../src/store/store.ts';
import type { Claim, Send } from '../../../src/webhooks/sending/conclude-delivery.ts';
import { DeliveryEngine } from '../../../src/webhooks/sending/delivery-engine.ts';
import { createHealth } from '../../../src/webhooks/sending/endpoint-health.ts';
import { createEndpointDirectory } from '../../../src/webhooks/sending/fan-out/directory.ts';
import { generationStage } from '../../../src/webhooks/sending/fan-out/generation.ts';
import { makeOwedDeliveries } from '../../../src/webhooks/sending/fan-out/owed-deliveries.ts';
import { deliveriesStage } from '../../../src/webhooks/sending/fan-out/with-deliveries.ts';
import {
  endpointHealthTable,
  endpointSecretsTable,
  endpointsCollection,
} from '../../../src/webhooks/sending/sending-tables.ts';
import { createSettle } from '../../../src/webhooks/sending/settle-delivery.ts';
import { createWakes } from '../../../src/webhooks/sending/wakes.ts';
import { createLanes } from '../../../src/work/lane-leases.ts';
import type { Lanes } from '../../../src/work/lanes.ts';
import { runtimeTimers, type Timers } from '../../../src/work/timers.ts';
import { servicesOver } from '../../harness/services-over.ts';

const dayS = 86_400;
const owner = 'usr_1';

export const settings = {
  webhookInFlightMax: 64,
  webhookEndpointInFlightDefault: 16,
  webhookResendsInFlightMax: 2,
  webhookBreakerFailuresMax: 10,
  webhookBreakerSeconds: 30,
  webhookBreakerSecondsMax: 600,
  webhookRetryAfterSecondsMax: dayS,
  webhookSnippetCharactersMax: 64,
  webhookLeaseMs: 25_000,
  webhookTimeoutMs: 15_000,
  endpointWarnSeconds: dayS,
  endpointDisableSeconds: 5 * dayS,
};

export type SenderOptions = {
  readonly store: Store;
  readonly answer: (claim: Claim, signal: AbortSignal) => Promise<ExchangeOutcome>;
  readonly clock?: () => number;
  readonly timers?: Timers;
  readonly settings?: Partial<typeof settings>;
  readonly pid?: number;
};

export type Sender = {
  readonly engine: DeliveryEngine;
  readonly lanes: Lanes;
  readonly observed: Observation[];
  /** What owners were told. */
  readonly notices: string[];
  endpoint(id: string, parts?: Partial<Endpoint>): Promise<void>;
  endpoints(ids: readonly string[], parts?: Partial<Endpoint>, owner?: string): Promise<void>;
  /** Writes an endpoint anew: its owner enables it, which starts its health afresh. */
  enable(id: string): Promise<void>;
  events(count: number): Promise<readonly string[]>;
  /** Puts rows as they are, without fan-out. */
  put(changes: readonly Change[]): Promise<void>;
  wake(endpointId: string): void;
  close(): Promise<void>;
};

export async function openSender(options: SenderOptions): Promise<Sender> {
  const { store, clock = Date.now } = options;
  const observed: Observation[] = [];
  const notices: string[] = [];
  const newId = createIdSource(clock, () => Math.floor(Math.random() * 32));
  const rooms = await openRooms({ ...options, clock, newId, observed, notices });
  const { directory, wakes, lanes, health, engine } = rooms;
  const observe = (observation: Observation): void => void observed.push(observation);
  const services = servicesOver(store, { clock, newId, observe });
  const owed = makeOwedDeliveries(services, directory, wakes);
  const events = { keep: () => undefined };
  const fanOut = deliveriesStage({ store, directory, wakes, events, owed, newId, clock });
  const told = withStages(store, fanOut);

  async function put(changes: readonly Change[]): Promise<void> {
    expectCommitted(await store.commit({ changes, events: [] }));
  }

  async function putEndpoints(
    ids: readonly string[],
    parts: Partial<Endpoint> = {},
    endpointOwner = owner,
  ): Promise<void> {
    const made = newEndpoints(ids, parts, clock(), endpointOwner);
    await put([...directory.generationChanges(), ...made]);
    await directory.refresh();
  }

  return {
    ...{ engine, lanes, observed, notices, put },
    endpoint: (id, parts) => putEndpoints([id], parts),
    endpoints: putEndpoints,
    async enable(id) {
      await put([...directory.generationChanges(), ...(await enabling(store, id, clock()))]);
      await directory.refresh();
    },
    async events(count) {
      const at = clock();
      const events: EventEntry[] = Array.from({ length: count }, () => {
        const id = `evt_${newId()}`;
        const doc = eventDocument(id, 'order.paid', at, '{"id":"1"}');
        return { id, type: 'order.paid', collection: '', owner, doc, createdAt: at };
      });
      expectCommitted(await told.commit({ changes: [], events }));
      return events.map(({ id }) => id);
    },
    wake: (endpointId) => wakes.announce([endpointId]),
    async close() {
      await engine.drain(0);
      await lanes.close();
      await health.close();
      await owed.close();
      await wakes.close();
      await directory.close();
    },
  };
}

type RoomOptions = SenderOptions & {
  readonly clock: () => number;
  readonly newId: () => string;
  readonly observed: Observation[];
  readonly notices: string[];
};

async function openRooms(options: RoomOptions) {
  const { store, answer, clock, newId, timers = runtimeTimers, pid = 1 } = options;
  const chosen = { ...settings, ...options.settings };
  const observe = (observation: Observation) => void options.observed.push(observation);
  const directory = await createEndpointDirectory(
    { store, clock, observe },
    [],
    async (id, scopes) => (id === null ? undefined : authenticated({ id, scopes })),
    [],
  );
  const services = servicesOver(store, { clock, newId, observe, settings: chosen });
  const wakes = await createWakes(services, directory);
  const time = { ...timers, monotonic: clock };
  const holder = { host: `host${pid}`, pid, startedAt: clock() };
  const process = { holder, isAlive: () => true, hasEnded: () => false };
  const lanes = await createLanes(services, process, directory, time);
  const written = { ...services, store: withStages(store, generationStage(directory, store.lines)) };
  const health = createHealth(written, directory, lanes, async ({ kind, endpoint }) => {
    options.notices.push(`${kind} ${endpoint.id}`);
  });
  const uniform = () => 0.5;
  const settle = createSettle(services, schedulesDefault, health, uniform);
  const send: Send = (claim, signal, end) => {
    const startedAt = clock();
    answer(claim, signal).then(
      (outcome) => end.attempted({ outcome, startedAt, endedAt: clock() }),
      (error) => end.failed(error),
    );
  };
  const work = { lanes, timers: time, uniform };
  const engine = new DeliveryEngine(services, work, { directory, wakes, send, settle });
  return { directory, wakes, lanes, health, engine };
}

function newEndpoints(
  ids: readonly string[],
  parts: Partial<Endpoint>,
  at: number,
  endpointOwner: string,
): readonly Change[] {
  const time = new Date(at).toISOString();
  const expect = { absent: true } as const;
  const secrets = JSON.stringify({ secrets: [], scopes: ['admin'] });
  return ids.flatMap((id): readonly Change[] => {
    const endpoint: Endpoint = {
      ...{ id, url: `http://receiver.example/${id}`, events: ['order.*'], scheme: 'standard' },
      ...{ status: 'enabled', createdAt: time, updatedAt: time, ...parts },
    };
    const next = withSearch(JSON.stringify(endpoint), endpointOwner, at);
    return [
      { table: endpointsCollection.name, id, expect, next },
      { table: endpointSecretsTable, id, expect, next: keptRow(secrets, endpointOwner, at, at) },
    ];
  });
}

/** What an owner's change does who enables an endpoint. */
async function enabling(store: Store, id: string, at: number): Promise<readonly Change[]> {
  const row = await store.read(endpointsCollection.name, id);
  const health = await store.read(endpointHealthTable, id);
  if (row === undefined) throw new Error(`${id} is not there`);
  const { disabledReason: _, ...endpoint } = JSON.parse(row.doc) as Endpoint;
  const next = withSearch(JSON.stringify({ ...endpoint, status: 'enabled' }), row.owner, at);
  const change: Change = { table: endpointsCollection.name, id, expect: { rev: row.rev }, next };
  if (health === undefined) return [change];
  return [change, { table: endpointHealthTable, id, expect: { rev: health.rev }, next: null }];
}

export function answered(
  status: number,
  fields: readonly (readonly [string, string])[] = [],
): ExchangeOutcome {
  const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 1, totalMs: 1 };
  const rest = { snippet: '', cut: null, protocol: 'http/1.1', reused: true, address: null, timing } as const;
  return { kind: 'answered', status, fields, ...rest };
}

export function failure(kind: 'timeout' | 'aborted'): ExchangeOutcome {
  const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 };
  return { kind: 'failed', failure: kind, message: kind, timing };
}

function withSearch(doc: string, owner: string | null, at: number): NonNullable<Change['next']> {
  return { ...keptRow(doc, owner, at, at), search: '' };
}

function expectCommitted(commit: Commit): void {
  if (commit.outcome !== 'committed') throw new Error(`a unit of the test is ${commit.outcome}`);
}
