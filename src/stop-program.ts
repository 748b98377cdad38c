/** Ends the program: what still comes in is refused, what is under way may finish, and what others rest on closes last. */
import type { Features } from './all-resources.ts';
import type { Settings } from './config/settings.ts';
import type { Scheduler } from './jobs/scheduler.ts';
import type { Operations } from './kernel/operations/operations.ts';
import type { LoopWatch } from './observe/event-loop.ts';
import type { Listener } from './server/listener.ts';

type Stoppable = { readonly settings: Settings } & Features & {
    /** Readiness is negative from then on. */
    readonly drain: () => void;
    readonly listener: Listener;
    readonly operations: Operations;
    readonly jobs: Scheduler;
    readonly documents: { stop(): Promise<void> };
    readonly rates: { close(): Promise<void> };
    readonly stopRetention: () => Promise<void>;
    readonly loop: LoopWatch;
  };

/** Stops in order of dependence: requests first, then the work that they started, the store last. */
export function stopOf(parts: Stoppable): (reason: string) => Promise<void> {
  const { observe, operations, webhooks, received, mails } = parts;
  const { drainMs } = parts.settings;
  return async (reason) => {
    const startedAt = performance.now();
    const leftMs = (): number => Math.max(0, drainMs - (performance.now() - startedAt));
    observe({ kind: 'draining', reason });
    parts.drain();
    await parts.jobs.close();
    await parts.documents.stop();
    await parts.listener.drain(drainMs);
    // Accepted requests (202) may still emit events; attempts under way end in parallel.
    const working = [operations, webhooks, received, mails];
    await Promise.all(working.map((each) => each.drain(leftMs())));
    await received.close();
    await mails.close();
    await webhooks.close();
    await parts.accounts.close();
    parts.loop.close();
    await parts.contentThreads.close();
    await parts.stopRetention();
    await parts.rates.close();
    await parts.store.close();
    observe({ kind: 'stopped', drainedMs: performance.now() - startedAt });
  };
}
