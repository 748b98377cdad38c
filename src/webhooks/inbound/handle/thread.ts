/**
 * The thread of handlers: imports the configuration once more, and runs many messages at once. What a handler throws where nobody catches it is
 * told of the run it belongs to, by the asynchronous context that it was thrown in.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import type { Handler } from '../../../config/handler.ts';
import { useTypeboxBundle } from '../../../typebox-bundle.ts';
import { failureOf } from './failure-of.ts';
import {
  type FromThread,
  type RunMessage,
  runBegun,
  runWaits,
  type ThreadData,
  type ToThread,
} from './protocol.ts';
import { receivedMessage } from './received-message.ts';
import { ThreadCalls } from './thread-calls.ts';
import { yieldToOthers } from './yield-to-others.ts';

type ActiveRun = {
  readonly number: number;
  readonly calls: ThreadCalls;
  readonly abort: () => AbortController;
  /** Said to be over: what it does now nobody waits for. */
  isOver: boolean;
};

const { module, current } = workerData as ThreadData;
const context = new AsyncLocalStorage<ActiveRun>();

function post(message: FromThread): void {
  parentPort?.postMessage(message);
}

async function load(): Promise<ReadonlyMap<string, Handler>> {
  yieldToOthers();
  useTypeboxBundle();
  const imported = (await import(module)) as {
    default?: { senders?: Record<string, { handler?: Handler }> };
  };
  const handlers = new Map<string, Handler>();
  for (const [name, { handler }] of Object.entries(imported.default?.senders ?? {})) {
    if (typeof handler === 'function') handlers.set(name, handler);
  }
  return handlers;
}

function serve(handlers: ReadonlyMap<string, Handler>): void {
  const runs = new Map<number, ActiveRun>();

  function begin({ run: number, state, message }: RunMessage): void {
    if (Atomics.compareExchange(state, 0, runWaits, runBegun) !== runWaits) return;
    post({ kind: 'begun', run: number });
    let controller: AbortController | undefined;
    const abort = () => {
      controller ??= new AbortController();
      return controller;
    };
    const run: ActiveRun = { number, calls: new ThreadCalls(number, post), abort, isOver: false };
    runs.set(number, run);
    Atomics.store(current, 0, number);
    void context.run(run, perform, run, message);
  }

  async function perform(run: ActiveRun, message: RunMessage['message']): Promise<void> {
    try {
      const handler = handlers.get(message.sender);
      if (handler === undefined) throw new Error(`the configuration has no handler for ${message.sender}`);
      await handler(
        receivedMessage(message, () => run.abort().signal),
        run.calls.resources,
      );
      await run.calls.settled();
      end(run, { kind: 'done', run: run.number });
    } catch (error) {
      fail(run, error);
    }
    runs.delete(run.number);
  }

  function take(message: ToThread): void {
    if (message.kind === 'run') begin(message);
    else if (message.kind === 'ping') post({ kind: 'pong' });
    else {
      const run = runs.get(message.run);
      if (run !== undefined) takeOfRun(run, message);
    }
  }

  function takeOfRun(run: ActiveRun, message: Exclude<ToThread, RunMessage | { kind: 'ping' }>): void {
    if (message.kind === 'abort') {
      run.abort().abort(new DOMException('the time is over', 'TimeoutError'));
      return;
    }
    Atomics.store(current, 0, run.number);
    if (message.kind === 'result') run.calls.result(message.seq, message.text);
    else run.calls.refused(message.seq, message.refusal);
  }

  parentPort?.on('message', take);
}

function end(run: ActiveRun, message: FromThread): void {
  if (run.isOver) return;
  run.isOver = true;
  post(message);
  run.calls.end();
}

function fail(run: ActiveRun, error: unknown): void {
  end(run, { kind: 'failed', run: run.number, failure: failureOf(error, module) });
}

/** Without a run that it belongs to, nobody knows what state the thread is in. */
function escaped(error: unknown): void {
  const run = context.getStore();
  if (run !== undefined) {
    fail(run, error);
    return;
  }
  post({ kind: 'ending', run: undefined, reason: 'uncaught', message: failureOf(error, module).message });
  process.exit(1);
}

/** `process.exit` ends this thread alone, and `process.abort` is not there; a signal would end the whole program. */
function keepProgramAlive(): void {
  const kill = process.kill.bind(process);
  process.kill = (pid, signal) => {
    const isProgram = pid === process.pid || pid <= 0;
    if (isProgram && signal !== 0) throw new Error('a handler cannot send a signal to the program');
    return kill(pid, signal);
  };
}

try {
  keepProgramAlive();
  const handlers = await load();
  process.on('unhandledRejection', escaped);
  process.on('uncaughtException', (error) => {
    escaped(error);
    post({ kind: 'spoiled' });
  });
  process.on('exit', () => {
    const run = context.getStore();
    if (run === undefined) return;
    post({
      kind: 'ending',
      run: run.number,
      reason: 'exit',
      message: 'the handler ended its thread by process.exit',
    });
  });
  serve(handlers);
  post({ kind: 'ready' });
} catch (error) {
  post({ kind: 'unusable', message: failureOf(error, module).message });
}
