/**
 * The health of this process's endpoints: notes the verdicts of attempts, warns an owner once, and disables an endpoint
 * that has failed for too long. health-watch.ts has the states and their transitions.
 *
 * Health is kept in memory per endpoint object of the directory. A changed endpoint is a new object, and its health is
 * read again; so an owner who enables an endpoint, which removes the row, starts it afresh. A change of lanes discards
 * all of it. The row is written at the first failure, at most once a minute after that and at the warning; a success
 * removes it. A healthy endpoint thus costs no writes. A crash loses the count of a minute, but never the start of the
 * failures. If the store is unavailable, the next note writes.
 *
 * The unit that notes the warning includes the event `endpoint.failing`, so there is one event per warning. The unit
 * that keeps the mail follows; a crash in between loses it.
 */
import { searchText } from '../../model/collection.ts';
import { type DisabledReason, type Endpoint, readEndpoint } from '../../model/endpoint.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Change, Row } from '../../store/store.ts';
import type { Lanes } from '../../work/lanes.ts';
import type { Verdict } from './conclude-delivery.ts';
import { operationalEvent } from './event-types/event-types.ts';
import { type Acts, type HealthTimes, Watch } from './health-watch.ts';
import type { EndpointDirectory, KnownEndpoint } from './known-endpoint.ts';
import { endpointHealthTable, endpointsCollection } from './sending-tables.ts';

export type HealthOfEndpoints = {
  /**
   * Notes the verdict of an attempt. Returns at once; writes happen in the background.
   * @param endpoint as the attempt was sent to it: if it has changed since, the verdict is ignored
   * @param at end of the attempt, in milliseconds since the epoch
   */
  note(endpoint: KnownEndpoint, verdict: Verdict, at: number): void;
  /**
   * Disables the endpoint, unless it has changed, and notifies its owner. Resolves when that is durable.
   * @param since time of the first failure after the last success, or of the 410
   * @throws StoreUnavailable
   */
  disable(endpoint: KnownEndpoint, reason: DisabledReason, since: number): Promise<void>;
  /** Resolves when all writes and notices have ended. */
  settled(): Promise<void>;
  /** Stops following lanes, and resolves as `settled` does. */
  close(): Promise<void>;
};

/**
 * @param services with the store for all writes: events are delivered, and a disabled endpoint gets nothing more
 * @param notify notifies the owner; undefined: no mail is configured
 */
export function createHealth(
  services: Services,
  directory: Pick<EndpointDirectory, 'get'>,
  lanes: Pick<Lanes, 'onChange'>,
  notify: Notify | undefined,
): HealthOfEndpoints {
  const health = new Health(services, directory, notify);
  const unfollow = lanes.onChange(() => health.forgetWatches());
  return {
    note: (endpoint, verdict, at) => health.note(endpoint, verdict, at),
    disable: (endpoint, reason, since) => health.disable(endpoint, reason, since),
    settled: () => health.settled(),
    async close() {
      unfollow();
      await health.settled();
    },
  };
}

class Health {
  readonly #services: Services;
  readonly #directory: Pick<EndpointDirectory, 'get'>;
  readonly #notify: Notify | undefined;
  readonly #times: HealthTimes;
  readonly #acts: Acts = {
    disable: (known, since) => this.disable(known, 'failing', since),
    warned: (known, since) => this.#warned(known, since),
  };
  readonly #disabling = new Map<string, Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  #watches = new WeakMap<KnownEndpoint, Watch>();

  constructor(services: Services, directory: Pick<EndpointDirectory, 'get'>, notify: Notify | undefined) {
    const { endpointWarnSeconds, endpointDisableSeconds } = services.settings;
    this.#services = services;
    this.#directory = directory;
    this.#notify = notify;
    this.#times = { warnMs: endpointWarnSeconds * 1000, disableMs: endpointDisableSeconds * 1000 };
  }

  /** Called when lanes come or go: another process may have written the health of their endpoints. */
  forgetWatches(): void {
    this.#watches = new WeakMap();
  }

  note(endpoint: KnownEndpoint, { health }: Verdict, at: number): void {
    if (health === 'ignored') return;
    const known = this.#directory.get(endpoint.endpoint.id);
    if (known === undefined || known.rev !== endpoint.rev || known.endpoint.status === 'disabled') return;
    let watch = this.#watches.get(known);
    if (watch === undefined) {
      watch = new Watch(this.#services, this.#times, known, this.#acts);
      this.#watches.set(known, watch);
    }
    const work = health === 'succeeded' ? watch.succeeded() : watch.failed(at);
    if (work !== undefined) this.#inBackground('health of an endpoint', work);
  }

  /** Several attempts may find the endpoint gone at once: one of them disables it, the others wait. */
  disable(endpoint: KnownEndpoint, reason: DisabledReason, since: number): Promise<void> {
    const { id } = endpoint.endpoint;
    const earlier = this.#disabling.get(id);
    if (earlier !== undefined) return earlier;
    const work = this.#disableNow(endpoint, reason, since).finally(() => this.#disabling.delete(id));
    this.#disabling.set(id, work);
    return work;
  }

  async #disableNow(known: KnownEndpoint, reason: DisabledReason, since: number): Promise<void> {
    const { id } = known.endpoint;
    if (this.#directory.get(id)?.endpoint.status === 'disabled') return;
    const disabled = await disableEndpoint(this.#services, known, reason, since);
    if (disabled === undefined) return;
    this.#services.observe({ kind: 'endpoint-disabled', endpoint: id, reason });
    this.#tell({ kind: 'disabled', ...disabled, since, reason });
  }

  #warned(known: KnownEndpoint, since: number): void {
    const { endpoint, owner } = known;
    this.#services.observe({ kind: 'endpoint-failing', endpoint: endpoint.id });
    this.#tell({ kind: 'failing', endpoint, owner, since, reason: 'failing' });
  }

  #tell(notice: EndpointNotice): void {
    const notify = this.#notify;
    if (notify !== undefined) this.#inBackground('notice of an endpoint', notify(notice));
  }

  #inBackground(what: string, work: Promise<void>): void {
    const done = work
      .catch((error) => this.#services.observe({ kind: 'sending-failed', what, error }))
      .finally(() => this.#running.delete(done));
    this.#running.add(done);
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}

/*
 * Disables an endpoint (§6.5, §6.8): because of a 410, or because it accepted nothing for too long. One unit disables
 * the endpoint, advances the generation of the endpoints so that every process notices, removes its health row, and
 * announces `endpoint.disabled`. If the endpoint's row changed meanwhile (another URL, or the owner enabled it again),
 * nothing happens, and the next attempt judges the new state. Its deliveries stay due and wait until it is enabled.
 */

/** The disabled endpoint; undefined: it changed meanwhile. */
export type Disabled = { readonly endpoint: Endpoint; readonly owner: string | null } | undefined;

/**
 * @param since time of the first failure after the last success, or of the 410; milliseconds since the epoch
 * @throws StoreUnavailable
 */
async function disableEndpoint(
  { store, clock, newId }: Services,
  judged: KnownEndpoint,
  reason: DisabledReason,
  since: number,
): Promise<Disabled> {
  const { id } = judged.endpoint;
  for (;;) {
    const row = await store.read(endpointsCollection.name, id);
    if (row === undefined || row.rev !== judged.rev) return undefined;
    const health = await store.read(endpointHealthTable, id);
    const at = Math.max(clock(), row.updatedAt);
    const endpoint = disabledEndpoint(row, reason, at);
    const event = operationalEvent('endpoint.disabled', endpoint, row.owner, at, newId, since);
    const changes = [endpointChange(row, endpoint, at), ...(health === undefined ? [] : [removal(health)])];
    const commit = await store.commit({ changes, events: [event] });
    if (commit.outcome === 'committed') return { endpoint, owner: row.owner };
  }
}

function disabledEndpoint(row: Row, reason: DisabledReason, at: number): Endpoint {
  const { createdAt, updatedAt: _, ...fields } = readEndpoint(row.doc);
  const updatedAt = new Date(at).toISOString();
  return { ...fields, status: 'disabled', disabledReason: reason, createdAt, updatedAt };
}

function endpointChange(row: Row, endpoint: Endpoint, at: number): Change {
  return {
    table: endpointsCollection.name,
    id: row.id,
    expect: { rev: row.rev },
    next: {
      doc: JSON.stringify(endpoint),
      owner: row.owner,
      createdAt: row.createdAt,
      updatedAt: at,
      deletedAt: null,
      search: searchText(endpointsCollection.searchFields, endpoint),
      references: [],
    },
  };
}

function removal(row: Row): Change {
  return { table: endpointHealthTable, id: row.id, expect: { rev: row.rev }, next: null };
}

export type EndpointNotice = {
  readonly kind: 'failing' | 'disabled';
  readonly endpoint: Endpoint;
  readonly owner: string | null;
  /** Time of the first failure after the last success, or of the 410; milliseconds since the epoch. */
  readonly since: number;
  readonly reason: DisabledReason;
};

/** May reject; sending continues. */
export type Notify = (notice: EndpointNotice) => Promise<void>;

/*
 * Notifies the owner of an endpoint by mail. If the owner is not an account, such as the operator, the mail goes to
 * `operatorMail`, if set. The mail contains the origin and the id of the endpoint, not its URL: many machines read
 * mail, and a path may hold a secret.
 */

export type NoticeFacts = Pick<EndpointNotice, 'kind' | 'reason'> & {
  readonly endpointId: string;
  /** `https://shop.example` */
  readonly origin: string;
  /** ISO 8601. */
  readonly since: string;
};

/** @template M a mail that is ready to be kept */
export type OwnerMail<M> = {
  /** Undefined: no mail server is configured. */
  readonly mail: { send(mail: M): Promise<void> } | undefined;
  /** Returns the address of an account; undefined: it has none, or it is disabled. */
  readonly findAddress: (owner: string) => Promise<string | undefined>;
  readonly texts: (to: string, facts: NoticeFacts) => M;
};

/** Returns undefined if no mail server is configured. */
export function createOwnerNotices<M>(
  { mail, findAddress, texts }: OwnerMail<M>,
  operatorMail: string | undefined,
): Notify | undefined {
  if (mail === undefined) return undefined;
  return async ({ kind, reason, endpoint, owner, since }) => {
    const to = (owner === null ? undefined : await findAddress(owner)) ?? operatorMail;
    if (to === undefined) return;
    const { origin } = new URL(endpoint.url);
    await mail.send(
      texts(to, { kind, reason, endpointId: endpoint.id, origin, since: new Date(since).toISOString() }),
    );
  };
}
