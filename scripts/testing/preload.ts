/** Loaded before any test: shows, with a test that fails, the last exchanges that it had with a running server. */
import { subscribe } from 'node:diagnostics_channel';
import type { TestContext } from 'node:test';
import { isMainThread } from 'node:worker_threads';

const shownExchanges = 3;
const exchanges: string[] = [];

subscribe('comity:exchange', (text) => {
  exchanges.push(String(text));
  if (exchanges.length > shownExchanges) exchanges.shift();
});

// Threads of the program load this too; node:test would take over their uncaught errors, and takes 20 ms of processor time to load.
if (isMainThread) (await import('node:test')).afterEach(showExchanges);

function showExchanges(context: unknown): void {
  const last = exchanges.splice(0).join('\n\n');
  // The hook of a suite has a context without the outcome of a test.
  const { passed } = context as Partial<TestContext>;
  if (passed === false && last !== '') (context as TestContext).diagnostic(`the last exchanges:\n${last}`);
}
