/**
 * Divides queues of due work among processes. Every queue is in one of a fixed number of lanes, and each lane belongs
 * to one process: all lanes to the only process of a store, leased ones (lane-leases.ts) if several processes share it.
 */

export type Lanes = {
  /**
   * Returns true if this process works on the queue, and will until an attempt that begins now has ended, whatever
   * happens to its lease.
   * @param queue id of an endpoint, or `sender/{name}`
   */
  owns(queue: string): boolean;
  /** Leases lanes, if not done before, because work other than endpoints needs them. */
  need(): void;
  /** Keeps the queue's lane from being given away until `release`: an attempt begins. */
  hold(queue: string): void;
  /** Called when the attempt was settled or given up. */
  release(queue: string): void;
  /** Calls back after lanes were gained or lost; returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
  /** Gives all lanes back, so that other processes need not wait for the leases to end. */
  close(): Promise<void>;
};

/** Enough to divide evenly among a dozen processes, few enough for one row. */
export const laneCount = 64;

/**
 * Returns the lane of a queue. Every process and version must compute the same one, or two processes would work on one
 * queue. FNV-1a over the code units of the id, folded because its low bits alone are poorly distributed.
 */
export function laneOf(queue: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < queue.length; at += 1) {
    hash = Math.imul(hash ^ queue.charCodeAt(at), 0x01000193);
  }
  hash ^= hash >>> 15;
  hash ^= hash >>> 7;
  return (hash >>> 0) % laneCount;
}

type Division = {
  /** The new owner of each lane. */
  readonly lanes: readonly (string | null)[];
  /** Lanes of this process in which nothing more may begin: it gives them away when their attempts have ended. */
  readonly giving: ReadonlySet<number>;
};

type DivideFacts = {
  readonly lanes: readonly (string | null)[];
  readonly me: string;
  readonly live: ReadonlySet<string>;
  readonly giving: ReadonlySet<number>;
  readonly isBusy: (lane: number) => boolean;
};

/**
 * Decides which lanes a process takes and gives away, so that each of n processes ends with at most 1/n of them,
 * rounded up. Pure: the same table leads to the same decision. A process never takes a lane of another live process.
 */
export function divide({ lanes, me, live, giving, isBusy }: DivideFacts): Division {
  const share = Math.ceil(lanes.length / live.size);
  const own = lanes.flatMap((owner, lane) => (owner === me ? [lane] : []));
  const next = [...lanes];
  if (own.length <= share) {
    let room = share - own.length;
    for (const [lane, owner] of lanes.entries()) {
      if (room === 0) break;
      if (owner !== null && live.has(owner)) continue;
      next[lane] = me;
      room -= 1;
    }
    return { lanes: next, giving: new Set() };
  }
  const still = new Set<number>();
  for (const lane of leastNeeded(own, giving, isBusy).slice(0, own.length - share)) {
    if (giving.has(lane) && !isBusy(lane)) next[lane] = null;
    else still.add(lane);
  }
  return { lanes: next, giving: still };
}

/** Sorts lanes that are already being given away first, then idle ones. */
function leastNeeded(
  own: readonly number[],
  giving: ReadonlySet<number>,
  isBusy: (lane: number) => boolean,
): readonly number[] {
  const rank = (lane: number) => (giving.has(lane) ? 0 : isBusy(lane) ? 2 : 1);
  return [...own].sort((one, other) => rank(one) - rank(other) || one - other);
}
