/**
 * The circuit breaker of a queue: pauses an endpoint or a sender whose attempts fail (§6: hints to slow down; a receiver that is out costs
 * capacity with each attempt). Its state is this process's and is not kept: the store has the schedule of each row.
 *
 * Three modes:
 * - closed: attempts begin freely. `failuresMax` failures in a row open it; a success begins the count anew.
 * - open: no attempt begins until a time, which is jittered so that queues behind one outage do not resume at once.
 *   Failures of attempts that had begun before say nothing new and are passed over.
 * - half-open, from that time on: one attempt begins, the probe. Its failure opens the breaker again, for twice as long up to a
 *   bound. If it says nothing of the receiver (it was aborted), the next one is the probe.
 * A success closes it in every mode: also that of an attempt which began before it opened.
 */

export type BreakerSettings = {
  readonly webhookBreakerFailuresMax: number;
  readonly webhookBreakerSeconds: number;
  readonly webhookBreakerSecondsMax: number;
};

/** The share of a period that chance takes away. */
const jitter = 0.2;

type Mode =
  | { readonly kind: 'closed'; readonly failures: number }
  | { readonly kind: 'open'; readonly until: number; readonly periodMs: number }
  | { readonly kind: 'half-open'; readonly probing: boolean; readonly periodMs: number };

const closed: Mode = { kind: 'closed', failures: 0 };

export class Breaker {
  readonly #settings: BreakerSettings;
  readonly #random: () => number;
  #mode: Mode = closed;

  /** @param random uniformly from 0 to 1 */
  constructor(settings: BreakerSettings, random: () => number) {
    this.#settings = settings;
    this.#random = random;
  }

  get mode(): Mode['kind'] {
    return this.#mode.kind;
  }

  /** Until when nothing begins, in milliseconds since the epoch; 0: not known to be so. */
  pausedUntil(at: number): number {
    if (this.#mode.kind !== 'open') return 0;
    if (at < this.#mode.until) return this.#mode.until;
    this.#mode = { kind: 'half-open', probing: false, periodMs: this.#mode.periodMs };
    return 0;
  }

  /** Whether the only attempt that may be under way is. */
  get probing(): boolean {
    return this.#mode.kind === 'half-open' && this.#mode.probing;
  }

  /** Lets the probe begin now, because a person asked for an attempt. */
  allowProbe(): void {
    if (this.#mode.kind === 'open') {
      this.#mode = { kind: 'half-open', probing: false, periodMs: this.#mode.periodMs };
    }
  }

  /** @returns whether the attempt that begins is the probe */
  began(): boolean {
    if (this.#mode.kind !== 'half-open') return false;
    this.#mode = { ...this.#mode, probing: true };
    return true;
  }

  /** @returns whether it was open until now */
  succeeded(): boolean {
    const answersAgain = this.#mode.kind !== 'closed';
    this.#mode = closed;
    return answersAgain;
  }

  /** @returns until when the queue is paused, where this failure opened the breaker; milliseconds since the epoch */
  failed(at: number, probe: boolean): number | undefined {
    const mode = this.#mode;
    const { webhookBreakerFailuresMax, webhookBreakerSeconds, webhookBreakerSecondsMax } = this.#settings;
    if (mode.kind === 'closed') {
      const failures = mode.failures + 1;
      this.#mode = { kind: 'closed', failures };
      return failures < webhookBreakerFailuresMax ? undefined : this.#open(at, webhookBreakerSeconds * 1000);
    }
    if (!probe || mode.kind !== 'half-open') return undefined;
    return this.#open(at, Math.min(mode.periodMs * 2, webhookBreakerSecondsMax * 1000));
  }

  /** The probe said nothing. */
  ignored(probe: boolean): void {
    if (probe && this.#mode.kind === 'half-open') this.#mode = { ...this.#mode, probing: false };
  }

  /** Closes the breaker: the owner of an endpoint enabled it. */
  reset(): void {
    this.#mode = closed;
  }

  #open(at: number, periodMs: number): number {
    const until = at + Math.ceil(periodMs * (1 - jitter * this.#random()));
    this.#mode = { kind: 'open', until, periodMs };
    return until;
  }
}
