/**
 * Follows the store: work that handles everything new, after each change, at intervals, and again a second after a failure. One run at a
 * time, and one more for all changes during it.
 */

export type Follower = {
  /** Works now, also when closed: a commit under way may need it. A call during a run shares the next one. Rejects as the work does. */
  run(): Promise<void>;
  /** Works in the background. */
  soon(): void;
  /** The same after a pause; the earliest of several pauses counts. */
  later(ms: number): void;
  /** @param signals register a listener with the store, and return a function that removes it */
  follow(...signals: readonly Signal[]): void;
  /** Stops, and waits for the run under way. */
  close(): Promise<void>;
};

export type Signal = (listener: () => void) => () => void;

const againMs = 1000;

/**
 * @param onFailed receives the error of a run that has no caller
 * @param everyMs interval of runs without a change, from the first `follow` on; absent: none
 */
export function createFollower(
  work: () => Promise<void>,
  onFailed: (error: unknown) => void,
  everyMs?: number,
): Follower {
  const stops: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  let interval: NodeJS.Timeout | undefined;
  /** On the clock of `performance.now()`. */
  let timerAt = Number.POSITIVE_INFINITY;
  let isFollowing = false;
  let isClosed = false;
  const run = oneAtATime(async () => {
    try {
      await work();
    } catch (error) {
      // Before it follows anything, the caller decides.
      if (isFollowing) later(againMs);
      throw error;
    }
  });

  function soon(): void {
    if (isClosed) return;
    run().catch((error: unknown) => {
      if (!isClosed) onFailed(error);
    });
  }

  function later(ms: number): void {
    const at = performance.now() + ms;
    if (isClosed || at >= timerAt) return;
    clearTimeout(timer);
    timerAt = at;
    timer = setTimeout(() => {
      timerAt = Number.POSITIVE_INFINITY;
      soon();
    }, ms).unref();
  }

  return {
    run,
    soon,
    later,
    follow(...signals) {
      if (!isFollowing && everyMs !== undefined) interval = setInterval(soon, everyMs).unref();
      isFollowing = true;
      for (const subscribe of signals) stops.push(subscribe(soon));
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      clearInterval(interval);
      for (const stop of stops) stop();
      await run.idle();
    },
  };
}

/** Runs work that handles everything pending, one run at a time; all calls during a run share the next one. */
type OneAtATime = {
  (): Promise<void>;
  /** Resolves when no run is active or pending, whatever their outcome. */
  idle(): Promise<void>;
};

export function oneAtATime(work: () => Promise<void>): OneAtATime {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function start(): Promise<void> {
    const run = work().finally(() => {
      if (running === run) running = undefined;
    });
    running = run;
    return run;
  }

  function ask(): Promise<void> {
    if (running === undefined) return start();
    next ??= running.then(runNext, runNext);
    return next;
  }

  /** Runs in the same turn as the end of the run before, so that nothing comes in between. */
  function runNext(): Promise<void> {
    next = undefined;
    return start();
  }

  return Object.assign(ask, {
    async idle() {
      while (running !== undefined || next !== undefined) await (next ?? running)?.catch(() => undefined);
    },
  });
}
