/** A process with the parts of the sender that watch over endpoints, on a store and a clock that a test gives it. */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { authenticated, type Scope } from '../../../src/model/principal.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { withStages } from '../../../src/store/stages.ts';
import { keptRow, type Store } from '../../../src/store/store.ts';
import {
  createHealth,
  type EndpointNotice,
  type HealthOfEndpoints,
} from '../../../src/webhooks/sending/endpoint-health.ts';
import { createEndpointDirectory } from '../../../src/webhooks/sending/fan-out/directory.ts';
import { generationStage } from '../../../src/webhooks/sending/fan-out/generation.ts';
import { deliveriesStage } from '../../../src/webhooks/sending/fan-out/with-deliveries.ts';
import type { EndpointDirectory, KnownEndpoint } from '../../../src/webhooks/sending/known-endpoint.ts';
import {
  type EndpointHealth,
  endpointHealthTable,
  endpointSecretsTable,
  endpointsCollection,
} from '../../../src/webhooks/sending/sending-tables.ts';
import type { Lanes } from '../../../src/work/lanes.ts';
import { servicesOver } from '../../harness/services-over.ts';

export const owner = 'usr_1';
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
export const startedAt = Date.UTC(2030, 0, 1);

/** Of every process of a test. */
export type Time = { now: number };

export type Process = {
  readonly directory: EndpointDirectory;
  readonly health: HealthOfEndpoints;
  readonly notices: EndpointNotice[];
  readonly facts: Observation[];
  /** As when lanes came or went. */
  changeLanes(): void;
};

const newId = createIdSource(Date.now, () => randomInt(32));

export async function startProcess(context: TestContext, store: Store, time: Time): Promise<Process> {
  const facts: Observation[] = [];
  const notices: EndpointNotice[] = [];
  const lanesListeners = new Set<() => void>();
  const clock = () => time.now;
  const directory = await createEndpointDirectory(
    { store, clock, observe: (fact) => facts.push(fact) },
    [],
    async (id, scopes: readonly Scope[]) => authenticated({ id: id ?? '', scopes }),
    [],
  );
  const fanOut = deliveriesStage({
    store,
    directory,
    wakes: { announce: () => undefined, announceMade: () => undefined, noteEvent: () => undefined },
    events: { keep: () => undefined },
    owed: { look: () => undefined },
    newId,
    clock,
  });
  const telling = withStages(store, generationStage(directory, store.lines), fanOut);
  const lanes: Pick<Lanes, 'onChange'> = {
    onChange(listener) {
      lanesListeners.add(listener);
      return () => lanesListeners.delete(listener);
    },
  };
  const services = servicesOver(telling, {
    ...{ clock, newId, observe: (fact) => facts.push(fact) },
    settings: { endpointWarnSeconds: 86_400, endpointDisableSeconds: 5 * 86_400 },
  });
  const health = createHealth(services, directory, lanes, async (notice) => void notices.push(notice));
  context.after(async () => {
    await health.close();
    assert.equal(lanesListeners.size, 0);
    await directory.close();
  });
  return {
    directory,
    health,
    notices,
    facts,
    changeLanes() {
      for (const listener of lanesListeners) listener();
    },
  };
}

/** Makes an endpoint as the program does, known to the processes. */
export async function makeEndpoint(
  store: Store,
  processes: readonly Process[],
  parts: Partial<Endpoint> = {},
): Promise<string> {
  const id = `ep_${newId()}`;
  const time = new Date(startedAt).toISOString();
  const endpoint: Endpoint = {
    id,
    url: 'https://receiver.example/hooks/secret',
    events: ['products.*'],
    scheme: 'standard',
    status: 'enabled',
    createdAt: time,
    updatedAt: time,
    ...parts,
  };
  const secrets = { secrets: [], scopes: ['webhooks', 'read'] };
  const row = { ...keptRow(JSON.stringify(endpoint), owner, startedAt, startedAt), search: 'searched' };
  const secretsRow = keptRow(JSON.stringify(secrets), owner, startedAt, startedAt);
  await committed(store, processes, () => [
    { table: endpointsCollection.name, id, expect: { absent: true }, next: row },
    { table: endpointSecretsTable, id, expect: { absent: true }, next: secretsRow },
  ]);
  return id;
}

/** Changes it as its owner does, with whatever else is in the unit. */
export async function changeEndpoint(
  store: Store,
  processes: readonly Process[],
  id: string,
  parts: Partial<Endpoint>,
): Promise<void> {
  const row = await store.read(endpointsCollection.name, id);
  const health = await store.read(endpointHealthTable, id);
  assert.ok(row !== undefined);
  const next = {
    ...keptRow(JSON.stringify({ ...JSON.parse(row.doc), ...parts }), owner, startedAt, startedAt),
  };
  await committed(store, processes, () => [
    { table: endpointsCollection.name, id, expect: { rev: row.rev }, next: { ...next, search: 'searched' } },
    ...(health === undefined || parts.status !== 'enabled'
      ? []
      : [{ table: endpointHealthTable, id, expect: { rev: health.rev }, next: null }]),
  ]);
}

async function committed(
  store: Store,
  processes: readonly Process[],
  changes: () => Parameters<Store['commit']>[0]['changes'],
): Promise<void> {
  const [first] = processes;
  await first?.directory.refresh();
  const generation = first?.directory.generationChanges() ?? [];
  const commit = await store.commit({ changes: [...changes(), ...generation], events: [] });
  assert.equal(commit.outcome, 'committed');
  for (const { directory } of processes) await directory.refresh();
}

export function knownOf({ directory }: Process, id: string): KnownEndpoint {
  const known = directory.get(id);
  assert.ok(known !== undefined);
  return known;
}

/** Notes a failed attempt by schedule that ends now, and waits for what follows. */
export async function fail(process: Process, id: string, time: Time): Promise<void> {
  const verdict = { health: 'failed', notBefore: null, slowDown: false, gone: false } as const;
  process.health.note(knownOf(process, id), verdict, time.now);
  await process.health.settled();
}

export async function succeed(process: Process, id: string, time: Time): Promise<void> {
  const verdict = { health: 'succeeded', notBefore: null, slowDown: false, gone: false } as const;
  process.health.note(knownOf(process, id), verdict, time.now);
  await process.health.settled();
}

export async function healthRow(store: Store, id: string): Promise<EndpointHealth | undefined> {
  const row = await store.read(endpointHealthTable, id);
  return row === undefined ? undefined : (JSON.parse(row.doc) as EndpointHealth);
}
