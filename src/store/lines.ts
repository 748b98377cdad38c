/**
 * Queues (lines) of changes that wait for the same row. A change names the revision that it was computed from, so of many concurrent
 * changes of one row the store commits one and supersedes the others. Instead of racing again, each of those enters the row's line, first
 * in, first out, and only its head reads, computes and commits. Shared places next to each other are held together. Lines live in the
 * memory of one process and guarantee nothing; the expectation that the store checks does. If another process overtakes the head, it
 * retries at once.
 */
import { setImmediate } from 'node:timers/promises';
import { defaultSettings, type Settings } from '../config/settings.ts';
import { memoryBounds } from '../memory/bounds.ts';
import { unitCharacters } from './group-commit.ts';
import {
  type Change,
  type ChangeLines,
  type Commit,
  eventsTable,
  isOnlyExpected,
  type Newest,
  type OnGone,
  Overtaken,
  type Row,
  type RowName,
  type Store,
  StoreUnavailable,
  type Turn,
  type Unit,
} from './store.ts';

/** Thrown when a change gets no turn: the queue is full, the deadline passed, or the client disconnected. */
export class LineUnavailable extends StoreUnavailable {}

/** Changes of chains between two turns of the event loop, which nothing else may wait for longer: each takes 50 to 300 µs. */
const chainedPerTurnMax = 32;

export class Lines implements ChangeLines {
  readonly #waitMs: number;
  readonly #waitingMax: number;
  readonly #lines = new Map<string, Line>();
  readonly revisions = new ProvisionalRevisions();
  #waiting = 0;
  /** Turns of chains so far that followed each other within the process. */
  #chained = 0;

  constructor(bounds: Partial<Pick<Settings, 'changesWaitingMax' | 'changeWaitMs'>>) {
    const { changeWaitMs, changesWaitingMax } = { ...defaultSettings, ...bounds };
    this.#waitMs = changeWaitMs;
    this.#waitingMax = changesWaitingMax;
  }

  get waiting(): number {
    return this.#waiting;
  }

  isBusy({ table, id }: RowName): boolean {
    return this.#lines.size > 0 && this.#lines.has(nameOf(table, id));
  }

  turn(onGone?: OnGone, chains = false): Turn {
    const wish = { shared: false, chains, deadline: performance.now() + this.#waitMs, onGone };
    const takeFree = (name: string) => this.#enter(name, wish).held;
    return new HeldTurn(wish, takeFree, (name, inChain) => this.#take(name, { ...wish, chains: inChain }));
  }

  /** The row as a unit under way leaves it; undefined if no chain has one. */
  newest(table: string, id: string): Newest | undefined {
    if (this.#lines.size === 0) return undefined;
    const found = this.#lines.get(nameOf(table, id))?.newest;
    if (found === undefined || !this.revisions.isUnderWay(found.provisional)) return undefined;
    return { row: found.row, isProvisional: true };
  }

  /** Hands a unit to the engine; the chains of its rows go on. A unit that joins no chain costs one comparison. */
  commit(unit: Unit, commit: (unit: Unit) => Promise<Commit>): Promise<Commit> {
    const handed = this.#lines.size === 0 ? unit : this.#handOver(unit);
    return handed.provisional === undefined
      ? commit(handed)
      : this.#settle(handed.provisional, commit(handed));
  }

  #handOver(unit: Unit): Unit {
    const failures: (() => void)[] = [];
    let provisional: number | undefined;
    for (const change of unit.changes) {
      const line = this.#lines.get(nameOf(change.table, change.id));
      if (line === undefined || !line.isChaining || isOnlyExpected(change)) continue;
      provisional ??= this.revisions.begin(() => {
        for (const fail of failures) fail();
      });
      failures.push(line.handOver({ provisional, row: rowAfter(change, provisional) }, unitCharacters(unit)));
    }
    return provisional === undefined ? unit : { ...unit, provisional };
  }

  /** The engine settles the units of a batch before it makes the next one; this settles those that it rejected. */
  async #settle(provisional: number, commit: Promise<Commit>): Promise<Commit> {
    let rev: number | undefined;
    try {
      const result = await commit;
      if (result.outcome === 'committed') rev = result.rev;
      return result;
    } finally {
      this.revisions.settle(provisional, rev);
    }
  }

  async change<T>(row: RowName | undefined, attempt: () => Promise<T | Overtaken>): Promise<T> {
    if (row === undefined || !this.isBusy(row)) {
      const result = await attempt();
      if (!(result instanceof Overtaken)) return result;
      return this.#inTurn(result.row, attempt);
    }
    return this.#inTurn(row, attempt);
  }

  async hold<T>(
    { table, id }: RowName,
    shared: boolean,
    work: (checkTime: () => void) => Promise<T>,
  ): Promise<T> {
    const deadline = performance.now() + this.#waitMs;
    const held = await this.#take(nameOf(table, id), { shared, chains: false, deadline, onGone: undefined });
    try {
      return await work(() => checkTime(deadline));
    } finally {
      held.leave();
    }
  }

  async #inTurn<T>(first: RowName, attempt: () => Promise<T | Overtaken>): Promise<T> {
    const turn = this.turn();
    try {
      for (let row = first; ; ) {
        await turn.take(row);
        const result = await attempt();
        if (!(result instanceof Overtaken)) return result;
        row = result.row;
      }
    } finally {
      turn.release();
    }
  }

  async #take(name: string, wish: Wish): Promise<Held> {
    const { entered, held } = this.#enter(name, wish);
    if (!entered.holds(held.place)) await this.#wait(entered, held.place, wish, held.leave);
    return held;
  }

  #enter(name: string, wish: Wish): { readonly entered: Line; readonly held: Held } {
    let line = this.#lines.get(name);
    if (line === undefined) {
      line = new Line();
      this.#lines.set(name, line);
    }
    const entered = line;
    const { shared, chains } = wish;
    const place: Place = { shared, chains, hasYielded: false, characters: 0, admit: undefined };
    const leave = (): void => {
      entered.leave(place);
      if (entered.isEmpty) this.#lines.delete(name);
    };
    const rejoin = async (inChain: boolean): Promise<void> => {
      place.chains = inChain;
      entered.rejoin(place);
      if (!entered.holds(place)) await this.#wait(entered, place, wish, leave);
    };
    entered.enter(place);
    return { entered, held: { place, leave, rejoin } };
  }

  async #wait(line: Line, place: Place, { deadline, onGone }: Wish, leave: () => void): Promise<void> {
    if (this.#waiting >= this.#waitingMax) {
      leave();
      throw new LineUnavailable(`${this.#waiting} changes wait for their turn: the queue is full`);
    }
    this.#waiting += 1;
    let timer: NodeJS.Timeout | undefined;
    let stop: (() => void) | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const giveUp = (why: string): void => {
          if (line.holds(place)) return;
          leave();
          reject(new LineUnavailable(why));
        };
        place.admit = resolve;
        const leftMs = Math.max(0, deadline - performance.now());
        timer = setTimeout(giveUp, leftMs, 'a change waited too long for its turn (COMITY_CHANGE_WAIT_MS)');
        stop = onGone?.(() => giveUp('the client disconnected before the turn of its change'));
      });
    } finally {
      this.#waiting -= 1;
      clearTimeout(timer);
      stop?.();
    }
    if (!place.chains) return;
    this.#chained += 1;
    if (this.#chained % chainedPerTurnMax === 0) await setImmediate();
  }
}

type Wish = {
  readonly shared: boolean;
  readonly chains: boolean;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  readonly onGone: OnGone | undefined;
};

type Held = {
  readonly place: Place;
  readonly leave: () => void;
  /** Gives the place up and waits for it again, before all that never had one. */
  readonly rejoin: (chains: boolean) => Promise<void>;
};

/**
 * No deadlock: a turn that needs another row releases its places and takes all of its rows in one order. Code that holds a place within a
 * turn (only for the generation of endpoints) holds it for one commit and takes no other. No endless wait: a turn ends at its deadline or
 * when its client disconnects, and the number of places is bounded.
 */
class HeldTurn implements Turn {
  readonly #wish: Wish;
  readonly #takeFree: (name: string) => Held;
  readonly #take: (name: string, chains: boolean) => Promise<Held>;
  readonly #rows = new Set<string>();
  readonly #held: Held[] = [];

  constructor(
    wish: Wish,
    takeFree: (name: string) => Held,
    take: (name: string, chains: boolean) => Promise<Held>,
  ) {
    this.#wish = wish;
    this.#takeFree = takeFree;
    this.#take = take;
  }

  takeFree({ table, id }: RowName): void {
    const name = nameOf(table, id);
    this.#rows.add(name);
    this.#held.push(this.#takeFree(name));
  }

  get isChained(): boolean {
    const [held] = this.#held;
    return this.#held.length === 1 && held?.place.chains === true;
  }

  async take({ table, id }: RowName, isAlone = false): Promise<void> {
    const { deadline } = this.#wish;
    const name = nameOf(table, id);
    if (this.#rows.has(name)) {
      checkTime(deadline);
      const [held] = this.#held;
      if (this.isChained && (isAlone || held?.place.hasYielded)) await held?.rejoin(!isAlone);
      return;
    }
    this.release();
    this.#rows.add(name);
    // A chain orders the changes of one row only.
    const chains = this.#wish.chains && !isAlone && this.#rows.size === 1;
    for (const each of [...this.#rows].sort()) this.#held.push(await this.#take(each, chains));
  }

  release(): void {
    for (const { leave } of this.#held.splice(0)) leave();
  }
}

function rowAfter({ id, next }: Change, provisional: number): Row | undefined {
  if (next === null) return undefined;
  const { doc, owner, createdAt, updatedAt, deletedAt } = next;
  return { id, rev: provisional, doc, owner, createdAt, updatedAt, deletedAt };
}

/** Names of tables contain no line feed. */
function nameOf(table: string, id: string): string {
  return `${table}\n${id}`;
}

function checkTime(deadline: number): void {
  if (performance.now() > deadline) throw new LineUnavailable('other processes kept changing a row');
}

/** The row at which the commit superseded the unit. */
export function overtaken(
  unit: Unit,
  commit: Pick<Exclude<Commit, { outcome: 'committed' }>, 'change'>,
): Overtaken {
  const change = unit.changes[commit.change];
  if (change !== undefined) return new Overtaken({ table: change.table, id: change.id });
  const event = unit.events[commit.change - unit.changes.length];
  if (event === undefined)
    throw new Error('a commit was superseded at a change that is not part of its unit');
  return new Overtaken({ table: eventsTable, id: event.id });
}

export type Tried = Extract<Commit, { outcome: 'committed' }> | Overtaken;

/** Commits a unit that can only be superseded. @throws Error for any other outcome; StoreUnavailable */
export async function tryCommit(store: Pick<Store, 'commit'>, unit: Unit): Promise<Tried> {
  const commit = await store.commit(unit);
  if (commit.outcome === 'committed') return commit;
  if (commit.outcome === 'superseded') return overtaken(unit, commit);
  throw new Error(`a change of ${unit.changes[commit.change]?.table ?? 'a row'} ended as ${commit.outcome}`);
}

/*
 * The line of one row: held by one exclusive place, by any number of shared ones, or by a chain, which is exclusive places of
 * which all but the last have yielded. The others wait in order of arrival, behind those that return.
 *
 * The head of a line that chains lets the next one in as soon as its unit is handed to the engine. The next one computes its change from
 * that unit (`newest`) and expects its provisional revision, so many changes of one row are committed by one transaction. If the unit
 * fails, the units that were computed from it are superseded, and return to the front of the line.
 *
 * Provisional revisions are negative numbers for units that were handed to the engine and have no revision yet. A change that is computed
 * from such a unit joins the same transaction or a later one. The engine replaces it with the revision that the unit got; if the unit
 * failed, nothing has that revision and the change is superseded.
 */

type Place = {
  readonly shared: boolean;
  chains: boolean;
  /** True once its unit is handed to the engine, which lets the next place of a chain in. */
  hasYielded: boolean;
  /** Characters of the texts of that unit. */
  characters: number;
  admit: (() => void) | undefined;
};

/** A row as a unit under way leaves it. */
type RowUnderWay = { readonly provisional: number; readonly row: Row | undefined };

/** Units of one chain under way: the failure of one repeats those behind it. */
const chainMax = 256;
/** Characters of their texts: a chain leaves room in the engine's queue for other writes. */
const chainCharactersMax = 1_048_576;

class Line {
  readonly #returning = new Set<Place>();
  readonly #waiting = new Set<Place>();
  readonly #holders = new Set<Place>();
  /** The holder that came last. */
  #last: Place | undefined;
  #characters = 0;
  newest: RowUnderWay | undefined;
  /** Counts the chains: units of an earlier one are computed from a unit that failed, and will fail too. */
  #chain = 0;

  get isEmpty(): boolean {
    return this.#holders.size === 0 && this.#waiting.size === 0 && this.#returning.size === 0;
  }

  /** True if the last holder has not handed its unit over and lets others in when it does. */
  get isChaining(): boolean {
    return this.#last?.chains === true && !this.#last.hasYielded && this.#holders.has(this.#last);
  }

  enter(place: Place): void {
    this.#waiting.add(place);
    this.#admit();
  }

  rejoin(place: Place): void {
    this.#giveUp(place);
    place.hasYielded = false;
    place.characters = 0;
    this.#returning.add(place);
    this.#admit();
  }

  /** @returns what to call when the unit fails */
  handOver(newest: RowUnderWay, characters: number): () => void {
    const chain = this.#chain;
    this.newest = newest;
    if (this.#last !== undefined) {
      this.#last.hasYielded = true;
      this.#last.characters = characters;
      this.#characters += characters;
    }
    this.#admit();
    return () => {
      if (chain !== this.#chain) return;
      this.#chain += 1;
      this.newest = undefined;
    };
  }

  holds(place: Place): boolean {
    return this.#holders.has(place);
  }

  leave(place: Place): void {
    this.#returning.delete(place);
    this.#waiting.delete(place);
    this.#giveUp(place);
    this.#admit();
  }

  #giveUp(place: Place): void {
    if (this.#holders.delete(place)) this.#characters -= place.characters;
  }

  #admit(): void {
    for (const places of [this.#returning, this.#waiting]) {
      for (const place of places) {
        if (!this.#letsIn(place)) return;
        places.delete(place);
        this.#holders.add(place);
        this.#last = place;
        place.admit?.();
      }
    }
  }

  #letsIn(place: Place): boolean {
    if (this.#holders.size === 0) return true;
    const last = this.#last;
    if (last === undefined) return false;
    if (place.shared) return last.shared;
    if (!place.chains || !last.hasYielded) return false;
    return this.#holders.size < chainMax && this.#characters < chainCharactersMax;
  }
}

/** Provisional revisions are below it: -1 means absence in messages to the writer. */
const first = -2;

export class ProvisionalRevisions {
  /** By provisional revision: the revision, null for a failed unit; while it is under way, what to call when it fails. */
  readonly #units = new Map<number, number | null | (() => void)>();
  #next = first;

  begin(onFailed: () => void): number {
    const provisional = this.#next;
    this.#next -= 1;
    this.#units.set(provisional, onFailed);
    return provisional;
  }

  isUnderWay(provisional: number): boolean {
    return typeof this.#units.get(provisional) === 'function';
  }

  /** @param rev undefined if the unit failed */
  settle(provisional: number, rev: number | undefined): void {
    const onFailed = this.#units.get(provisional);
    if (typeof onFailed !== 'function') return;
    if (rev === undefined) onFailed();
    // Moved to the end, so that the first ones are those settled longest ago or still under way.
    this.#units.delete(provisional);
    this.#units.set(provisional, rev ?? null);
    if (this.#units.size <= memoryBounds.provisionalRevisions.entries) return;
    for (const [oldest, settled] of this.#units) {
      if (typeof settled !== 'function') this.#units.delete(oldest);
      return;
    }
  }

  /** The revision to expect: the same number for a real one, and for a unit that is under way or failed. */
  resolve(rev: number): number {
    const settled = rev > first ? rev : this.#units.get(rev);
    return typeof settled === 'number' ? settled : rev;
  }
}
