/**
 * The memory that everything under way may take together: content being received, answers that their clients have not taken, batches
 * of events on their way. One budget for a process, made in compose.ts; `machine-memory.ts` says how large it is by default.
 *
 * What is counted is octets that are held for as long as a client is slow. Two bounds apply besides the sum: a holder (a
 * principal, or an address without one) may take a share, and an eighth is reserved for administrators, so that they are answered
 * whatever others hold. Health and other short answers are not counted at all.
 */

/** What memory is held for; the label of the metric. */
export const memoryUses = ['content', 'answers', 'streams', 'websockets', 'deliveries'] as const;
export type MemoryUse = (typeof memoryUses)[number];

export type MemoryBudgetOptions = {
  readonly bytesMax: number;
  /** Part of it that one holder may take, in percent. */
  readonly sharePercent: number;
  /** Called where a request, stream or socket found no room: once in a second for each use. */
  readonly onRefused?: (refusal: MemoryRefusal) => void;
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
};

export type MemoryRefusal = {
  readonly use: MemoryUse;
  readonly bytes: number;
  readonly heldBytes: number;
  readonly bytesMax: number;
  /** Since the last call for this use, this one included. */
  readonly refusals: number;
};

/** Whose memory it is. */
export type Holder = {
  readonly name: string;
  /** May use what is reserved, and has no share: an administrator. */
  readonly isReserved: boolean;
};

/** Kept for administrators. */
const reservedPart = 1 / 8;

/** Time of one turn of the event loop that goes to reading for waiting streams, so that a thousand that begin at once delay no other request. */
const sliceMsMax = 10;
/** An attack is not to fill the log. */
const toldEveryMs = 1000;

function performanceNow(): number {
  return performance.now();
}

type Waiting = { readonly lease: MemoryLease; readonly bytes: number; readonly go: () => void };

export class MemoryBudget {
  readonly bytesMax: number;
  readonly #openBytesMax: number;
  /** What one holder may take. */
  readonly shareBytesMax: number;
  readonly #onRefused: (refusal: MemoryRefusal) => void;
  readonly #monotonic: () => number;
  readonly #refusals = new Map<MemoryUse, { count: number; toldMs: number }>();
  readonly #byUse = new Map<MemoryUse, number>(memoryUses.map((use) => [use, 0]));
  readonly #byHolder = new Map<string, number>();
  /** Octets that several send at once, by identity, and how many of each holder do: counted once in the sum and once for each holder. */
  readonly #shared = new Map<Uint8Array, Map<string, number>>();
  /** By holder, so that one of many streams holds up none but its own. */
  readonly #waiting = new Map<string, Waiting[]>();
  #bytes = 0;
  /** Time that was spent in this turn with what was let in. */
  #sliceMs = 0;
  #isScheduled = false;

  constructor(options: MemoryBudgetOptions) {
    const { bytesMax, sharePercent, onRefused = () => undefined, monotonic = performanceNow } = options;
    this.bytesMax = bytesMax;
    this.#openBytesMax = Math.floor(bytesMax * (1 - reservedPart));
    this.shareBytesMax = Math.floor(Math.min(this.#openBytesMax, (bytesMax * sharePercent) / 100));
    this.#onRefused = onRefused;
    this.#monotonic = monotonic;
  }

  /** Octets held now, of one use or of all. */
  bytes(use?: MemoryUse): number {
    return use === undefined ? this.#bytes : (this.#byUse.get(use) ?? 0);
  }

  /** Nothing is counted until the lease grows. */
  lease(use: MemoryUse, holder: Holder): MemoryLease {
    return new MemoryLease(this, use, holder);
  }

  /** Whether so many octets more can ever be held by this holder, when nothing else is. */
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

  /** Whether a lease holds these octets already, so that to hold them too takes no more. */
  isShared(octets: Uint8Array): boolean {
    return this.#shared.has(octets);
  }

  /** Counts a refusal that its caller decided on by `hasRoom`. */
  refused(use: MemoryUse, bytes: number): void {
    const nowMs = this.#monotonic();
    const kept = this.#refusals.get(use) ?? { count: 0, toldMs: Number.NEGATIVE_INFINITY };
    this.#refusals.set(use, kept);
    kept.count += 1;
    if (nowMs - kept.toldMs < toldEveryMs) return;
    const refusals = kept.count;
    kept.count = 0;
    kept.toldMs = nowMs;
    this.#onRefused({ use, bytes, heldBytes: this.#bytes, bytesMax: this.bytesMax, refusals });
  }

  /** @internal of MemoryLease */
  change(use: MemoryUse, { name }: Holder, bytes: number): void {
    this.#addToSum(use, bytes);
    this.#addToHolder(name, bytes);
    if (bytes < 0 && this.#waiting.size > 0) this.#admitSoon();
  }

  /** @internal of MemoryLease. Whether there is room for the octets, or somebody holds them already. */
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

  /** @internal of MemoryLease. Who waits already goes first, and what the turn has no time for waits for the next. */
  whenRoom(waiting: Waiting): void {
    if (this.#waiting.size === 0 && this.#sliceMs < sliceMsMax && waiting.lease.grow(waiting.bytes)) {
      this.#run(waiting.go);
      return;
    }
    const { name } = waiting.lease.holder;
    const line = this.#waiting.get(name);
    if (line === undefined) this.#waiting.set(name, [waiting]);
    else line.push(waiting);
    this.#admitSoon();
  }

  #admitSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sliceMs = 0;
      this.#admitWaiting();
    });
  }

  /** One of each holder in turn, in the order in which they came, until there is no room for any or the turn is over. */
  #admitWaiting(): void {
    for (let admitted = true; admitted; ) {
      admitted = false;
      for (const [name, line] of [...this.#waiting]) {
        if (this.#sliceMs >= sliceMsMax) {
          this.#admitSoon();
          return;
        }
        while (line[0]?.lease.isOpen === false) line.shift();
        const [next] = line;
        if (next === undefined) this.#waiting.delete(name);
        else if (next.lease.grow(next.bytes)) {
          admitted = true;
          line.shift();
          // Behind the others, if it has more.
          this.#waiting.delete(name);
          if (line.length > 0) this.#waiting.set(name, line);
          this.#run(next.go);
        }
      }
    }
  }

  #run(go: () => void): void {
    const startedMs = this.#monotonic();
    go();
    this.#sliceMs += this.#monotonic() - startedMs;
    if (this.#sliceMs >= sliceMsMax) this.#admitSoon();
  }
}

/** What one request, stream or socket holds. */
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

  /** Counts so many octets more; false, and nothing changed, where there is no room. */
  grow(bytes: number): boolean {
    if (!this.#budget.hasRoom(this.holder, bytes)) return false;
    this.#change(bytes);
    return true;
  }

  /** As `grow`; a refusal is counted as one. */
  growOrRefuse(bytes: number): boolean {
    const grown = this.grow(bytes);
    if (!grown) this.#budget.refused(this.#use, bytes);
    return grown;
  }

  /** Counts octets that several leases may hold, besides its own; false where there is no room for them. */
  growShared(octets: Uint8Array): boolean {
    if (!this.#budget.hasRoomToShare(this.holder, octets)) return false;
    this.#share(octets);
    return true;
  }

  /** Counts exactly these octets from now on, which are there already and which several leases may hold; undefined: none. */
  share(octets: Uint8Array | undefined): void {
    if (!this.isOpen) return;
    this.#share(octets);
    this.#change(-this.#bytes);
  }

  /** Counts exactly so many octets from now on, besides shared ones; they are there already and cannot be refused. */
  set(bytes: number): void {
    if (this.isOpen) this.#change(bytes - this.#bytes);
  }

  /** Calls back once so many octets more are counted: at once, or in a later turn. More than a share is asked for as a share. */
  whenRoom(bytes: number, go: () => void): void {
    const wanted = Math.min(bytes, this.#budget.shareBytesMax);
    this.#budget.whenRoom({ lease: this, bytes: wanted, go });
  }

  /** Nothing is held any more, nor waited for. */
  release(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#share(undefined);
    this.#change(-this.#bytes);
  }

  /** The new ones first, so that octets which stay shared are never uncounted. */
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
