/**
 * The health of the endpoints that this process sends for: notes what attempts say, warns an owner once, and disables what has failed for
 * too long. judge.ts has the states and when they change.
 *
 * What is known of an endpoint is kept in memory with the very object that the directory has of it: when the endpoint changes, the object
 * is another, and its health is read from the store anew. So an owner who enables an endpoint, which removes its row, starts it afresh.
 * When this process sends for other endpoints than before, all is read anew. The row is written at the first failure, at
 * most once a minute after it, at the warning, and removed by a success: a healthy endpoint costs no write, a failing one costs few.
 * A crash forgets the count of a minute, never since when it fails. Where the store is away, what was noted is written with the next note.
 *
 * The event `endpoint.failing` is in the unit that notes the warning, so there is one for each. The mail follows it, and a crash
 * in between loses the mail.
 */
import type { DisabledReason } from '../../../model/endpoint.ts';
import type { Observe } from '../../../observe/observation.ts';
import type { Store } from '../../../store/store.ts';
import type { Verdict } from '../claim.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import type { Lanes } from '../lanes.ts';
import { disableEndpoint } from './disable-endpoint.ts';
import type { EndpointNotice, Notify } from './notice.ts';
import { type Acts, Watch, type WatchOptions } from './watch.ts';

export type HealthOfEndpoints = {
  /**
   * What an attempt said. Returns at once; whatever must be written is written beside it.
   * @param endpoint as the attempt was sent to it: where it has changed since, the attempt says nothing of it
   * @param at end of the attempt, in milliseconds since the epoch
   */
  note(endpoint: KnownEndpoint, verdict: Verdict, at: number): void;
  /**
   * Disables the endpoint, unless it has changed, and tells its owner. Resolves when that is durable.
   * @param since of the first failure after the last success, or of the 410
   * @throws StoreUnavailable
   */
  disable(endpoint: KnownEndpoint, reason: DisabledReason, since: number): Promise<void>;
  /** Resolves when nothing is being written or told. */
  settled(): Promise<void>;
  /** Follows nothing any more, and resolves as `settled` does. */
  close(): Promise<void>;
};

export type HealthOptions = {
  /** With fan-out: what is announced is delivered. */
  readonly store: Pick<Store, 'commit' | 'read' | 'lines'>;
  readonly directory: Pick<EndpointDirectory, 'get' | 'generationChanges' | 'refresh'>;
  readonly lanes: Pick<Lanes, 'onChange'>;
  readonly clock: () => number;
  readonly newId: () => string;
  readonly observe: Observe;
  /** Tells the owner; undefined: there is no way to. */
  readonly notify: Notify | undefined;
  readonly settings: { readonly endpointWarnSeconds: number; readonly endpointDisableSeconds: number };
};

export function createHealth(options: HealthOptions): HealthOfEndpoints {
  const health = new Health(options);
  return {
    note: (endpoint, verdict, at) => health.note(endpoint, verdict, at),
    disable: (endpoint, reason, since) => health.disable(endpoint, reason, since),
    settled: () => health.settled(),
    close: () => health.close(),
  };
}

class Health implements HealthOfEndpoints {
  readonly #options: HealthOptions;
  readonly #watchOptions: WatchOptions;
  readonly #acts: Acts = {
    disable: (known, since) => this.disable(known, 'failing', since),
    warned: (known, since) => this.#warned(known, since),
  };
  readonly #disabling = new Map<string, Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  readonly #unfollow: () => void;
  #watches = new WeakMap<KnownEndpoint, Watch>();

  constructor(options: HealthOptions) {
    const { endpointWarnSeconds, endpointDisableSeconds } = options.settings;
    const times = { warnMs: endpointWarnSeconds * 1000, disableMs: endpointDisableSeconds * 1000 };
    this.#options = options;
    this.#watchOptions = { ...options, times };
    this.#unfollow = options.lanes.onChange(() => {
      this.#watches = new WeakMap();
    });
  }

  note(endpoint: KnownEndpoint, { health }: Verdict, at: number): void {
    if (health === 'ignored') return;
    const known = this.#options.directory.get(endpoint.endpoint.id);
    if (known === undefined || known.rev !== endpoint.rev || known.endpoint.status === 'disabled') return;
    let watch = this.#watches.get(known);
    if (watch === undefined) {
      watch = new Watch(this.#watchOptions, known, this.#acts);
      this.#watches.set(known, watch);
    }
    const work = health === 'succeeded' ? watch.succeeded() : watch.failed(at);
    if (work !== undefined) this.#beside('health of an endpoint', work);
  }

  /** Many attempts may find at once that it is gone: one of them disables it, the others wait for that. */
  disable(endpoint: KnownEndpoint, reason: DisabledReason, since: number): Promise<void> {
    const { id } = endpoint.endpoint;
    const earlier = this.#disabling.get(id);
    if (earlier !== undefined) return earlier;
    const work = this.#disableNow(endpoint, reason, since).finally(() => this.#disabling.delete(id));
    this.#disabling.set(id, work);
    return work;
  }

  async #disableNow(known: KnownEndpoint, reason: DisabledReason, since: number): Promise<void> {
    const { directory, observe } = this.#options;
    const { id } = known.endpoint;
    if (directory.get(id)?.endpoint.status === 'disabled') return;
    const disabled = await disableEndpoint(this.#options, known, reason, since);
    if (disabled !== undefined) {
      observe({ kind: 'endpoint-disabled', endpoint: id, reason });
      this.#tell({ kind: 'disabled', ...disabled, since, reason });
    }
    // What this process sends should stop now. That it is durable does not depend on it: the directory follows by itself.
    this.#beside('directory of endpoints', directory.refresh());
  }

  #warned(known: KnownEndpoint, since: number): void {
    const { endpoint, owner } = known;
    this.#options.observe({ kind: 'endpoint-failing', endpoint: endpoint.id });
    this.#tell({ kind: 'failing', endpoint, owner, since, reason: 'failing' });
  }

  #tell(notice: EndpointNotice): void {
    const { notify } = this.#options;
    if (notify !== undefined) this.#beside('notice of an endpoint', notify(notice));
  }

  #beside(what: string, work: Promise<void>): void {
    const done = work
      .catch((error) => this.#options.observe({ kind: 'sending-failed', what, error }))
      .finally(() => this.#running.delete(done));
    this.#running.add(done);
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async close(): Promise<void> {
    this.#unfollow();
    await this.settled();
  }
}
