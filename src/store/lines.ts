/**
 * Queues (lines) of changes that wait for the same row. A change names the revision that it was computed from, so of many concurrent
 * changes of one row the store commits one and supersedes the others. Instead of racing again, each of those enters the row's line, first
 * in, first out, and only its head reads, computes and commits. Shared places next to each other are held together. Lines live in the
 * memory of one process and guarantee nothing; the expectation that the store checks does. If another process overtakes the head, it
 * retries at once.
 *
 * No deadlock: a turn that needs another row releases its places and takes all of its rows in one order. Code that holds a place within a
 * turn (only for the generation of endpoints) holds it for one commit and takes no other. No endless wait: a turn ends at its deadline or
 * when its client disconnects, and the number of places is bounded.
 */
import {
  type ChangeLines,
  type Commit,
  eventsTable,
  type OnGone,
  Overtaken,
  type RowName,
  type Store,
  StoreUnavailable,
  type Turn,
  type Unit,
} from './store.ts';

export type LinesOptions = {
  /** Changes waiting in all lines together. Default 10,000. */
  readonly changesWaitingMax?: number | undefined;
  /** Time from a change's first place until it gives up. Default 30 s. */
  readonly changeWaitMs?: number | undefined;
};

/** Thrown when a change gets no turn: the queue is full, the deadline passed, or the client disconnected. */
export class LineUnavailable extends StoreUnavailable {}

export class Lines implements ChangeLines {
  readonly #waitMs: number;
  readonly #waitingMax: number;
  readonly #lines = new Map<string, Line>();
  #waiting = 0;

  constructor({ changeWaitMs = 30_000, changesWaitingMax = 10_000 }: LinesOptions) {
    this.#waitMs = changeWaitMs;
    this.#waitingMax = changesWaitingMax;
  }

  get waiting(): number {
    return this.#waiting;
  }

  isBusy({ table, id }: RowName): boolean {
    return this.#lines.size > 0 && this.#lines.has(nameOf(table, id));
  }

  turn(onGone?: OnGone): Turn {
    const deadline = performance.now() + this.#waitMs;
    return new HeldTurn((name) => this.#take(name, { shared: false, deadline, onGone }), deadline);
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
    const release = await this.#take(nameOf(table, id), { shared, deadline, onGone: undefined });
    try {
      return await work(() => checkTime(deadline));
    } finally {
      release();
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

  async #take(name: string, wish: Wish): Promise<() => void> {
    let line = this.#lines.get(name);
    if (line === undefined) {
      line = new Line();
      this.#lines.set(name, line);
    }
    const entered = line;
    const place: Place = { shared: wish.shared, admit: undefined };
    const leave = (): void => {
      entered.leave(place);
      if (entered.isEmpty) this.#lines.delete(name);
    };
    if (!entered.enter(place)) await this.#wait(entered, place, wish, leave);
    return leave;
  }

  async #wait(line: Line, place: Place, { deadline, onGone }: Wish, leave: () => void): Promise<void> {
    if (this.#waiting >= this.#waitingMax) {
      leave();
      throw unavailable(
        `${this.#waiting} changes wait for their turn: the queue is full (COMITY_CHANGES_WAITING_MAX)`,
      );
    }
    this.#waiting += 1;
    let timer: NodeJS.Timeout | undefined;
    let stop: (() => void) | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const giveUp = (why: string): void => {
          if (line.holds(place)) return;
          leave();
          reject(unavailable(why));
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
  }
}

type Wish = {
  readonly shared: boolean;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  readonly onGone: OnGone | undefined;
};

class HeldTurn implements Turn {
  readonly #take: (name: string) => Promise<() => void>;
  readonly #deadline: number;
  readonly #rows = new Set<string>();
  readonly #held: (() => void)[] = [];

  constructor(take: (name: string) => Promise<() => void>, deadline: number) {
    this.#take = take;
    this.#deadline = deadline;
  }

  async take({ table, id }: RowName): Promise<void> {
    const name = nameOf(table, id);
    if (this.#rows.has(name)) {
      checkTime(this.#deadline);
      return;
    }
    this.release();
    this.#rows.add(name);
    for (const each of [...this.#rows].sort()) this.#held.push(await this.#take(each));
  }

  release(): void {
    for (const release of this.#held.splice(0)) release();
  }
}

type Place = { readonly shared: boolean; admit: (() => void) | undefined };

/** Held by one exclusive place or any number of shared ones; the others wait in order of arrival. */
class Line {
  readonly #waiting = new Set<Place>();
  readonly #holders = new Set<Place>();

  get isEmpty(): boolean {
    return this.#holders.size === 0 && this.#waiting.size === 0;
  }

  /** @returns true if the place is held immediately */
  enter(place: Place): boolean {
    this.#waiting.add(place);
    this.#admit();
    return this.#holders.has(place);
  }

  holds(place: Place): boolean {
    return this.#holders.has(place);
  }

  leave(place: Place): void {
    this.#waiting.delete(place);
    this.#holders.delete(place);
    this.#admit();
  }

  #admit(): void {
    for (const place of this.#waiting) {
      const [holder] = this.#holders;
      if (holder !== undefined && !(holder.shared && place.shared)) return;
      this.#waiting.delete(place);
      this.#holders.add(place);
      place.admit?.();
    }
  }
}

/** Names of tables contain no line feed. */
function nameOf(table: string, id: string): string {
  return `${table}\n${id}`;
}

function checkTime(deadline: number): void {
  if (performance.now() > deadline) throw unavailable('other processes kept changing a row');
}

function unavailable(message: string): LineUnavailable {
  return new LineUnavailable(message, { retryAfterSeconds: 1 });
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
