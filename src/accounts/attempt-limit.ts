/**
 * A limit on attempts of one kind, such as failed logins (§8): a number in a sliding window, for each account and each address, counted
 * together by all processes. kernel/rate-limit has the limits of all requests. An attempt is counted before the password is compared, so that
 * concurrent attempts gain nothing, and is given back when it succeeds. A refused attempt is not counted, so that Retry-After holds for a client that keeps trying. A counted attempt may still
 * succeed. While this process has such pending attempts, an attempt without room waits for them instead of being refused: people behind
 * one address do not lock each other out by logging in at the same moment.
 */
import type { Allowance } from '../http/message.ts';
import type { Services } from '../store/capabilities.ts';
import { StoreUnavailable, type Tally } from '../store/store.ts';

export type Attempt =
  | {
      readonly ok: true;
      /** Gives the attempt back: the password was right, or was never compared. */
      succeeded(): Promise<void>;
      /** Keeps the attempt counted. Exactly one of the two must be called. */
      failed(): void;
    }
  /** `first`: the first refusal for this account or address in the window, for the audit trail. */
  | { readonly ok: false; readonly allowance: Allowance; readonly first: boolean };

export type AttemptLimit = {
  /**
   * @param account a digest of the account's name, whether or not it exists
   * @param address as rate limits count it
   * @throws StoreUnavailable
   */
  begin(account: string, address: string): Promise<Attempt>;
};

type Exhausted = { readonly name: string; readonly waitMs: number };

export type AttemptRule = {
  /** Names the policy in `RateLimit-Policy`, and the counters in the store. */
  readonly name: string;
  /** 0: without a limit. */
  readonly attempts: number;
  readonly windowSeconds: number;
};

export function loginRule({
  loginAttempts,
  loginWindowSeconds,
}: Pick<Services['settings'], 'loginAttempts' | 'loginWindowSeconds'>): AttemptRule {
  return { name: 'login', attempts: loginAttempts, windowSeconds: loginWindowSeconds };
}

export function createAttemptLimit(services: Services, rule: AttemptRule): AttemptLimit {
  return rule.attempts === 0 ? { begin: async () => unlimited } : new GatedLimit(services, rule);
}

const unlimited: Attempt = { ok: true, succeeded: async () => undefined, failed: () => undefined };

class GatedLimit implements AttemptLimit {
  readonly #store: Services['store'];
  readonly #clock: Services['clock'];
  readonly #rule: AttemptRule;
  readonly #windowMs: number;
  readonly #gates = new Map<string, Gate>();

  constructor({ store, clock }: Pick<Services, 'store' | 'clock'>, rule: AttemptRule) {
    this.#store = store;
    this.#clock = clock;
    this.#rule = rule;
    this.#windowMs = rule.windowSeconds * 1000;
  }

  async begin(account: string, address: string): Promise<Attempt> {
    // Always in this order, so that two attempts never deadlock.
    const names = [`account ${account}`, `address ${address}`];
    const releases: (() => void)[] = [];
    try {
      for (const name of names) releases.push(await this.#gateOf(name).hold());
      return await this.#admit(names);
    } finally {
      for (const release of releases) release();
      this.#forgetIdle(names);
    }
  }

  async #admit(names: readonly string[]): Promise<Attempt> {
    for (;;) {
      const at = this.#clock();
      const pendingBefore = names.map((name) => this.#gateOf(name).pending);
      const exhausted = await this.#count(names, at);
      if (exhausted.length === 0) return this.#admitted(names, at);
      if (exhausted.some(({ name }) => pendingBefore[names.indexOf(name)] === 0)) {
        return this.#refuse(exhausted);
      }
      // An attempt settled meanwhile may have made room.
      if (names.some((name, index) => this.#gateOf(name).pending !== pendingBefore[index])) continue;
      await Promise.race(exhausted.map(({ name }) => this.#gateOf(name).nextSettled()));
    }
  }

  /** Counts the attempt; if a name has no room, gives it back and returns those names. */
  async #count(names: readonly string[], at: number): Promise<readonly Exhausted[]> {
    const totals = await this.#store.tally([
      ...names.flatMap((name) => this.#tallies(name, at)),
      ...names.map((name) => this.#partTally(name, at, 1)),
    ]);
    const exhausted: Exhausted[] = [];
    for (const [index, name] of names.entries()) {
      const own = totals.slice(index * stepsCounted, (index + 1) * stepsCounted);
      // Without the count added just now. A counter that expired and was then given back to is below zero.
      const counts = own.map((total, step) => Math.max(0, step === own.length - 1 ? total - 1 : total));
      const leaving = nextLeaving(this.#rule.attempts, counts);
      const waitMs = leaving === undefined ? 0 : await this.#untilLeft(name, leaving, at);
      if (waitMs > 0) exhausted.push({ name, waitMs });
    }
    if (exhausted.length > 0) await this.#giveBack(names, at);
    return exhausted;
  }

  /** Returns the milliseconds until the attempt leaves the window; 0 or less if it has. */
  async #untilLeft(name: string, { index, ordinal }: Leaving, at: number): Promise<number> {
    const windowMs = this.#windowMs;
    const step = this.#stepAt(at) - (stepsCounted - 1 - index);
    const begin = step * stepMs(windowMs);
    const parts = Array.from({ length: partsOfStep }, (_, part) => begin + part * partMs(windowMs));
    const counts = await this.#store.tally(parts.map((from) => this.#partTally(name, from, 0)));
    return begin + findPart(ordinal, counts) * partMs(windowMs) + windowMs - this.#clock();
  }

  #admitted(names: readonly string[], at: number): Attempt {
    for (const name of names) this.#gateOf(name).pending += 1;
    const settle = () => {
      for (const name of names) this.#gateOf(name).settle();
      this.#forgetIdle(names);
    };
    return {
      ok: true,
      succeeded: async () => {
        await this.#giveBack(names, at);
        settle();
      },
      failed: settle,
    };
  }

  async #refuse(exhausted: readonly Exhausted[]): Promise<Attempt> {
    const window = Math.floor(this.#clock() / this.#windowMs);
    const expiresAt = (window + 1) * this.#windowMs;
    const refusals = exhausted.map(({ name }) => ({
      key: `${this.#rule.name} refused ${window} ${name}`,
      add: 1,
      expiresAt,
    }));
    const totals = await this.#store.tally(refusals);
    const waitMs = Math.max(...exhausted.map((one) => one.waitMs));
    const allowance = exceeded(this.#rule, waitMs);
    return { ok: false, allowance, first: totals.some((total) => total === 1) };
  }

  /** A failure to give back costs one attempt for the rest of the window; the login need not fail. */
  async #giveBack(names: readonly string[], at: number): Promise<void> {
    try {
      const step = this.#stepAt(at);
      const tallies = names.flatMap((name) => [
        this.#stepTally(name, step, -1),
        this.#partTally(name, at, -1),
      ]);
      await this.#store.tally(tallies);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  #stepAt(at: number): number {
    return Math.floor(at / stepMs(this.#windowMs));
  }

  #tallies(name: string, at: number): readonly Tally[] {
    return Array.from({ length: stepsCounted }, (_, index) => {
      const age = stepsCounted - 1 - index;
      return this.#stepTally(name, this.#stepAt(at) - age, age === 0 ? 1 : 0);
    });
  }

  #stepTally(name: string, step: number, add: number): Tally {
    return { key: `${this.#rule.name} ${step} ${name}`, add, expiresAt: this.#expiryOf(step) };
  }

  #partTally(name: string, at: number, add: number): Tally {
    const step = this.#stepAt(at);
    const part = Math.floor((at - step * stepMs(this.#windowMs)) / partMs(this.#windowMs));
    return { key: `${this.#rule.name} ${step}.${part} ${name}`, add, expiresAt: this.#expiryOf(step) };
  }

  #expiryOf(step: number): number {
    return (step + stepsCounted + 1) * stepMs(this.#windowMs);
  }

  #gateOf(name: string): Gate {
    const gate = this.#gates.get(name) ?? new Gate();
    this.#gates.set(name, gate);
    return gate;
  }

  #forgetIdle(names: readonly string[]): void {
    for (const name of names) if (this.#gates.get(name)?.isIdle) this.#gates.delete(name);
  }
}

/**
 * Orders the attempts of one process on the same account or from the same address. A gate is `free`, or `held` by the attempt that is
 * being counted, with others queued. Admitted attempts are `pending` until they are settled. A gate that is free and has no pending
 * attempts is dropped.
 */
class Gate {
  pending = 0;
  #queued = 0;
  #tail: Promise<void> = Promise.resolve();
  readonly #settled: (() => void)[] = [];

  get isIdle(): boolean {
    return this.pending === 0 && this.#queued === 0;
  }

  /** Resolves with a function that releases the gate, once all earlier holders have released it. */
  async hold(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#tail;
    this.#tail = promise;
    this.#queued += 1;
    await before;
    return () => {
      this.#queued -= 1;
      resolve();
    };
  }

  settle(): void {
    this.pending -= 1;
    for (const tell of this.#settled.splice(0)) tell();
  }

  /** Resolves when one more pending attempt is settled. */
  nextSettled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settled.push(resolve);
    });
  }
}

function exceeded({ name, attempts, windowSeconds }: AttemptRule, waitMs: number): Allowance {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return {
    exceeded: true,
    policy: `"${name}";q=${attempts};w=${windowSeconds}`,
    rate: `"${name}";r=0;t=${retryAfterSeconds}`,
    remaining: '0',
    retryAfterSeconds,
  };
}

/**
 * Steps of one window (§8: 5 attempts in 15 minutes). Attempts are counted by steps, which show quickly whether there is room, and
 * again by sixtieths of a step, which show when the next attempt leaves the window. So an attempt counts for the window less at most a
 * 900th of it, and never longer. Requests, which are more frequent, are counted more coarsely (docs/decisions/0019).
 */
const steps = 15;

/** Steps that a window can touch: one more than fit in it. */
const stepsCounted = steps + 1;

const partsOfStep = 60;

function stepMs(windowMs: number): number {
  return Math.max(1, Math.ceil(windowMs / steps));
}

function partMs(windowMs: number): number {
  return Math.max(1, Math.ceil(stepMs(windowMs) / partsOfStep));
}

/** The attempt that must leave the window to make room for one more: the `ordinal`th, from 1, of a step. */
type Leaving = { readonly index: number; readonly ordinal: number };

/** Returns undefined if there is room. @param counts of the steps up to the present one, the oldest first */
function nextLeaving(attempts: number, counts: readonly number[]): Leaving | undefined {
  const counted = counts.reduce((sum, count) => sum + count, 0);
  let ordinal = counted - attempts + 1;
  if (ordinal <= 0) return undefined;
  for (const [index, count] of counts.entries()) {
    if (ordinal <= count) return { index, ordinal };
    ordinal -= count;
  }
  return { index: counts.length - 1, ordinal: 1 };
}

/** Returns the part of the step in which the `ordinal`th attempt was counted; the last part if they hold fewer. */
function findPart(ordinal: number, counts: readonly number[]): number {
  let left = ordinal;
  for (const [part, count] of counts.entries()) {
    left -= Math.max(0, count);
    if (left <= 0) return part;
  }
  return counts.length - 1;
}
