/**
 * The circuit breaker of a queue: pauses an endpoint or a sender whose attempts fail (§6), because each attempt at a
 * receiver that is down costs capacity. Its state is in memory only; the store has the schedule of each row.
 *
 * Three modes:
 * - closed: attempts begin freely. `failuresMax` failures in a row open it; a success resets the count.
 * - open: no attempt begins until a time, with jitter so that queues behind one outage do not resume together. Failures
 *   of attempts that began earlier are ignored.
 * - half-open, from that time on: one attempt begins, the probe. Its failure opens the breaker again, for twice as long
 *   up to a bound. If its outcome says nothing about the receiver (it was aborted), the next attempt is the probe.
 *
 * A success closes it in every mode, even if its attempt began before the breaker opened.
 */

export type BreakerSettings = {
  readonly webhookBreakerFailuresMax: number;
  readonly webhookBreakerSeconds: number;
  readonly webhookBreakerSecondsMax: number;
};

/** For work of which one failure says nothing about the next: nothing outside that is down stands behind it. */
export const neverOpens: BreakerSettings = {
  webhookBreakerFailuresMax: Number.POSITIVE_INFINITY,
  webhookBreakerSeconds: 0,
  webhookBreakerSecondsMax: 0,
};

/** The greatest share of a period that jitter removes. */
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

  /** @param random returns numbers uniformly from 0 to 1 */
  constructor(settings: BreakerSettings, random: () => number) {
    this.#settings = settings;
    this.#random = random;
  }

  get mode(): Mode['kind'] {
    return this.#mode.kind;
  }

  /** The end of the pause, in milliseconds since the epoch; 0: not paused. */
  pausedUntil(at: number): number {
    if (this.#mode.kind !== 'open') return 0;
    if (at < this.#mode.until) return this.#mode.until;
    this.#mode = { kind: 'half-open', probing: false, periodMs: this.#mode.periodMs };
    return 0;
  }

  /** True while the probe is under way. */
  get probing(): boolean {
    return this.#mode.kind === 'half-open' && this.#mode.probing;
  }

  /** Lets the probe begin now, because a person requested an attempt. */
  allowProbe(): void {
    if (this.#mode.kind === 'open') {
      this.#mode = { kind: 'half-open', probing: false, periodMs: this.#mode.periodMs };
    }
  }

  /** @returns true if the attempt that begins is the probe */
  began(): boolean {
    if (this.#mode.kind !== 'half-open') return false;
    this.#mode = { ...this.#mode, probing: true };
    return true;
  }

  /** @returns true if the breaker was not closed before */
  succeeded(): boolean {
    const answersAgain = this.#mode.kind !== 'closed';
    this.#mode = closed;
    return answersAgain;
  }

  /** @returns the end of the pause in milliseconds since the epoch, if this failure opened the breaker */
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

  /** Records a probe whose outcome says nothing about the receiver. */
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
