/**
 * Notices which tables any process changed. Three sources raise the last known revision of a table: the process's own commits, NOTIFY from
 * other processes, and a poll of the counters every `pollMs`, immediately after the listening connection is made again, and on request. So
 * a lost notification costs time, never a change.
 */
import { randomBytes } from 'node:crypto';
import type { Observation } from '../../observe/observation.ts';
import { quoteName } from '../sql-text.ts';
import type { Address } from './connection/address.ts';
import { type Connection, createConnection } from './connection/connection.ts';
import type { Rows } from './connection/session.ts';
import { channelOf } from './schema/schema-layout.ts';
import { openSession } from './schema/session.ts';

type Place = { readonly address: Address; readonly schema: string; readonly connectTimeoutMs: number };

type ChangesOptions = Place & {
  readonly pollMs: number;
  /** Numbers of the tables in comity_counters, by name. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Receives the tables changed since the last call, or all tables after a time in which changes may have been missed. */
  readonly onChanged: (tables: ReadonlySet<string>) => void;
  /** Called when units that this process knew of are lost. */
  readonly onLost: () => void;
  /** Reads every row `[n, rev]` of comity_counters, and one of `lostNumber` if the unit of one of the revisions is lost. */
  readonly readCounters: (known: readonly number[]) => Promise<Rows>;
  readonly observe: (observation: Following) => void;
};

export type Following = Extract<Observation, { readonly kind: 'store-following' }>;

export class Changes {
  readonly ready: Promise<void>;
  readonly #options: ChangesOptions;
  readonly #known: KnownRevisions;
  readonly #listener: Listener;
  readonly #becomeReady: () => void;
  #listening = false;
  #listenedBefore = false;
  /** Changes may have been missed: the next poll reports every table. */
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
    this.#listener = new Listener(options, {
      onListening: () => this.#listens(),
      onPayload: (payload) => this.#notified(payload),
      onHearing: (hears) => {
        this.#listening = hears;
        options.observe({ kind: 'store-following', how: hears ? 'notify' : 'poll' });
      },
    });
    void this.poll();
  }

  /** True if notifications are known to arrive. */
  get listening(): boolean {
    return this.#listening;
  }

  /** The newest revision that this process committed or read from the counters: a notification may be anyone's. */
  get newestRev(): number {
    return this.#known.confirmed;
  }

  /** Records that a commit of this process touched the table up to this revision. */
  note(tableNumber: number, rev: number): void {
    const name = this.#known.confirm(tableNumber, rev);
    if (name !== undefined) this.#changed(new Set([name]));
  }

  /** The greatest revision of the table that this process is certain of: every later read sees its unit. */
  known(table: string): number {
    return this.#known.confirmedOf(table);
  }

  /** Reads the counters; resolves when a read that began after the call has ended, successful or not. */
  poll(): Promise<void> {
    if (this.#look === undefined) return this.#lookNow();
    // The poll under way may have read the counters before the event that the caller asks about.
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
    const asked = this.#known.beginLook();
    const inDoubt = this.#inDoubt;
    let counters: Rows;
    try {
      counters = await this.#options.readCounters(asked);
    } catch {
      // Readers report failing storage; the next poll finds what was missed meanwhile.
      return;
    }
    if (inDoubt) this.#inDoubt = false;
    const newestAsked = asked.at(-1) ?? 0;
    const isLost = counters.some(
      ([number, rev]) => number === lostNumber || (number === storeNumber && Number(rev) < newestAsked),
    );
    const changed = isLost ? undefined : this.#known.compare(counters, newestAsked);
    if (isLost) this.#known.replace(counters);
    this.#changed(changed === undefined || inDoubt ? new Set(this.#options.numbers.keys()) : changed);
    this.#becomeReady();
    if (isLost && !this.#closed) this.#options.onLost();
  }
}

/** The row of comity_counters for the whole store. */
const storeNumber = 0;
/** Stands for no table. */
export const lostNumber = -1;

/** Revisions from one that was heard of to the next by which another reign has begun: a raise within a millisecond of the last one skips fewer. */
const reignGapMin = 1000;
/** Reigns whose newest revision is kept until a look has asked about it; the oldest goes. */
const reignsKeptMax = 100;

/** Revisions that were heard of, from any source. */
class HeardRevisions {
  readonly #names: ReadonlyMap<number, string>;
  readonly #revs = new Map<number, number>();
  /** Those that are certain. */
  readonly #confirmedRevs = new Map<number, number>();
  /**
   * The newest of each reign, ascending. A reign is what is committed between two raises of the counter, which skip 2^20 revisions for each
   * second: what a later reign commits says nothing about an earlier one, whose last units may be lost. A gap that is none asks once more.
   */
  #newest: readonly number[] = [];
  #confirmed = 0;

  constructor(names: ReadonlyMap<number, string>) {
    this.#names = names;
  }

  get newest(): readonly number[] {
    return this.#newest;
  }

  get confirmed(): number {
    return this.#confirmed;
  }

  confirmedOf(number: number): number {
    return this.#confirmedRevs.get(number) ?? 0;
  }

  /** @returns the table, if the revision is new and the process has the table */
  raise(number: number, rev: number): string | undefined {
    // The store's counter may be raised without a unit, and so be at a revision that no unit has.
    if (number !== storeNumber) this.#hear(rev);
    const name = this.#names.get(number);
    if (name === undefined || rev <= (this.#revs.get(number) ?? 0)) return undefined;
    this.#revs.set(number, rev);
    return name;
  }

  /** As `raise`, for a revision that is certain. */
  confirm(number: number, rev: number): string | undefined {
    if (rev > this.#confirmed && number !== storeNumber) this.#confirmed = rev;
    if (rev > this.confirmedOf(number)) this.#confirmedRevs.set(number, rev);
    return this.raise(number, rev);
  }

  /** Takes the rows of comity_counters. @returns the changed tables */
  confirmAll(counters: Rows): ReadonlySet<string> {
    const changed = new Set<string>();
    // The newest first, which alone says how far the log was seen.
    for (const [number, rev] of counters.toSorted((one, other) => Number(other[1]) - Number(one[1]))) {
      const name = this.confirm(Number(number), Number(rev));
      if (name !== undefined) changed.add(name);
    }
    return changed;
  }

  /** Forgets the reigns that ended before the revision. */
  prove(rev: number): void {
    this.#newest = this.#newest.filter((newest) => newest >= rev);
  }

  #hear(rev: number): void {
    const last = this.#newest.at(-1) ?? 0;
    if (rev <= last) return;
    const earlier = rev - last < reignGapMin ? this.#newest.slice(0, -1) : this.#newest;
    this.#newest = [...earlier, rev].slice(-reignsKeptMax);
  }
}

/**
 * The revisions that this process knows. They only rise, unless a database lost commits (a restored copy, a standby that lagged and took over);
 * then everything derived from newer revisions must go, except what was heard since the look that found out began.
 */
class KnownRevisions {
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #names: ReadonlyMap<number, string>;
  #heard: HeardRevisions;
  #heardSinceLook: HeardRevisions;

  /** @param numbers of the tables in comity_counters, by name */
  constructor(numbers: ReadonlyMap<string, number>) {
    this.#numbers = numbers;
    this.#names = new Map(numbers.entries().map(([name, number]) => [number, name]));
    this.#heard = new HeardRevisions(this.#names);
    this.#heardSinceLook = new HeardRevisions(this.#names);
  }

  get confirmed(): number {
    return this.#heard.confirmed;
  }

  confirmedOf(table: string): number {
    return this.#heard.confirmedOf(this.#numbers.get(table) ?? storeNumber);
  }

  /** @returns the table, if the revision is new and the process has the table */
  raise(number: number, rev: number): string | undefined {
    this.#heardSinceLook.raise(number, rev);
    return this.#heard.raise(number, rev);
  }

  /** As `raise`, for a revision that is certain. */
  confirm(number: number, rev: number): string | undefined {
    this.#heardSinceLook.confirm(number, rev);
    return this.#heard.confirm(number, rev);
  }

  /** @returns revisions, ascending, of which one is lost if any that was heard of is */
  beginLook(): readonly number[] {
    this.#heardSinceLook = new HeardRevisions(this.#names);
    return this.#heard.newest;
  }

  /** Takes the rows of a look that found nothing lost. @returns the changed tables */
  compare(counters: Rows, newestAsked: number): ReadonlySet<string> {
    this.#heard.prove(newestAsked);
    return this.#heard.confirmAll(counters);
  }

  /** Replaces the revisions that were heard before a look began by its rows, because it found that units are lost. */
  replace(counters: Rows): void {
    this.#heard = this.#heardSinceLook;
    this.#heard.confirmAll(counters);
    this.#heardSinceLook = new HeardRevisions(this.#names);
  }
}

type Touched = { readonly rev: number; readonly tables: readonly number[] };

/** Parses a committer's NOTIFY payload, `<rev>:<n>,<n>,...`. Any role may send on the channel, so other texts are ignored. */
function parseTouched(payload: string): Touched | undefined {
  const colon = payload.indexOf(':');
  if (colon < 0) return undefined;
  const rev = wholeNumber(payload.slice(0, colon));
  if (rev === undefined) return undefined;
  const tables: number[] = [];
  for (const part of payload.slice(colon + 1).split(',')) {
    const table = wholeNumber(part);
    if (table === undefined) return undefined;
    tables.push(table);
  }
  return { rev, tables };
}

/** A positive integer in decimal digits as JavaScript writes it, exact as a double. */
function wholeNumber(text: string): number | undefined {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 && String(value) === text ? value : undefined;
}

/*
 * A connection that LISTENs, with a proof that notifications arrive. Behind a pooler in transaction mode LISTEN succeeds, but nothing ever
 * arrives. So once it listens, a different session sends a word that must arrive; the listening session would receive its own word even
 * there, with the reply to its statement. The proof holds from the word's arrival, however late, until the connection is lost.
 */

type Hearing = {
  /** Called when LISTEN is in effect: at first, and whenever the connection is made again. */
  readonly onListening: () => void;
  readonly onPayload: (payload: string) => void;
  /** Called when it is first known whether notifications arrive, and when that changes. */
  readonly onHearing: (hears: boolean) => void;
};

/** Time for the word to arrive before the listener assumes that none does. */
const proofMs = 1_000;
/** Without statements a connection would not notice a lost network. */
const heartbeatMs = 5_000;

class Listener {
  readonly #place: Place;
  readonly #channel: string;
  readonly #hearing: Hearing;
  readonly #connection: Connection;
  readonly #heartbeat: NodeJS.Timeout;
  #word = '';
  #isSaid = false;
  #hears: boolean | undefined;
  #doubt: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(place: Place, hearing: Hearing) {
    this.#place = place;
    this.#hearing = hearing;
    const { address, schema, connectTimeoutMs } = place;
    const channel = channelOf(schema);
    this.#channel = channel;
    this.#connection = createConnection({
      address,
      name: 'comity listen',
      connectTimeoutMs,
      timeoutMs: connectTimeoutMs,
      onConnected: () => this.#listen(),
      onLost: () => this.#hear(false),
      onNotification: (from, payload) => {
        if (from === channel) this.#notified(payload);
      },
    });
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    clearTimeout(this.#doubt);
    await this.#connection.close();
  }

  #listen(): void {
    this.#word = `hello ${randomBytes(8).toString('hex')}`;
    this.#isSaid = false;
    clearTimeout(this.#doubt);
    const sql = `LISTEN ${quoteName(this.#channel)}`;
    this.#connection.send([{ sql, values: [], prepared: false }]).then(
      () => {
        if (this.#closed) return;
        this.#hearing.onListening();
        this.#prove();
      },
      // The connection was lost and will listen again, or the role may not LISTEN.
      () => this.#hear(false),
    );
  }

  #prove(): void {
    const word = this.#word;
    this.#sayFromElsewhere(word).then(
      () => {
        if (this.#closed || word !== this.#word) return;
        this.#isSaid = true;
        this.#doubt = setTimeout(() => {
          if (this.#hears !== true) this.#hear(false);
        }, proofMs);
      },
      // Without the word there is no proof: the next heartbeat tries again.
      () => this.#hear(false),
    );
  }

  async #sayFromElsewhere(word: string): Promise<void> {
    const { address, connectTimeoutMs } = this.#place;
    const elsewhere = await openSession(address, 'comity prove', connectTimeoutMs, {
      answerTimeoutMs: connectTimeoutMs,
    });
    try {
      await elsewhere.rows('SELECT pg_notify($1, $2)', [this.#channel, word]);
    } finally {
      await elsewhere.end();
    }
  }

  #notified(payload: string): void {
    if (payload === this.#word) this.#hear(true);
    else this.#hearing.onPayload(payload);
  }

  #hear(hears: boolean): void {
    if (this.#hears === hears || this.#closed) return;
    this.#hears = hears;
    this.#hearing.onHearing(hears);
  }

  #beat(): void {
    if (!this.#connection.connected) return;
    if (!this.#isSaid) this.#prove();
    this.#connection.send([{ sql: 'SELECT 1', values: [], prepared: false }]).catch(() => {
      // `onLost` reports it.
    });
  }
}
