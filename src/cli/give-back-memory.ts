/** The end of a start: returns what only the start needed. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** After the start, when the reader of the ready line has been served. */
const afterMs = 1000;

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => Promise<void>;

/**
 * Frees the memory of the start. Loading modules and compiling schemas leaves some 18 MB of garbage in pages that V8
 * keeps until the heap is under pressure, which an idle program never is; one full collection soon after the start
 * returns them. It takes about 80 ms, once. The timer does not keep the process alive.
 */
export function giveBackMemorySoon(): void {
  const timer = setTimeout(() => {
    // Absent in a program that another one starts without exposing it.
    const collect = runInNewContext(`typeof gc === 'function' ? gc : undefined`) as Collect | undefined;
    void collect?.({ type: 'major', execution: 'async', flavor: 'last-resort' });
  }, afterMs);
  timer.unref();
}

/** To be called before workers start: the flag is that of the process, so threads that set and reset it would disturb each other. */
export function exposeCollector(): void {
  setFlagsFromString('--expose-gc');
}
