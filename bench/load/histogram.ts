/**
 * A latency histogram in the manner of HdrHistogram: one microsecond steps up to 2 ms, then 1024 steps to each
 * doubling (relative error under 0.1 %), up to 134 s. Recording is one shift and one increment, so that the
 * load generator spends its core on requests. It does not correct for coordinated omission: the generator is
 * a closed loop, and its latencies are those of the requests that were sent.
 */

const stepsPerDoubling = 1024;
const doublingsMax = 17;

export type LatencySummary = {
  readonly count: number;
  readonly p50Us: number;
  readonly p90Us: number;
  readonly p99Us: number;
  readonly maxUs: number;
};

/** Counts latencies in microseconds; values beyond the last bucket are counted in it, the maximum stays exact. */
export class LatencyHistogram {
  readonly #counts = new Uint32Array(stepsPerDoubling * (doublingsMax + 1));
  #count = 0;
  #maxUs = 0;

  record(latencyUs: number): void {
    const index = bucketOf(latencyUs);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
    if (latencyUs > this.#maxUs) this.#maxUs = latencyUs;
  }

  reset(): void {
    this.#counts.fill(0);
    this.#count = 0;
    this.#maxUs = 0;
  }

  /** The latency that the given share (0 to 1) of the records does not exceed, in microseconds. */
  quantileUs(share: number): number {
    const wanted = Math.max(1, Math.ceil(this.#count * share));
    let seen = 0;
    for (let index = 0; index < this.#counts.length; index += 1) {
      seen += this.#counts[index] ?? 0;
      if (seen >= wanted) return Math.min(upperEdgeUs(index), this.#maxUs);
    }
    return this.#maxUs;
  }

  summary(): LatencySummary {
    return {
      count: this.#count,
      p50Us: this.quantileUs(0.5),
      p90Us: this.quantileUs(0.9),
      p99Us: this.quantileUs(0.99),
      maxUs: this.#maxUs,
    };
  }
}

function bucketOf(latencyUs: number): number {
  const value = latencyUs > 0 ? Math.min(Math.floor(latencyUs), 0x7fffffff) : 0;
  if (value < 2 * stepsPerDoubling) return value;
  const doubling = 21 - Math.clz32(value);
  const index = doubling * stepsPerDoubling + (value >>> doubling);
  return Math.min(index, stepsPerDoubling * (doublingsMax + 1) - 1);
}

function upperEdgeUs(index: number): number {
  if (index < 2 * stepsPerDoubling) return index + 1;
  const doubling = Math.floor(index / stepsPerDoubling) - 1;
  const step = index - doubling * stepsPerDoubling;
  return (step + 1) * 2 ** doubling;
}
