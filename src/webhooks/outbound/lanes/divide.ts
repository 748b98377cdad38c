/**
 * Which lanes a process takes and which it gives, so that each of n processes ends with at most an nth of them, rounded up. Pure: the
 * same table leads to the same decision. Nobody takes what another process holds that lives.
 */

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
