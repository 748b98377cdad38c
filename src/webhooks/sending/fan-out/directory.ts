/**
 * The directory of all endpoints in memory, followed from the store. Where it matters, it is never out of date: the
 * unit of an event carries the guard of the generation with which it was matched (generation.ts), and is refused if an
 * endpoint or an owner's rights changed meanwhile; before an attempt is sent, `mayReceive` checks again. Changed
 * secrets end the generation too. Changes that do not end it are read a second after a change of the principals'
 * tables; with more than a thousand owners, after one millisecond per owner.
 *
 * A request during a read waits for the next one, since the current one may have passed what it is about. A failed read
 * changes nothing.
 */
import type { Collection } from '../../../model/collection.ts';
import { eventType, noCollection } from '../../../model/event.ts';
import type { Services } from '../../../store/capabilities.ts';
import { createFollower } from '../../../store/follower.ts';
import { judged, RelatedRows } from '../../../store/related-rows.ts';
import { type Change, type MaybePromise, whenKnown } from '../../../store/store.ts';
import type { DeliveredEvent, EndpointDirectory, Matched } from '../known-endpoint.ts';
import { isTestEvent } from '../new-deliveries.ts';
import { generationRow } from '../sending-tables.ts';
import { EndpointsInMemory, type PrincipalOf } from './endpoints-in-memory.ts';
import { type Generation, guardOf, readGeneration } from './generation.ts';
import { isTold, type MatchedEvent, type Related } from './matcher.ts';

const principalsPauseMs = 1000;

/**
 * Resolves after all endpoints were read.
 * @param principalTables tables that `principalOf` depends on, whose row ids are those of owners: users and keys
 * @throws StoreUnavailable
 */
export async function createEndpointDirectory(
  services: Pick<Services, 'store' | 'clock' | 'observe'>,
  collections: Iterable<Collection>,
  principalOf: PrincipalOf,
  principalTables: readonly string[],
): Promise<EndpointDirectory> {
  const directory = new Directory(services, collections, principalOf, principalTables);
  try {
    await directory.refresh();
  } catch (error) {
    await directory.close();
    throw error;
  }
  return directory;
}

class Directory implements EndpointDirectory {
  readonly #services: Pick<Services, 'store' | 'clock' | 'observe'>;
  readonly #endpoints: EndpointsInMemory;
  readonly #principalTables: readonly string[];
  readonly #collectionOf: (type: string) => string;
  readonly #follower = createFollower(
    () => this.#read(),
    (error) => this.#services.observe({ kind: 'sending-failed', what: 'directory of endpoints', error }),
  );
  readonly #listeners = new Set<() => void>();
  #generation: Generation | undefined;
  /**
   * The generation that was found to be the current one, until a change is reported. Only for a store of this process
   * alone, which reports a change before its commit resolves; a shared store is asked each time.
   */
  #proven: number | undefined;
  /** When principals were read last, by `performance.now()`. */
  #principalsAt = performance.now();
  #arePrincipalsDue = false;

  constructor(
    services: Pick<Services, 'store' | 'clock' | 'observe'>,
    collections: Iterable<Collection>,
    principalOf: PrincipalOf,
    principalTables: readonly string[],
  ) {
    const { store } = services;
    const all = [...collections];
    this.#services = services;
    this.#endpoints = new EndpointsInMemory(store, all, principalOf);
    this.#principalTables = principalTables;
    this.#collectionOf = collectionOfEvents(all);
    this.#follower.follow((listener) =>
      // Every change of an endpoint or its secrets ends the generation, so this table suffices.
      store.onChange(generationRow.table, () => {
        this.#proven = undefined;
        // After the commit resolves: the writer of the change reads at once, and this read is the next one.
        setImmediate(listener);
      }),
    );
    for (const table of principalTables) {
      this.#follower.follow(() => store.onChange(table, () => this.#onPrincipals()));
    }
  }

  readonly get = (id: string) => this.#endpoints.byId.get(id);
  readonly all = () => this.#endpoints.byId.values();
  readonly size = () => this.#endpoints.byId.size;
  readonly countOf = (owner: string | null) => this.#endpoints.counts.get(owner) ?? 0;
  readonly refresh = () => this.#follower.run();
  readonly close = () => this.#follower.close();

  matching(event: MatchedEvent, related?: Related): Matched {
    return {
      ...this.#endpoints.matcher.matching(event, related),
      guard: guardOf(this.#current()),
    };
  }

  generationChanges(unit?: readonly Change[]): readonly Change[] {
    return [this.#current().end(this.#services.clock(), unit)];
  }

  onChange(listener: () => void): () => void {
    const call = (): void => listener();
    this.#listeners.add(call);
    return () => void this.#listeners.delete(call);
  }

  mayReceive(id: string, event: DeliveredEvent): MaybePromise<boolean> {
    const { store } = this.#services;
    const { rev } = this.#current();
    if (this.#proven === rev) return this.#judge(id, event);
    const row = store.read(generationRow.table, generationRow.id);
    if (!store.shared && !(row instanceof Promise) && row?.rev === rev) this.#proven = rev;
    return whenKnown(row, (current) =>
      current?.rev === rev ? this.#judge(id, event) : this.refresh().then(() => this.#judge(id, event)),
    );
  }

  #judge(id: string, event: DeliveredEvent): MaybePromise<boolean> {
    const known = this.get(id);
    if (known === undefined || isTestEvent(event)) return known !== undefined;
    const { rights } = this.#endpoints;
    const { owner, doc } = event;
    const told = { owner, doc, collection: this.#collectionOf(event.type) };
    const allowed = rights.permission(known, told.collection);
    if (allowed !== 'depends') return allowed === 'granted';
    const rows = new RelatedRows(this.#services.store);
    return judged(rows, () => isTold(rights, known, told, rows.find));
  }

  #current(): Generation {
    if (this.#generation === undefined) throw new Error('the directory of endpoints has not been read yet');
    return this.#generation;
  }

  async #read(): Promise<void> {
    const anew = this.#arePrincipalsDue && this.#principalsDueInMs() === 0;
    if (anew) {
      this.#arePrincipalsDue = false;
      this.#principalsAt = performance.now();
    } else if (this.#arePrincipalsDue) this.#follower.later(this.#principalsDueInMs());
    try {
      const { store, clock } = this.#services;
      // Read before the rows: a change in between ends this generation, and units that rely on it are refused.
      const current = await readGeneration(store, clock, this.#principalTables, this.#generation?.rev);
      const ids = await this.#endpoints.read(current.changed, anew);
      // Synchronously, so that the endpoints never meet the guard of another generation.
      this.#generation = current;
      if (this.#endpoints.apply(ids)) for (const listener of this.#listeners) listener();
    } catch (error) {
      this.#arePrincipalsDue ||= anew;
      throw error;
    }
  }

  #onPrincipals(): void {
    this.#arePrincipalsDue = true;
    this.#follower.later(this.#principalsDueInMs());
  }

  /** Whole milliseconds, rounded up: a timer that is early by a fraction would find nothing due. */
  #principalsDueInMs(): number {
    const pauseMs = Math.max(principalsPauseMs, this.#endpoints.owners);
    return Math.ceil(Math.max(0, this.#principalsAt + pauseMs - performance.now()));
  }
}

/** Events of declared collections have the collection's types; all other events have no resource. */
function collectionOfEvents(collections: readonly Collection[]): (type: string) => string {
  const byType = new Map<string, string>();
  for (const { name } of collections) {
    for (const change of ['created', 'updated', 'deleted'] as const)
      byType.set(eventType(name, change), name);
  }
  return (type) => byType.get(type) ?? noCollection;
}
