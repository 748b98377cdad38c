/**
 * Failed logins (§8): so many in a window of time, for each account and for each address on its own, counted together by all processes.
 * An attempt is counted before the password is looked at, so that many at once get no further than one after the other, and given
 * back when it succeeds. A refused attempt is not counted: the time in Retry-After does not move away from who keeps trying.
 *
 * Attempts that are counted and not yet settled may be good ones. While any of this process are pending, one that finds no room waits for
 * them instead of being refused: people behind one address do not lock each other out by logging in at the same moment.
 */
import type { Allowance } from '../http/allowance.ts';
import { type Store, StoreUnavailable, type Tally } from '../store/store.ts';
import { LoginGate } from './login-gate.ts';
import {
  type Leaving,
  nextLeaving,
  partMs,
  partOf,
  partsOfStep,
  stepMs,
  stepsCounted,
} from './login-window.ts';

export type LoginAttempt =
  | {
      readonly ok: true;
      /** Gives the attempt back: the password was right, or was never judged. */
      succeeded(): Promise<void>;
      /** Leaves it counted. One of both must be called. */
      failed(): void;
    }
  /** `first`: of this account or this address in the window, which is worth a note. */
  | { readonly ok: false; readonly allowance: Allowance; readonly first: boolean };

export type LoginLimit = {
  /**
   * @param account a digest of what names the account, whether or not there is one
   * @param address as limits count it
   * @throws StoreUnavailable
   */
  begin(account: string, address: string): Promise<LoginAttempt>;
};

export type LoginLimitOptions = {
  readonly store: Pick<Store, 'tally'>;
  /** Failed attempts in a window; 0 sets no limit. */
  readonly attempts: number;
  readonly windowSeconds: number;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
};

type Exhausted = { readonly name: string; readonly waitMs: number };

export function createLoginLimit(options: LoginLimitOptions): LoginLimit {
  return options.attempts === 0 ? { begin: async () => unlimited } : new GatedLimit(options);
}

const unlimited: LoginAttempt = { ok: true, succeeded: async () => undefined, failed: () => undefined };

class GatedLimit implements LoginLimit {
  readonly #options: LoginLimitOptions;
  readonly #windowMs: number;
  readonly #gates = new Map<string, LoginGate>();

  constructor(options: LoginLimitOptions) {
    this.#options = options;
    this.#windowMs = options.windowSeconds * 1000;
  }

  async begin(account: string, address: string): Promise<LoginAttempt> {
    // Always in this order, so that no two attempts wait for each other.
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

  async #admit(names: readonly string[]): Promise<LoginAttempt> {
    for (;;) {
      const at = this.#options.clock();
      const pendingBefore = names.map((name) => this.#gateOf(name).pending);
      const exhausted = await this.#count(names, at);
      if (exhausted.length === 0) return this.#admitted(names, at);
      if (exhausted.some(({ name }) => pendingBefore[names.indexOf(name)] === 0)) {
        return this.#refuse(exhausted);
      }
      // What was settled while the store was asked made room already, perhaps.
      if (names.some((name, index) => this.#gateOf(name).pending !== pendingBefore[index])) continue;
      await Promise.race(exhausted.map(({ name }) => this.#gateOf(name).nextSettled()));
    }
  }

  /** Counts the attempt, and gives it back where one of the names has no room; those are told. */
  async #count(names: readonly string[], at: number): Promise<readonly Exhausted[]> {
    const { store, attempts } = this.#options;
    const totals = await store.tally([
      ...names.flatMap((name) => this.#tallies(name, at)),
      ...names.map((name) => this.#partTally(name, at, 1)),
    ]);
    const exhausted: Exhausted[] = [];
    for (const [index, name] of names.entries()) {
      const own = totals.slice(index * stepsCounted, (index + 1) * stepsCounted);
      // Without what was added just now. A counter that was forgotten and then given back to stands below nothing.
      const counts = own.map((total, step) => Math.max(0, step === own.length - 1 ? total - 1 : total));
      const leaving = nextLeaving(attempts, counts);
      const waitMs = leaving === undefined ? 0 : await this.#untilLeft(name, leaving, at);
      if (waitMs > 0) exhausted.push({ name, waitMs });
    }
    if (exhausted.length > 0) await this.#giveBack(names, at);
    return exhausted;
  }

  /** Milliseconds until the attempt has left the window; 0 or less: it has. */
  async #untilLeft(name: string, { index, ordinal }: Leaving, at: number): Promise<number> {
    const { store, clock } = this.#options;
    const windowMs = this.#windowMs;
    const step = this.#stepAt(at) - (stepsCounted - 1 - index);
    const begin = step * stepMs(windowMs);
    const parts = Array.from({ length: partsOfStep }, (_, part) => begin + part * partMs(windowMs));
    const counts = await store.tally(parts.map((from) => this.#partTally(name, from, 0)));
    return begin + partOf(ordinal, counts) * partMs(windowMs) + windowMs - clock();
  }

  #admitted(names: readonly string[], at: number): LoginAttempt {
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

  async #refuse(exhausted: readonly Exhausted[]): Promise<LoginAttempt> {
    const { store, attempts, windowSeconds, clock } = this.#options;
    const window = Math.floor(clock() / this.#windowMs);
    const expiresAt = (window + 1) * this.#windowMs;
    const refusals = exhausted.map(({ name }) => ({
      key: `login refused ${window} ${name}`,
      add: 1,
      expiresAt,
    }));
    const totals = await store.tally(refusals);
    const waitMs = Math.max(...exhausted.map((one) => one.waitMs));
    const allowance = exceeded(attempts, windowSeconds, waitMs);
    return { ok: false, allowance, first: totals.some((total) => total === 1) };
  }

  /** A count that could not be given back is one attempt less for the rest of the window, and no reason to fail. */
  async #giveBack(names: readonly string[], at: number): Promise<void> {
    try {
      const step = this.#stepAt(at);
      const tallies = names.flatMap((name) => [
        this.#stepTally(name, step, -1),
        this.#partTally(name, at, -1),
      ]);
      await this.#options.store.tally(tallies);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  #stepAt(at: number): number {
    return Math.floor(at / stepMs(this.#windowMs));
  }

  /** Of every step that counts, the oldest first; the attempt is added to the last. */
  #tallies(name: string, at: number): readonly Tally[] {
    return Array.from({ length: stepsCounted }, (_, index) => {
      const age = stepsCounted - 1 - index;
      return this.#stepTally(name, this.#stepAt(at) - age, age === 0 ? 1 : 0);
    });
  }

  #stepTally(name: string, step: number, add: number): Tally {
    return { key: `login ${step} ${name}`, add, expiresAt: this.#expiryOf(step) };
  }

  #partTally(name: string, at: number, add: number): Tally {
    const step = this.#stepAt(at);
    const part = Math.floor((at - step * stepMs(this.#windowMs)) / partMs(this.#windowMs));
    return { key: `login ${step}.${part} ${name}`, add, expiresAt: this.#expiryOf(step) };
  }

  /** When no attempt of the step counts any more. */
  #expiryOf(step: number): number {
    return (step + stepsCounted + 1) * stepMs(this.#windowMs);
  }

  #gateOf(name: string): LoginGate {
    const gate = this.#gates.get(name) ?? new LoginGate();
    this.#gates.set(name, gate);
    return gate;
  }

  #forgetIdle(names: readonly string[]): void {
    for (const name of names) if (this.#gates.get(name)?.isIdle) this.#gates.delete(name);
  }
}

function exceeded(attempts: number, windowSeconds: number, waitMs: number): Allowance {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return {
    exceeded: true,
    policy: `"login";q=${attempts};w=${windowSeconds}`,
    rate: `"login";r=0;t=${retryAfterSeconds}`,
    remaining: '0',
    retryAfterSeconds,
  };
}
