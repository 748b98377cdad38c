/**
 * Wires what an application's functions need: transactions over its collections, and the hooks of their writes. Both
 * exist when the collections are served, which is before any function runs; what needs them is wired earlier.
 */
import type { Serving, WriteLogic } from '../resources/collection/served-collection.ts';
import type { Services } from '../store/capabilities.ts';
import { createRunHooks } from './hooks/before-write.ts';
import type { OpenTransaction } from './transaction/resource-call.ts';
import { createOpenTransaction, type FunctionReach } from './transaction/transaction.ts';
import { RequestLogic } from './transaction/unit-logic.ts';

export type ApplicationLogic = {
  /** For the functions of requests, and for those on threads. */
  readonly open: OpenTransaction;
  /** For the writes of requests to collections with hooks. Called once, when the collections are served. */
  readonly writesOf: (serving: Serving) => WriteLogic;
};

export function createLogic(
  { clock, settings, observe, tracing }: Pick<Services, 'clock' | 'settings' | 'observe' | 'tracing'>,
  reach: FunctionReach,
): ApplicationLogic {
  const run = createRunHooks(clock, settings, tracing);
  const onFailed = (error: Error): void => observe({ kind: 'nested-hook-failed', error });
  let opened: OpenTransaction | undefined;
  const open: OpenTransaction = (caller, cause, how) => {
    if (opened === undefined) throw new Error('functions require the collections to be served');
    return opened(caller, cause, how);
  };
  return {
    open,
    writesOf(serving) {
      opened = createOpenTransaction(serving, reach, { run, onFailed });
      return new RequestLogic(open, run, onFailed);
    },
  };
}
