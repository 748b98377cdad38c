/** How the sender waits: a parameter, so that a test can let a week pass in a moment. */

export type Timers = {
  /** Calls back once after the time in milliseconds. Returns the way to forget it. */
  after(delayMs: number, call: () => void): () => void;
};

/** Those of the runtime, which keep no program running that has nothing else to do. */
export const runtimeTimers: Timers = {
  after(delayMs, call) {
    const timer = setTimeout(call, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
