/**
 * Work that always does all there is to do, asked for from everywhere. It runs once at a time, and whoever asks while it runs gets
 * the run after it, together with all others that ask until that begins.
 */
export type OneAtATime = {
  (): Promise<void>;
  /** Resolves when nothing runs and nothing is waited for, however it ended. */
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
    next ??= running.then(begin, begin);
    return next;
  }

  /** In the turn in which the run before ended, so that nothing comes in between. */
  function begin(): Promise<void> {
    next = undefined;
    return start();
  }

  return Object.assign(ask, {
    async idle() {
      while (running !== undefined || next !== undefined) await (next ?? running)?.catch(() => undefined);
    },
  });
}
