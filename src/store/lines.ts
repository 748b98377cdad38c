/**
 * Lines of changes that wait for a row. A change names the revision that it was computed from, so of many changes of one row at once
 * the store makes one and supersedes the others. Instead of racing again, each of those takes a place in the line of the row, and only
 * the head of the line reads, computes and commits. The lines are in the memory of one process and prove nothing: the expectation that
 * the store checks does. The head may lose to another process, and then tries again at once.
 *
 * A line is first in, first out. Places are exclusive; places that are shared are held together by neighbours in the line.
 *
 * No deadlock: a turn that needs a further row gives back what it holds and takes all of its rows in one order. Who takes a place by
 * itself while it has a turn (the generation of endpoints alone is taken so) holds it during one commit and takes no other place meanwhile.
 * No endless wait: a turn ends at its deadline or when its client has gone, and the places of all lines are bounded in number.
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
  /** Changes that may wait in all lines together. Default 10,000. */
  readonly changesWaitingMax?: number | undefined;
  /** Time from the first place that a change takes until it gives up. Default 30 s. */
  readonly changeWaitMs?: number | undefined;
};

/** The row at which the unit was superseded. */
export function overtaken(
  unit: Unit,
  commit: Pick<Exclude<Commit, { outcome: 'committed' }>, 'change'>,
): Overtaken {
  const change = unit.changes[commit.change];
  if (change !== undefined) return new Overtaken({ table: change.table, id: change.id });
  const event = unit.events[commit.change - unit.changes.length];
  if (event === undefined) throw new Error('a unit was superseded at a change that it does not have');
  return new Overtaken({ table: eventsTable, id: event.id });
}

export type Tried = Extract<Commit, { outcome: 'committed' }> | Overtaken;

/**
 * Commits a unit that can break no rule of the store but its expectations.
 * @throws Error where it did all the same; StoreUnavailable
 */
export async function tryCommit(store: Pick<Store, 'commit'>, unit: Unit): Promise<Tried> {
  const commit = await store.commit(unit);
  if (commit.outcome === 'committed') return commit;
  if (commit.outcome === 'superseded') return overtaken(unit, commit);
  throw new Error(`a change of ${unit.changes[commit.change]?.table ?? 'a row'} ended as ${commit.outcome}`);
}

/** No place was to be had: as many wait as may, the time was over, or the client left. */
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
      throw unavailable(`${this.#waiting} changes wait for their turn`);
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
        timer = setTimeout(giveUp, leftMs, 'a change waited too long for its turn');
        stop = onGone?.(() => giveUp('the client left before the turn of its change'));
      });
    } finally {
      this.#waiting -= 1;
      clearTimeout(timer);
      stop?.();
    }
  }
}

/** What a place must be like, and how long it is waited for. */
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

/** Either one exclusive place is held, or any number of shared ones; the others wait in the order in which they came. */
class Line {
  readonly #waiting = new Set<Place>();
  readonly #holders = new Set<Place>();

  get isEmpty(): boolean {
    return this.#holders.size === 0 && this.#waiting.size === 0;
  }

  /** @returns whether the place is held at once */
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

/** Names of tables hold no line feed. */
function nameOf(table: string, id: string): string {
  return `${table}\n${id}`;
}

function checkTime(deadline: number): void {
  if (performance.now() > deadline) throw unavailable('other processes kept changing a row');
}

function unavailable(message: string): LineUnavailable {
  return new LineUnavailable(message, { retryAfterSeconds: 1 });
}
