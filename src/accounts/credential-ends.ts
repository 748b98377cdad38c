/**
 * Notifies long-lived work, such as an event stream, when its credential ends: because it expires, or because one of its rows changed
 * and it would no longer be admitted as the same principal.
 *
 * A credential is *held* from its first listener on, and *ended* when the listeners have been called or removed. One timer serves all
 * expiries. After a change, all held credentials are judged in slices, one for each turn of the event loop; then follows a rest of ten
 * times the time that took, at most `restMsMax`, so that a busy table costs a tenth of the time. Requests do not wait for this; they
 * check their credential themselves. A commit of this process waits until the credentials that rest on its rows have been judged
 * (`settle`), so a logout is answered after its streams were cut.
 */
import type { MaybePromise, Row, Store } from '../store/store.ts';
import type { Basis, Good, Verdict } from './verdict.ts';

export type Held = {
  readonly verdict: Good;
  /** Verifies the credential anew; undefined if it cannot be repeated: then any change ends it. */
  readonly again: (() => MaybePromise<Verdict>) | undefined;
};

type Holding = {
  verdict: Good;
  readonly again: Held['again'];
  readonly listeners: Set<() => void>;
  /** The versions of its tables at which its rows held, in a shared store. */
  heldAt: Versions;
  /** Not judged since a listener was added; a row may have changed after the credential was last used. */
  isNew: boolean;
};

/** Longest rest, and the rest after a failure of the store. */
const restMsMax = 200;
/** Rest after judging, as a multiple of its duration. */
const restFactor = 10;
/** Credentials judged in one turn of the event loop: half a millisecond of reads. */
const looksPerTurn = 64;
/** The longest delay of setTimeout. */
const timerMsMax = 2_147_483_647;

export class CredentialEnds {
  readonly #clock: () => number;
  readonly #holds: (basis: readonly Basis[]) => MaybePromise<boolean>;
  readonly #since: ConstructorParameters<typeof CredentialEnds>[0]['since'];
  readonly #held = new Map<Good, Holding>();
  readonly #byRow = new Map<string, Set<Good>>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #rest: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isChanged = false;
  #hasFailed = false;
  #isClosed = false;

  /** @param options.clock milliseconds since the epoch */
  constructor(options: {
    readonly clock: () => number;
    readonly holds: (basis: readonly Basis[]) => MaybePromise<boolean>;
    /** As `holdsSince`. */
    readonly since: (basis: readonly Basis[], heldAt: Versions) => Promise<Versions | undefined>;
  }) {
    this.#clock = options.clock;
    this.#since = options.since;
    this.#holds = options.holds;
  }

  /** Calls the listener once, when the credential ends. @returns a function that removes the listener */
  add({ verdict, again }: Held, listener: () => void): () => void {
    const holding = this.#held.get(verdict) ?? {
      verdict,
      again,
      listeners: new Set(),
      heldAt: [],
      isNew: true,
    };
    this.#held.set(verdict, holding);
    this.#index(verdict, holding.verdict.basis);
    // Wrapped, so that a listener added twice is called twice and removed separately.
    const call = (): void => listener();
    holding.listeners.add(call);
    holding.isNew = true;
    this.#lookSoon();
    this.#wakeAt(holding.verdict.expiresAt);
    return () => {
      holding.listeners.delete(call);
      if (holding.listeners.size === 0 && this.#held.get(verdict) === holding) this.#forget(verdict, holding);
    };
  }

  /** Judges all held credentials soon; call it after a change. */
  look(): void {
    if (this.#held.size === 0) return;
    this.#isChanged = true;
    this.#lookSoon();
  }

  /**
   * Resolves when the credentials that rest on the rows have been judged and the listeners of ended ones called; undefined if there are
   * none.
   */
  settle(rows: Iterable<{ readonly table: string; readonly id: string }>): Promise<void> | undefined {
    if (this.#held.size === 0 || this.#isClosed) return undefined;
    const due = new Set<Good>();
    for (const { table, id } of rows)
      for (const key of this.#byRow.get(rowName(table, id)) ?? []) due.add(key);
    return due.size === 0 ? undefined : this.#settleThose(due);
  }

  async #settleThose(due: ReadonlySet<Good>): Promise<void> {
    await this.#judgeThose([...due]);
    // Listeners end their streams in this turn of the event loop; the response to the commit follows them.
    if ([...due].some((key) => !this.#held.has(key))) await new Promise((resolve) => setImmediate(resolve));
  }

  /**
   * True if a credential still admits the same principal, whichever process changed its rows; if not, its listeners have been called. Costs one read of the versions of
   * its tables, and reads of its rows if these changed; all that ask in one turn share both.
   */
  async stands({ verdict: key, again }: Held): Promise<boolean> {
    const held = this.#held.get(key);
    const holding = held ?? { verdict: key, again, listeners: new Set(), heldAt: [], isNew: false };
    const heldAt = await this.#since(holding.verdict.basis, holding.heldAt);
    if (heldAt !== undefined) {
      holding.heldAt = heldAt;
      return true;
    }
    if (held === undefined) return this.#isGood(key, holding);
    await this.#judge(key);
    return this.#held.get(key) === held;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#rest);
    this.#held.clear();
    this.#byRow.clear();
  }

  #wakeAt(at: number): void {
    if (this.#isClosed || at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    const waitMs = Math.min(timerMsMax, Math.max(0, at - this.#clock()));
    this.#timer = setTimeout(() => void this.#endOnTime(), waitMs).unref();
  }

  #endOnTime(): Promise<void> {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#clock();
    return this.#judgeAll(({ verdict }) => verdict.expiresAt <= now);
  }

  /** Judges new credentials soon, and after a change all of them. */
  #lookSoon(): void {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    setImmediate(async () => {
      const isAll = this.#isChanged;
      this.#isChanged = false;
      const begun = performance.now();
      await this.#judgeAll(({ isNew }) => isAll || isNew);
      if (this.#isClosed) return;
      const tookMs = performance.now() - begun;
      const restMs = this.#hasFailed ? restMsMax : Math.min(restMsMax, tookMs * restFactor);
      this.#hasFailed = false;
      this.#rest = setTimeout(() => this.#lookAgain(), restMs).unref();
    });
  }

  #lookAgain(): void {
    this.#isLooking = false;
    const isSomeNew = this.#held.values().some(({ isNew }) => isNew);
    if (this.#isChanged || isSomeNew) this.#lookSoon();
  }

  async #judgeAll(isDue: (holding: Holding) => boolean): Promise<void> {
    await this.#judgeThose([...this.#held].filter(([, holding]) => isDue(holding)).map(([key]) => key));
    for (const { verdict } of this.#held.values()) this.#wakeAt(verdict.expiresAt);
  }

  async #judgeThose(keys: readonly Good[]): Promise<void> {
    for (let start = 0; start < keys.length && !this.#isClosed; start += looksPerTurn) {
      if (start > 0) await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(keys.slice(start, start + looksPerTurn).map((key) => this.#judge(key)));
    }
  }

  async #judge(key: Good): Promise<void> {
    const holding = this.#held.get(key);
    if (holding === undefined) return;
    holding.isNew = false;
    if (await this.#isGood(key, holding)) return;
    this.#forget(key, holding);
    // As microtasks, so that a listener that throws does not stop the others.
    for (const listener of holding.listeners) queueMicrotask(listener);
    holding.listeners.clear();
  }

  #index(key: Good, basis: readonly Basis[]): void {
    for (const { table, id } of basis) {
      const name = rowName(table, id);
      const keys = this.#byRow.get(name);
      if (keys === undefined) this.#byRow.set(name, new Set([key]));
      else keys.add(key);
    }
  }

  #unindex(key: Good, basis: readonly Basis[]): void {
    for (const { table, id } of basis) {
      const name = rowName(table, id);
      const keys = this.#byRow.get(name);
      keys?.delete(key);
      if (keys?.size === 0) this.#byRow.delete(name);
    }
  }

  #forget(key: Good, holding: Holding): void {
    if (this.#held.get(key) === holding) this.#held.delete(key);
    this.#unindex(key, holding.verdict.basis);
  }

  async #isGood(key: Good, holding: Holding): Promise<boolean> {
    const { verdict, again } = holding;
    const isOver = this.#clock() >= verdict.expiresAt;
    try {
      if (!isOver && (await this.#holds(verdict.basis))) return true;
      const anew = again === undefined ? undefined : await again();
      if (anew === undefined || 'problem' in anew || !isSame(anew, verdict)) return false;
      this.#unindex(key, holding.verdict.basis);
      holding.verdict = anew;
      if (this.#held.get(key) === holding) this.#index(key, anew.basis);
      return this.#clock() < anew.expiresAt;
    } catch {
      // The store failed, which the next request reports. Until it recovers only expiry ends a credential.
      this.#isChanged = true;
      this.#hasFailed = true;
      return !isOver;
    }
  }
}

function rowName(table: string, id: string): string {
  return `${table}/${id}`;
}

/** True if the credential still means the same principal, session and key. */
function isSame(one: Good, other: Good): boolean {
  return (
    one.principal.id === other.principal.id &&
    one.principal.audience === other.principal.audience &&
    one.session === other.session &&
    one.enrolsOnly === other.enrolsOnly &&
    one.key === other.key
  );
}

export type WatchedTable = {
  readonly name: string;
  changes: number;
  version: string | undefined;
};

export type WatchedTables = {
  /** Returns the watched table; the first call starts watching. */
  of(table: string): WatchedTable;
  close(): void;
};

/** Counts the changes of tables: rows are read again only after a change. @param onChange called after each change */
export function watchTables(store: Pick<Store, 'onChange'>, onChange: () => void): WatchedTables {
  const tables = new Map<string, WatchedTable>();
  const stops: (() => void)[] = [];
  return {
    of(table) {
      const known = tables.get(table);
      if (known !== undefined) return known;
      const watched: WatchedTable = { name: table, changes: 0, version: undefined };
      tables.set(table, watched);
      stops.push(
        store.onChange(table, () => {
          watched.changes += 1;
          onChange();
        }),
      );
      return watched;
    },
    close() {
      for (const stop of stops) stop();
    },
  };
}

export function changesOf(tables: readonly WatchedTable[]): number {
  let sum = 0;
  for (const { changes } of tables) sum += changes;
  return sum;
}

/** Reads the rows in this turn of the event loop and compares revisions. @throws StoreUnavailable */
export function stillHolds(store: Pick<Store, 'read'>, basis: readonly Basis[]): MaybePromise<boolean> {
  const waiting: Promise<boolean>[] = [];
  for (const each of basis) {
    const row = store.read(each.table, each.id);
    if (row instanceof Promise) waiting.push(row.then((found) => isSameBasis(found, each)));
    else if (!isSameBasis(row, each)) return false;
  }
  return waiting.length === 0 ? true : Promise.all(waiting).then((same) => !same.includes(false));
}

function isSameBasis(row: Row | undefined, basis: Basis): boolean {
  return row !== undefined && row.rev === basis.rev;
}

/**
 * True if the rows hold in a shared store: they do at versions read before them, because reads of one turn may see different moments.
 * @param heldAt the versions at which they held last
 * @returns the versions at which they hold; undefined: they do not
 */
export async function holdsSince(
  store: Pick<Store, 'read' | 'version'>,
  tables: readonly WatchedTable[],
  basis: readonly Basis[],
  heldAt: Versions,
): Promise<Versions | undefined> {
  // Another reader may have updated the known versions from an older read, so only this read counts.
  if (areSame(knownVersions(tables), heldAt)) {
    if (areSame(await readVersions(store, tables), heldAt)) return heldAt;
  }
  const before = knownVersions(tables);
  const holding = stillHolds(store, basis);
  const learning = before.includes(undefined) ? readVersions(store, tables) : undefined;
  const [holds] = await Promise.all([holding, learning]);
  return holds ? before : undefined;
}

/** Versions of tables, in order; undefined where unknown. */
export type Versions = readonly (string | undefined)[];

function knownVersions(tables: readonly WatchedTable[]): Versions {
  return tables.map(({ version }) => version);
}

/** Reads the versions in this turn of the event loop. @throws StoreUnavailable */
async function readVersions(
  store: Pick<Store, 'version'>,
  tables: readonly WatchedTable[],
): Promise<Versions> {
  const versions = await Promise.all(tables.map(({ name }) => store.version(name)));
  for (const [index, table] of tables.entries()) table.version = versions[index];
  return versions;
}

function areSame(versions: Versions, heldAt: Versions): boolean {
  return versions.every((version, index) => version !== undefined && version === heldAt[index]);
}
