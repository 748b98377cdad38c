/**
 * Gives back what starting took. Loading modules and compiling schemas leaves some 18 MB of garbage in pages that V8 keeps
 * until the heap is under pressure, which an idle program never is; one full collection soon after the start returns them.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** After the ready line, when whoever waited for it has been served. */
const afterMs = 1000;

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => Promise<void>;

/** The timer does not keep the process alive. A collection takes about 80 ms, once. */
export function giveBackMemorySoon(): void {
  const timer = setTimeout(() => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    setFlagsFromString('--no-expose-gc');
    if (typeof collect === 'function') {
      void (collect as Collect)({ type: 'major', execution: 'async', flavor: 'last-resort' });
    }
  }, afterMs);
  timer.unref();
}
