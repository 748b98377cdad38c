/**
 * Loaded before any test: shows, with a test that fails, the last exchanges that it had with a running server, and informs the runner of
 * an error that nothing caught.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { TestContext } from 'node:test';
import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import type { Report } from './protocol.ts';
import { replaceTracking } from './tracking.ts';

const shownExchanges = 3;
const exchanges: string[] = [];
/** The title of the test under way: those of one process run one after another. */
let underWay: string | undefined;

// Threads of the program load this too; node:test would take over their uncaught errors, and takes 20 ms of processor time to load.
if (isMainThread) {
  replaceTracking();
  const { beforeEach, afterEach } = await import('node:test');
  subscribe('comity:exchange', (text) => {
    exchanges.push(String(text));
    if (exchanges.length > shownExchanges) exchanges.shift();
  });
  beforeEach(({ name }) => {
    underWay = name;
  });
  afterEach(showExchanges);
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, tellUncaught);
}

function showExchanges(context: unknown): void {
  underWay = undefined;
  const last = exchanges.splice(0).join('\n\n');
  // The hook of a suite has a context without the outcome of a test.
  const { passed } = context as Partial<TestContext>;
  if (passed === false && last !== '') (context as TestContext).diagnostic(`the last exchanges:\n${last}`);
}

function tellUncaught(error: unknown): void {
  const when = underWay === undefined ? 'between tests' : `while "${underWay}" ran`;
  const text = `nothing caught an error ${when}:\n${inspect(error, { depth: 6 })}`;
  process.send?.({ kind: 'uncaught', text } satisfies Report);
}
