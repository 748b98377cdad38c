/** Collections with different rights, people, endpoints and events of them, and processes that share a store. */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../../src/config/collections.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { eventDocument } from '../../../src/model/event.ts';
import { always, byId } from '../../../src/model/filter.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { type Authenticated, authenticated, type Scope } from '../../../src/model/principal.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { withStages } from '../../../src/store/stages.ts';
import { type Change, type EventEntry, keptRow, type Store } from '../../../src/store/store.ts';
import { createEndpointDirectory } from '../../../src/webhooks/sending/fan-out/directory.ts';
import type { PrincipalOf } from '../../../src/webhooks/sending/fan-out/endpoints-in-memory.ts';
import { makeOwedDeliveries } from '../../../src/webhooks/sending/fan-out/owed-deliveries.ts';
import { deliveriesStage } from '../../../src/webhooks/sending/fan-out/with-deliveries.ts';
import type { EndpointDirectory, KnownEndpoint } from '../../../src/webhooks/sending/known-endpoint.ts';
import {
  endpointSecretsTable,
  endpointsCollection,
  fanOutTable,
} from '../../../src/webhooks/sending/sending-tables.ts';
import { createEventSource, type EventSource } from '../../../src/webhooks/sending/sent-event.ts';
import { createWakes, type Wakes } from '../../../src/webhooks/sending/wakes.ts';
import { servicesOver } from '../../harness/services-over.ts';

const title = Type.Object({ title: Type.Optional(Type.String()) });

export const collections = [
  ...resolveCollections({
    products: { schema: title, access: { read: 'public' } },
    notes: { schema: title, access: { read: 'owner' } },
    offices: {
      schema: Type.Object({ tenantId: Type.Optional(Type.String()) }),
      tenantField: 'tenantId',
      access: { read: 'tenant' },
    },
    articles: {
      schema: Type.Object({ published: Type.Optional(Type.Boolean()) }),
      access: { read: { anyOf: ['owner', { where: { published: true } }] } },
    },
    audits: { schema: title, access: { read: { role: 'auditor' } } },
  }).values(),
];

export const newId = createIdSource(Date.now, () => randomInt(32));

const accounts: ReadonlyMap<string, { tenant?: string; roles?: readonly string[]; admin?: boolean }> =
  new Map([
    ['usr_ada', {}],
    ['usr_bob', {}],
    ['usr_nora', { tenant: 'north' }],
    ['usr_sam', { tenant: 'south' }],
    ['usr_audra', { roles: ['auditor'] }],
    ['usr_root', { admin: true }],
  ]);
export const people = [...accounts.keys()];

/** The credential of one of the people, or undefined for anyone else. */
export function person(id: string | null, scopes: readonly Scope[]): Authenticated | undefined {
  const account = accounts.get(id ?? '');
  if (id === null || account === undefined) return undefined;
  return authenticated({
    id,
    scopes: account.admin ? ['admin', ...scopes] : scopes,
    roles: account.roles ?? [],
    tenant: account.tenant ?? null,
  });
}

export const usualScopes: readonly Scope[] = ['read', 'webhooks'];

let serial = 0;

export function endpointOf(fields: Partial<Endpoint> = {}): Endpoint {
  serial += 1;
  const time = new Date(1_750_000_000_000 + serial).toISOString();
  return {
    id: `ep_${newId()}`,
    url: `https://receiver.example/hooks/${serial}?key=secret`,
    events: ['*'],
    scheme: 'standard',
    status: 'enabled',
    createdAt: time,
    updatedAt: time,
    ...fields,
  };
}

export function knownOf(
  owner: string | null,
  fields: Partial<Endpoint> = {},
  scopes = usualScopes,
): KnownEndpoint {
  const endpoint = endpointOf(fields);
  const principal = person(owner, scopes);
  return { endpoint, rev: 1, owner, principal, url: new URL(endpoint.url), secrets: [] };
}

type EventParts = { readonly owner?: string | null; readonly object?: object; readonly tenant?: string };

/** An event of a resource, or one that was posted, whose type has another first segment than a collection. */
export function eventOf(type: string, parts: EventParts = {}): EventEntry {
  const id = `evt_${newId()}`;
  const [first = ''] = type.split('.');
  const collection = collections.some(({ name }) => name === first) ? first : '';
  const at = Date.now();
  const doc = eventDocument(id, type, at, JSON.stringify(parts.object ?? {}), parts.tenant);
  return { id, type, collection, owner: parts.owner ?? null, doc, createdAt: at };
}

/** What one process has. */
export type Process = {
  /** Without fan-out. */
  readonly plain: Store;
  readonly store: Store;
  readonly directory: EndpointDirectory;
  readonly wakes: Wakes;
  readonly owed: ReturnType<typeof makeOwedDeliveries>;
  readonly events: EventSource;
  readonly clock: () => number;
  /** Endpoints that were named, in order. */
  readonly woken: string[];
  readonly observed: Observation[];
};

export async function startProcess(
  context: TestContext,
  plain: Store,
  given: { readonly principalOf?: PrincipalOf; readonly collections?: Iterable<Collection> } = {},
): Promise<Process> {
  const observed: Observation[] = [];
  const observe = (observation: Observation): void => void observed.push(observation);
  const services = servicesOver(plain, { newId, observe });
  const directory = await createEndpointDirectory(
    services,
    given.collections ?? collections,
    given.principalOf ?? (async (owner, scopes) => person(owner, scopes)),
    ['users'],
  );
  const wakes = await createWakes(services, directory);
  const woken: string[] = [];
  wakes.onWake((id) => woken.push(id));
  context.after(async () => {
    await owed.close();
    await wakes.close();
    await directory.close();
  });
  const owed = makeOwedDeliveries(services, directory, wakes);
  const events = createEventSource(services);
  const parts = { directory, wakes, events, owed, newId, clock: Date.now };
  const store = withStages(plain, deliveriesStage({ ...parts, store: plain }));
  return { plain, store, directory, wakes, events, owed, clock: Date.now, woken, observed };
}

export function putEndpoint(endpoint: Endpoint, owner: string | null, rev?: number): Change {
  const at = Date.parse(endpoint.createdAt);
  return {
    table: endpointsCollection.name,
    id: endpoint.id,
    expect: rev === undefined ? { absent: true } : { rev },
    next: { ...keptRow(JSON.stringify(endpoint), owner, at, at), search: '' },
  };
}

export function putSecrets(id: string, secret: string, scopes = usualScopes, rev?: number): Change {
  const doc = JSON.stringify({ secrets: [{ secret, until: null }], scopes });
  const expect = rev === undefined ? { absent: true as const } : { rev };
  return { table: endpointSecretsTable, id, expect, next: keptRow(doc, null, 1, 1) };
}

/** Commits changes of endpoints as their resource does: with the next generation, again when another was first. */
export async function change(
  store: Store,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  changes: readonly Change[],
  events: readonly EventEntry[] = [],
): Promise<number> {
  for (;;) {
    const commit = await store.commit({
      changes: [...changes, ...directory.generationChanges(changes)],
      events,
    });
    if (commit.outcome === 'committed') return commit.rev;
    assert.ok(commit.outcome === 'superseded' && commit.change >= changes.length, JSON.stringify(commit));
    await directory.refresh();
  }
}

export async function addEndpoint(
  { plain, directory }: Pick<Process, 'plain' | 'directory'>,
  owner: string | null,
  fields: Partial<Endpoint> = {},
  scopes = usualScopes,
): Promise<Endpoint & { readonly rev: number }> {
  const endpoint = endpointOf(fields);
  const changes = [putEndpoint(endpoint, owner), putSecrets(endpoint.id, 'whsec_1', scopes)];
  return { ...endpoint, rev: await change(plain, directory, changes) };
}

const owners = 200;

/** Endpoints of many owners, for `products.*`. @returns their ids */
export async function addMany(process: Process, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const changes: Change[] = [];
    for (let at = 0; at < 500; at += 1) {
      const endpoint = endpointOf({ events: ['products.*'] });
      changes.push(putEndpoint(endpoint, `usr_${at % owners}`), putSecrets(endpoint.id, 'whsec_1'));
      ids.push(endpoint.id);
    }
    await change(process.plain, process.directory, changes);
  }
  await process.directory.refresh();
  return ids;
}

/** Nothing is owed any more. */
export async function settled(store: Store): Promise<void> {
  const plan = store.plan({ table: fanOutTable, filter: always, sort: byId, limit: 1 });
  for (let looks = 0; (await plan.rows({ from: 'start' })).length > 0; looks += 1) {
    assert.ok(looks < 5000, 'deliveries are still owed');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
