/**
 * The memory budget of the process: request content being received, responses that clients have not read yet, batches
 * of events under way. `program-memory.ts` computes its default.
 *
 * The budget counts octets that Comity holds for as long as a client is slow. Besides the sum, each holder (a
 * principal, or an address without one) has a share, and an eighth is reserved for administrators, so that they get
 * responses when others hold the rest. Health checks and other short responses are not counted.
 */

/** Uses of memory; the label of the metric. */
export const memoryUses = [
  'content',
  'answers',
  'streams',
  'websockets',
  'background',
  'deliveries',
] as const;
export type MemoryUse = (typeof memoryUses)[number];

type MemoryBudgetOptions = {
  readonly bytesMax: number;
  /** The share of one holder, in percent. */
  readonly sharePercent: number;
  /** Called when a request, stream or socket finds no room: at most once per second and use. */
  readonly onRefused?: (refusal: MemoryRefusal) => void;
  /** A monotonic clock in milliseconds. Default: `performance.now`. */
  readonly monotonic?: () => number;
  /** In which leases that want room are admitted, so that many new streams delay no other request. Absent: all at once. */
  readonly turns?: Turns;
};

/** Turns of the event loop (event-loop.ts). */
export type Turns = {
  take(handle: () => void): void;
  next(): Promise<void> | undefined;
};

const atOnce: Turns = { take: (handle) => handle(), next: () => undefined };

export type MemoryRefusal = {
  readonly use: MemoryUse;
  readonly bytes: number;
  readonly heldBytes: number;
  readonly bytesMax: number;
  /** Refusals since the previous call for this use, including this one. */
  readonly refusals: number;
};

export type Holder = {
  readonly name: string;
  /** True for administrators: the holder may use the reserved part and has no share. */
  readonly isReserved: boolean;
};

const reservedPart = 1 / 8;

/** Interval of `onRefused` per use, so that an attack does not fill the log. */
const reportEveryMs = 1000;

function performanceNow(): number {
  return performance.now();
}

type Waiting = { readonly lease: MemoryLease; readonly bytes: number; readonly go: () => void };

export class MemoryBudget {
  readonly bytesMax: number;
  readonly #openBytesMax: number;
  readonly shareBytesMax: number;
  readonly #onRefused: (refusal: MemoryRefusal) => void;
  readonly #monotonic: () => number;
  readonly #refusals = new Map<MemoryUse, { count: number; reportedMs: number }>();
  readonly #byUse = new Map<MemoryUse, number>(memoryUses.map((use) => [use, 0]));
  readonly #byHolder = new Map<string, number>();
  /** Octets shared by leases, by identity, with leases per holder: counted once in the sum and once per holder. */
  readonly #shared = new Map<Uint8Array, Map<string, number>>();
  /** By holder, so that a holder with many streams delays only its own. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #turns: Turns;
  #bytes = 0;
  #isScheduled = false;

  constructor(options: MemoryBudgetOptions) {
    const { bytesMax, sharePercent, onRefused = () => undefined } = options;
    const { monotonic = performanceNow, turns = atOnce } = options;
    this.bytesMax = bytesMax;
    this.#openBytesMax = Math.floor(bytesMax * (1 - reservedPart));
    this.shareBytesMax = Math.floor(Math.min(this.#openBytesMax, (bytesMax * sharePercent) / 100));
    this.#onRefused = onRefused;
    this.#monotonic = monotonic;
    this.#turns = turns;
  }

  bytes(use?: MemoryUse): number {
    return use === undefined ? this.#bytes : (this.#byUse.get(use) ?? 0);
  }

  lease(use: MemoryUse, holder: Holder): MemoryLease {
    return new MemoryLease(this, use, holder);
  }

  /** True if the holder could hold the octets with the rest of the budget free. */
  canEverHold(holder: Holder, bytes: number): boolean {
    return bytes <= (holder.isReserved ? this.bytesMax : this.shareBytesMax);
  }

  hasRoom(holder: Holder, bytes: number): boolean {
    if (holder.isReserved) return this.#bytes + bytes <= this.bytesMax;
    return (
      this.#bytes + bytes <= this.#openBytesMax &&
      (this.#byHolder.get(holder.name) ?? 0) + bytes <= this.shareBytesMax
    );
  }

  /** True if a lease holds these octets already, so that holding them again needs no more memory. */
  isShared(octets: Uint8Array): boolean {
    return this.#shared.has(octets);
  }

  /** Counts a refusal that the caller decided with `hasRoom`. */
  refused(use: MemoryUse, bytes: number): void {
    const nowMs = this.#monotonic();
    const kept = this.#refusals.get(use) ?? { count: 0, reportedMs: Number.NEGATIVE_INFINITY };
    this.#refusals.set(use, kept);
    kept.count += 1;
    if (nowMs - kept.reportedMs < reportEveryMs) return;
    const refusals = kept.count;
    kept.count = 0;
    kept.reportedMs = nowMs;
    this.#onRefused({ use, bytes, heldBytes: this.#bytes, bytesMax: this.bytesMax, refusals });
  }

  /** @internal of MemoryLease */
  change(use: MemoryUse, { name }: Holder, bytes: number): void {
    this.#addToSum(use, bytes);
    this.#addToHolder(name, bytes);
    if (bytes < 0 && this.#waiting.size > 0) this.#admitSoon();
  }

  /** @internal of MemoryLease. True if there is room for the octets, or a lease holds them already. */
  hasRoomToShare({ isReserved }: Holder, octets: Uint8Array): boolean {
    const bytesMax = isReserved ? this.bytesMax : this.#openBytesMax;
    return this.#shared.has(octets) || this.#bytes + octets.length <= bytesMax;
  }

  /** @internal of MemoryLease */
  beginSharing(use: MemoryUse, { name }: Holder, octets: Uint8Array): void {
    const uses = this.#shared.get(octets) ?? new Map<string, number>();
    if (uses.size === 0) {
      this.#shared.set(octets, uses);
      this.#addToSum(use, octets.length);
    }
    const ofHolder = uses.get(name) ?? 0;
    if (ofHolder === 0) this.#addToHolder(name, octets.length);
    uses.set(name, ofHolder + 1);
  }

  /** @internal of MemoryLease */
  endSharing(use: MemoryUse, { name }: Holder, octets: Uint8Array): void {
    const uses = this.#shared.get(octets);
    const ofHolder = uses?.get(name);
    if (uses === undefined || ofHolder === undefined) return;
    if (ofHolder > 1) {
      uses.set(name, ofHolder - 1);
      return;
    }
    uses.delete(name);
    this.#addToHolder(name, -octets.length);
    if (uses.size === 0) {
      this.#shared.delete(octets);
      this.#addToSum(use, -octets.length);
    }
    if (this.#waiting.size > 0) this.#admitSoon();
  }

  #addToSum(use: MemoryUse, bytes: number): void {
    this.#bytes += bytes;
    this.#byUse.set(use, (this.#byUse.get(use) ?? 0) + bytes);
  }

  #addToHolder(name: string, bytes: number): void {
    const held = (this.#byHolder.get(name) ?? 0) + bytes;
    if (held === 0) this.#byHolder.delete(name);
    else this.#byHolder.set(name, held);
  }

  /** @internal of MemoryLease. Admits in order of arrival, in turns of the event loop. */
  whenRoom(waiting: Waiting): void {
    this.#turns.take(() => {
      const { lease, bytes, go } = waiting;
      if (!lease.isOpen) return;
      if (this.#waiting.size === 0 && lease.grow(bytes)) go();
      else this.#wait(waiting);
    });
  }

  #wait(waiting: Waiting): void {
    const { name } = waiting.lease.holder;
    const line = this.#waiting.get(name);
    if (line === undefined) this.#waiting.set(name, [waiting]);
    else line.push(waiting);
    this.#admitSoon();
  }

  #admitSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => void this.#admitWaiting());
  }

  async #admitWaiting(): Promise<void> {
    for (let admitted = true; admitted; ) {
      const turn = this.#turns.next();
      if (turn !== undefined) await turn;
      admitted = this.#admitOne();
    }
    this.#isScheduled = false;
  }

  /** Admits the first lease of a holder that has room, of each holder in turn. @returns false if there is none */
  #admitOne(): boolean {
    for (const [name, line] of this.#waiting) {
      while (line[0]?.lease.isOpen === false) line.shift();
      const [next] = line;
      if (next === undefined) this.#waiting.delete(name);
      else if (next.lease.grow(next.bytes)) {
        line.shift();
        // Moves the holder to the end of the line.
        this.#waiting.delete(name);
        if (line.length > 0) this.#waiting.set(name, line);
        next.go();
        return true;
      }
    }
    return false;
  }
}

/** The octets that one request, stream or socket holds. */
export class MemoryLease {
  readonly holder: Holder;
  readonly #budget: MemoryBudget;
  readonly #use: MemoryUse;
  #bytes = 0;
  #shared: Uint8Array | undefined;
  isOpen = true;

  constructor(budget: MemoryBudget, use: MemoryUse, holder: Holder) {
    this.#budget = budget;
    this.#use = use;
    this.holder = holder;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds octets. Returns false and changes nothing if there is no room. */
  grow(bytes: number): boolean {
    if (!this.#budget.hasRoom(this.holder, bytes)) return false;
    this.#change(bytes);
    return true;
  }

  /** As `growOrRefuse`, except that the only lease of its use always grows: what needs more than there is would never find room. */
  growAlone(bytes: number): boolean {
    const isAlone = this.#budget.bytes(this.#use) === this.#bytes;
    if (!isAlone || !this.isOpen) return this.growOrRefuse(bytes);
    this.#change(bytes);
    return true;
  }

  /** As `grow`, and counts a refusal. */
  growOrRefuse(bytes: number): boolean {
    const grown = this.grow(bytes);
    if (!grown) this.#budget.refused(this.#use, bytes);
    return grown;
  }

  /** Adds octets that several leases may hold. Returns false if there is no room for them. */
  growShared(octets: Uint8Array): boolean {
    if (!this.#budget.hasRoomToShare(this.holder, octets)) return false;
    this.#share(octets);
    return true;
  }

  /** Sets the lease to exactly these octets, already in memory, which several leases may hold; undefined: none. */
  share(octets: Uint8Array | undefined): void {
    if (!this.isOpen) return;
    this.#share(octets);
    this.#change(-this.#bytes);
  }

  /** Sets the octets of the lease besides shared ones. They are in memory already, so the budget cannot refuse them. */
  set(bytes: number): void {
    if (this.isOpen) this.#change(bytes - this.#bytes);
  }

  /** Calls `go` once the octets are counted: immediately, or in a later turn. At most the share is requested. */
  whenRoom(bytes: number, go: () => void): void {
    const wanted = Math.min(bytes, this.#budget.shareBytesMax);
    this.#budget.whenRoom({ lease: this, bytes: wanted, go });
  }

  /** Resolves when there is room as `whenRoom` asks for, or when the signal aborts. */
  untilRoom(bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        signal.removeEventListener('abort', go);
        resolve();
      };
      if (signal.aborted) return resolve();
      signal.addEventListener('abort', go);
      this.whenRoom(bytes, go);
    });
  }

  release(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#share(undefined);
    this.#change(-this.#bytes);
  }

  /** Counts the new octets first, so that octets that stay shared remain counted. */
  #share(octets: Uint8Array | undefined): void {
    const before = this.#shared;
    this.#shared = octets;
    if (octets !== undefined) this.#budget.beginSharing(this.#use, this.holder, octets);
    if (before !== undefined) this.#budget.endSharing(this.#use, this.holder, before);
  }

  #change(bytes: number): void {
    if (bytes === 0) return;
    this.#bytes += bytes;
    this.#budget.change(this.#use, this.holder, bytes);
  }
}
