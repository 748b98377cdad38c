/**
 * The calling thread's side of the writer: sends it batches and other requests, of which one is under way at a time (group-commit.ts). If
 * the writer thread dies, the request under way fails, and the next one joins another thread.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { Observe } from '../../../observe/observation.ts';
import { type Batch, GroupCommit, type Outcome, type Settled, type UnitBounds } from '../../group-commit.ts';
import type { ProvisionalRevisions } from '../../lines.ts';
import { eventsTable, isOnlyExpected, StoreUnavailable, type Unit } from '../../store.ts';
import { type Damage, type HomeState, requestsAt } from '../home-state.ts';
import type { TableNumbers } from '../sqlite-schema.ts';
import { type Piece, type Reply, type Request, UnitEncoder } from './writer-messages.ts';

export type WriterPlace = {
  /** Connects the writer to the other end of a channel (home.ts). */
  readonly join: (port: MessagePort) => void;
  /** Tables in the order of the writer. */
  readonly tables: readonly string[];
  readonly numbers: TableNumbers;
  readonly state: HomeState;
  /** Called with the units of a batch, refused ones too, before its promises settle and before the next one is made. */
  readonly onCommitted: (units: readonly Unit[], firstRev: number, lastRev: number) => void;
  /** Called with the tables that a batch or another store changed. */
  readonly onChanged: (tables: ReadonlySet<string>) => void;
  readonly observe: Observe;
  readonly damage: Damage;
  readonly revisions: ProvisionalRevisions;
};

/** The kind of a reply, by that of its request. */
type ReplyKinds = { readonly commit: 'committed'; readonly purge: 'purged'; readonly probe: 'probed' };

export class WriterClient {
  readonly queue: GroupCommit;
  readonly #place: WriterPlace;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #nameOf: ReadonlyMap<number, string>;
  #port: MessagePort | undefined;
  #asked: PromiseWithResolvers<Reply> | undefined;
  #full: StoreUnavailable | undefined;

  constructor(place: WriterPlace, bounds: Partial<UnitBounds>) {
    const { revisions, observe } = place;
    this.#place = place;
    this.queue = new GroupCommit({ begin: () => this.#begin(), revisions, observe }, bounds);
    this.#indexOf = new Map(place.tables.map((name, index) => [name, index]));
    this.#nameOf = new Map([...place.numbers].map(([name, number]) => [number, name]));
    this.#join();
  }

  get alive(): boolean {
    return this.#port !== undefined && !this.queue.isClosed;
  }

  /** Removes those of the rows that are still last updated before the time. */
  purge(table: string, updatedBefore: number, find: () => Promise<readonly string[]>): Promise<number> {
    return this.queue.purge(find, async (ids) => {
      const { rows } = await this.#ask({ kind: 'purge', table, updatedBefore, ids });
      if (rows > 0) this.#place.onChanged(new Set([table]));
      return rows;
    });
  }

  /** After a write found the disk full: checks for space. @throws StoreUnavailable */
  async probe(): Promise<void> {
    if (this.#full !== undefined) await this.queue.alone(() => this.#ask({ kind: 'probe' }));
  }

  async close(): Promise<void> {
    await this.queue.close();
    const port = this.#port;
    this.#port = undefined;
    port?.close();
  }

  #begin(): Batch {
    const { damage, revisions } = this.#place;
    const encoder = new UnitEncoder({ indexOf: this.#indexOf, revisions });
    const units: Unit[] = [];
    return {
      add: (unit) => {
        damage.refuse();
        encoder.append(unit);
        units.push(unit);
      },
      commit: () => this.#commit(units, encoder),
    };
  }

  /** The length of a batch is bounded, but its memory may be used up: that fails its units, and not the process. */
  async #commit(units: readonly Unit[], encoder: UnitEncoder): Promise<Settled> {
    for (let text = encoder.takePiece(); text !== undefined; text = encoder.takePiece()) {
      await this.#sendPiece(text);
    }
    const reply = await this.#ask({ kind: 'commit', batch: encoder.finish() });
    const { firstRev, refusals } = reply;
    this.#place.onCommitted(units, firstRev, firstRev + units.length - refusals.length - 1);
    const { outcomes, changed } = outcomesOf(units, reply);
    return {
      outcomes,
      announce: () => {
        if (changed.size > 0) this.#place.onChanged(changed);
      },
    };
  }

  /** In a turn of the event loop of its own. @throws StoreUnavailable if the writer ends meanwhile */
  async #sendPiece(text: string): Promise<void> {
    const port = this.#port ?? this.#join();
    port.postMessage({ kind: 'piece', text } satisfies Piece);
    await nextTurn();
    if (this.#port !== port) throw writerEnded();
  }

  /** Keeps the process running until the reply; an idle writer does not. @throws StoreUnavailable */
  async #ask<K extends keyof ReplyKinds>(
    request: Request & { kind: K },
  ): Promise<Reply & { kind: ReplyKinds[K] }> {
    const port = this.#port ?? this.#join();
    port.ref();
    this.#asked = Promise.withResolvers();
    try {
      // Throws for a value that cannot be cloned: the writer then never received the request.
      port.postMessage(request);
      Atomics.add(this.#place.state, requestsAt, 1);
      Atomics.notify(this.#place.state, requestsAt);
      return (await this.#asked.promise) as Reply & { kind: ReplyKinds[K] };
    } finally {
      this.#asked = undefined;
      this.#port?.unref();
    }
  }

  #join(): MessagePort {
    const { port1: port, port2: joined } = new MessageChannel();
    this.#place.join(joined);
    port.on('message', (reply: Reply) => this.#answer(reply));
    port.on('close', () => {
      if (this.#port !== port) return;
      this.#port = undefined;
      this.#asked?.reject(writerEnded());
    });
    port.unref();
    this.#port = port;
    return port;
  }

  #answer(reply: Reply): void {
    if (reply.kind === 'changed') {
      const names = reply.tables.map((number) => this.#nameOf.get(number));
      this.#place.onChanged(new Set(names.filter((name) => name !== undefined)));
      return;
    }
    if (reply.kind !== 'failed') {
      this.#full = undefined;
      this.#asked?.resolve(reply);
      return;
    }
    this.#place.damage.note(reply.fault, reply.message);
    const error = new StoreUnavailable(`storage failed: ${reply.message}`, { fault: reply.fault });
    if (reply.fault === 'storage_full') this.#full = error;
    this.#asked?.reject(error);
  }
}

function writerEnded(): StoreUnavailable {
  return new StoreUnavailable('the writer thread ended');
}

type Committed = { readonly outcomes: readonly Outcome[]; readonly changed: ReadonlySet<string> };

function outcomesOf(
  units: readonly Unit[],
  { firstRev, refusals }: Reply & { kind: 'committed' },
): Committed {
  const changed = new Set<string>();
  let refused = 0;
  const outcomes = units.map((unit, index): Outcome => {
    const refusal = refusals[refused];
    if (refusal?.unit === index) {
      refused += 1;
      return refusal;
    }
    for (const change of unit.changes) if (!isOnlyExpected(change)) changed.add(change.table);
    if (unit.events.length > 0) changed.add(eventsTable);
    return { commit: { outcome: 'committed', rev: firstRev + index - refused } };
  });
  return { outcomes, changed };
}
