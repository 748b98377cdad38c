/**
 * How this process learns which tables changed, whoever changed them. Three feeds raise the last revision known of a table:
 * its own commits, NOTIFY from the committers of other processes, and a look at the counters every `pollMs`, at once when
 * the listening connection was made anew, and whenever asked. So a lost notification costs time, never a change.
 */
import type { Observation } from '../../../observe/observation.ts';
import type { Address } from '../connection/address.ts';
import type { Rows } from '../connection/call.ts';
import { channelOf } from '../schema/channel.ts';
import { KnownRevisions } from './known-revisions.ts';
import type { Listener } from './listener.ts';
import { createListener } from './listener.ts';
import { parseTouched } from './payload.ts';

export type ChangesOptions = {
  readonly address: Address;
  readonly schema: string;
  readonly pollMs: number;
  readonly connectTimeoutMs: number;
  /** Of the tables in comity_counters, by name. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Tables that were changed since the last call; also every table, after a time in which changes may have gone unseen. */
  readonly onChanged: (tables: ReadonlySet<string>) => void;
  /** Every row `[n, rev]` of comity_counters, that of the store included: it tells a database that has lost commits. */
  readonly readCounters: () => Promise<Rows>;
  readonly observe: (observation: Following) => void;
};

/** How changes by other processes arrive from here on. */
export type Following = Extract<Observation, { readonly kind: 'store-following' }>;

export type Changes = {
  /** A commit of this process touched the table up to this revision. */
  note(tableNumber: number, rev: number): void;
  /** Looks at the counters; resolves when a look that began after the call has ended, well or not. */
  poll(): Promise<void>;
  /** The counters were read for the first time. */
  readonly ready: Promise<void>;
  /** Whether notifications are known to arrive. */
  readonly listening: boolean;
  close(): Promise<void>;
};

export function createChanges(options: ChangesOptions): Changes {
  return new FollowedChanges(options);
}

class FollowedChanges implements Changes {
  readonly ready: Promise<void>;
  readonly #options: ChangesOptions;
  readonly #known: KnownRevisions;
  readonly #listener: Listener;
  readonly #becomeReady: () => void;
  #listening = false;
  #listenedBefore = false;
  /** Changes may have gone unseen: the next look reports every table. */
  #inDoubt = false;
  #look: Promise<void> | undefined;
  #nextLook: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ChangesOptions) {
    this.#options = options;
    this.#known = new KnownRevisions(options.numbers);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ready = promise;
    this.#becomeReady = resolve;
    this.#listener = createListener({
      address: options.address,
      channel: channelOf(options.schema),
      connectTimeoutMs: options.connectTimeoutMs,
      onListening: () => this.#listens(),
      onPayload: (payload) => this.#notified(payload),
      onHearing: (hears) => {
        this.#listening = hears;
        options.observe({ kind: 'store-following', how: hears ? 'notify' : 'poll' });
      },
    });
    void this.poll();
  }

  get listening(): boolean {
    return this.#listening;
  }

  note(tableNumber: number, rev: number): void {
    const name = this.#known.raise(tableNumber, rev);
    if (name !== undefined) this.#changed(new Set([name]));
  }

  poll(): Promise<void> {
    if (this.#look === undefined) return this.#lookNow();
    // The look under way may have read the counters before whatever made the caller ask.
    this.#nextLook ??= this.#look.then(() => {
      this.#nextLook = undefined;
      return this.#lookNow();
    });
    return this.#nextLook;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#becomeReady();
    await this.#listener.close();
  }

  #listens(): void {
    this.#inDoubt = this.#listenedBefore;
    this.#listenedBefore = true;
    void this.poll();
  }

  #notified(payload: string): void {
    const touched = parseTouched(payload);
    if (touched === undefined) return;
    const changed = new Set<string>();
    for (const table of touched.tables) {
      const name = this.#known.raise(table, touched.rev);
      if (name !== undefined) changed.add(name);
    }
    this.#changed(changed);
  }

  #changed(tables: ReadonlySet<string>): void {
    if (tables.size > 0 && !this.#closed) this.#options.onChanged(tables);
  }

  #lookNow(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    clearTimeout(this.#timer);
    const look = this.#readAndCompare().finally(() => {
      this.#look = undefined;
      if (!this.#closed) this.#timer = setTimeout(() => void this.poll(), this.#options.pollMs);
    });
    this.#look = look;
    return look;
  }

  async #readAndCompare(): Promise<void> {
    const newestBefore = this.#known.newest;
    const inDoubt = this.#inDoubt;
    let counters: Rows;
    try {
      counters = await this.#options.readCounters();
    } catch {
      // Whoever reads hears of storage that fails; what was missed meanwhile the next look tells.
      return;
    }
    if (inDoubt) this.#inDoubt = false;
    this.#changed(inDoubt ? this.#known.replace(counters) : this.#known.compare(counters, newestBefore));
    this.#becomeReady();
  }
}
