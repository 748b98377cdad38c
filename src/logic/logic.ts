/**
 * Wires what an application's functions need: transactions over its collections, and the hooks of their writes. Both
 * exist when the collections are served, which is before any function runs; what needs them is wired earlier.
 */
import type { Collection } from '../model/collection.ts';
import type { Observe } from '../observe/observation.ts';
import type { WriteLogic } from '../resources/collection/served.ts';
import type { Serving } from '../resources/collection/serving.ts';
import { createRunHooks, type HookOptions } from './hooks/before-write.ts';
import type { OpenTransaction } from './transaction/resource-call.ts';
import {
  type AccountWrites,
  createOpenTransaction,
  type EmitEvent,
  type KeepMail,
  type TransactionLimits,
} from './transaction/transaction.ts';
import { RequestLogic } from './transaction/unit-logic.ts';

export type LogicOptions = {
  readonly clock: () => number;
  readonly collections: ReadonlyMap<string, Collection>;
  /** Built-in collections that functions may read. */
  readonly readable?: ReadonlyMap<string, Collection>;
  readonly accountWrites?: AccountWrites | undefined;
  readonly emit: EmitEvent;
  readonly keepMail?: KeepMail;
  readonly observe: Observe;
  readonly settings: TransactionLimits & Pick<HookOptions, 'hookTimeoutMs' | 'hookDepthMax'>;
};

export type ApplicationLogic = {
  /** For the functions of requests, and for those on threads. */
  readonly open: OpenTransaction;
  /** For the writes of requests to collections with hooks. Called once, when the collections are served. */
  readonly writesOf: (serving: Serving) => WriteLogic;
};

export function createLogic({ settings, observe, ...options }: LogicOptions): ApplicationLogic {
  const runHooks = createRunHooks({ ...settings, ...options });
  let opened: OpenTransaction | undefined;
  const open: OpenTransaction = (caller, cause, how) => {
    if (opened === undefined) throw new Error('functions require the collections to be served');
    return opened(caller, cause, how);
  };
  return {
    open,
    writesOf(serving) {
      const onHookFailed = (error: Error): void => observe({ kind: 'nested-hook-failed', error });
      const limits = settings;
      opened = createOpenTransaction({ ...options, serving, runHooks, limits, onHookFailed });
      return new RequestLogic(open, runHooks, onHookFailed);
    },
  };
}
