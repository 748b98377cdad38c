/**
 * Which queues of due work this process works at. Every queue is in one of a fixed number of lanes, and each lane is one process's: all of
 * them where the process has the store for itself, leased ones (lane-leases.ts) where several share it.
 */

export type Lanes = {
  /**
   * Whether this process works at the queue, and will until an attempt that begins now is over whatever happens to its lease.
   * @param queue id of an endpoint, or `sender/{name}`
   */
  owns(queue: string): boolean;
  /** Something besides endpoints has to be done in lanes: asks for some, where that was not done before. */
  need(): void;
  /** An attempt of the queue begins: its lane is not handed on in good order before `release`. */
  hold(queue: string): void;
  /** The attempt is written down, or given up. */
  release(queue: string): void;
  /** Calls back after lanes came or went. Returns the way to stop. */
  onChange(listener: () => void): () => void;
  /** Gives all lanes back, so that others need not wait for the leases to end. */
  close(): Promise<void>;
};

/** Enough to share out evenly among a dozen processes, few enough for one row. */
export const laneCount = 64;

/**
 * The lane of a queue: the same in every process and every version, or two processes would work at one queue. FNV-1a over the code units of
 * the id, folded, because its low bits alone are poor.
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

export type Division = {
  /** Whose each lane is from here on. */
  readonly lanes: readonly (string | null)[];
  /** Lanes of ours in which nothing more may begin, because they are to be given away when what is under way is over. */
  readonly giving: ReadonlySet<number>;
};

export type DivideFacts = {
  readonly lanes: readonly (string | null)[];
  readonly me: string;
  /** Processes that live, with us. */
  readonly live: ReadonlySet<string>;
  readonly giving: ReadonlySet<number>;
  /** Whether attempts are under way in the lane. */
  readonly isBusy: (lane: number) => boolean;
};

/**
 * Which lanes a process takes and which it gives, so that each of n processes ends with at most an nth of them, rounded up. Pure: the
 * same table leads to the same decision. No process takes what another one holds that lives.
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

/** Those that are being given already, then those in which nothing is under way. */
function leastNeeded(
  own: readonly number[],
  giving: ReadonlySet<number>,
  isBusy: (lane: number) => boolean,
): readonly number[] {
  const rank = (lane: number) => (giving.has(lane) ? 0 : isBusy(lane) ? 2 : 1);
  return [...own].sort((one, other) => rank(one) - rank(other) || one - other);
}
