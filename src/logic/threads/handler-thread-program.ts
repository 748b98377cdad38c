/**
 * The program of a handler thread: imports the configuration again, and runs many messages concurrently. An uncaught
 * error is attributed to its run by the asynchronous context in which it was thrown.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { readlinkSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, resourceLimits, workerData } from 'node:worker_threads';
import type { SubscriberDeclaration } from '../../config/inspect-functions.ts';
import type { JobDeclaration } from '../../config/jobs.ts';
import type { Handler, Verify } from '../../config/senders.ts';
import { messagePartOctets } from '../../memory/work-rules.ts';
import { type FileFields, fileFieldsOf } from '../../model/file.ts';
import type { Resources } from '../../model/logic/collection-calls.ts';
import type { Logic } from '../../model/logic/logic.ts';
import type { Opened } from '../transaction/calls.ts';
import { eventHandling, jobRun, judge, receivedMessage, ThreadCalls } from './handler-arguments.ts';
import {
  type FromThread,
  type Given,
  type RunMessage,
  runBegun,
  runWaits,
  type ThreadData,
  type ThreadFailure,
  type ToThread,
} from './handler-protocol.ts';

type ActiveRun = {
  readonly number: number;
  readonly calls: ThreadCalls;
  readonly abort: () => AbortController;
  /** Its end was reported: later results are ignored. */
  isOver: boolean;
};

const { module, current } = workerData as ThreadData;
const heapOctetsMax = (resourceLimits.maxOldGenerationSizeMb ?? Number.POSITIVE_INFINITY) * 1024 * 1024;
const context = new AsyncLocalStorage<ActiveRun>();

function post(message: FromThread): void {
  parentPort?.postMessage(message);
}

/** The functions of the configuration, by what declares them. */
type Functions = {
  readonly call: (
    given: Given,
    logic: Logic & { readonly signal: AbortSignal },
    opened: Opened,
  ) => void | Promise<void>;
  /** The fields of a collection that hold files. */
  readonly filesOf: (collection: string) => FileFields | undefined;
};

async function load(): Promise<Functions> {
  yieldToOthers();
  const imported = (await import(module)) as { default?: Declared };
  const { senders = {}, subscribers = {}, jobs = {}, collections = {} } = imported.default ?? {};
  const files = new Map(
    Object.entries(collections).map(([name, { schema }]) => [name, fileFieldsOf(schema)]),
  );
  const call: Functions['call'] = (given, logic, opened) => {
    if (given.kind === 'message') {
      const { message } = given;
      const handler = senders[message.sender]?.handler;
      if (handler === undefined) throw new Error(`the configuration has no handler for ${message.sender}`);
      return handler({ ...logic, message: receivedMessage(message, heapOctetsMax) });
    }
    if (given.kind === 'verify') return judge(senders[given.of], given);
    const { kind, of, attempt } = given;
    const declared = kind === 'subscriber' ? subscribers[of] : jobs[of];
    if (declared === undefined) throw new Error(`the configuration has no ${kind} ${of}`);
    // Called as members, so that `this` is the declaration, as in the file.
    if ('handler' in declared)
      return declared.handler({ ...logic, ...eventHandling(given.body, opened), attempt });
    return declared.run({ ...logic, ...jobRun(given.body), attempt });
  };
  return { call, filesOf: (name) => files.get(name) };
}

type Declared = {
  readonly collections?: Readonly<Record<string, { readonly schema: { readonly properties?: unknown } }>>;
  readonly senders?: Readonly<Record<string, { readonly handler?: Handler; readonly verify?: Verify }>>;
  readonly subscribers?: Readonly<Record<string, Pick<SubscriberDeclaration<Resources>, 'handler'>>>;
  readonly jobs?: Readonly<Record<string, Pick<JobDeclaration<Resources>, 'run'>>>;
};

function serve(functions: Functions): void {
  const runs = new Map<number, ActiveRun>();

  function begin({ run: number, state, given, now }: RunMessage): void {
    if (Atomics.compareExchange(state, 0, runWaits, runBegun) !== runWaits) return;
    post({ kind: 'begun', run: number });
    let controller: AbortController | undefined;
    const abort = () => {
      controller ??= new AbortController();
      return controller;
    };
    const run: ActiveRun = {
      number,
      calls: new ThreadCalls(number, post, functions.filesOf),
      abort,
      isOver: false,
    };
    runs.set(number, run);
    Atomics.store(current, 0, number);
    void context.run(run, perform, run, given, now);
  }

  async function perform(run: ActiveRun, given: Given, now: number): Promise<void> {
    try {
      const logic = {
        ...run.calls.given,
        now: new Date(now),
        get signal() {
          return run.abort().signal;
        },
      };
      await functions.call(given, logic, run.calls.opened);
      await run.calls.settled();
      end(run, { kind: 'done', run: run.number });
    } catch (error) {
      fail(run, error);
    }
    runs.delete(run.number);
    // Later, when no frame holds the content.
    if (isLong(given) && runs.size === 0) setImmediate(collectGarbage);
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
      run.abort().abort(new DOMException('the time for this message is over', 'TimeoutError'));
      return;
    }
    Atomics.store(current, 0, run.number);
    if (message.kind === 'result') run.calls.result(message.seq, message.result);
    else run.calls.refused(message.seq, message.refusal);
  }

  parentPort?.on('message', take);
}

function isLong(given: Given): boolean {
  const { body } = given.kind === 'message' ? given.message : given;
  return body.length > messagePartOctets;
}

/** A thread without work collects nothing: it would keep twice the content of the last long messages for as long as it waits. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  collect();
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

/** Handles an uncaught error. Without a run, the state of the thread is unknown, so it exits. */
function escaped(error: unknown): void {
  const run = context.getStore();
  if (run !== undefined) {
    fail(run, error);
    return;
  }
  post({ kind: 'ending', run: undefined, reason: 'uncaught', message: failureOf(error, module).message });
  process.exit(1);
}

/**
 * `process.exit` ends only this thread, and `process.abort` is not available in it; a signal would end the whole
 * program.
 */
function keepProgramAlive(): void {
  const kill = process.kill.bind(process);
  process.kill = (pid, signal) => {
    const isProgram = pid === process.pid || pid <= 0;
    if (isProgram && signal !== 0) throw new Error('a handler cannot send a signal to the program');
    return kill(pid, signal);
  };
}

/*
 * The error of a handler. For the log of attempts: the first line, and the location in the user's own file. For the log
 * of the program the frames of its stack too, which hold no text of the error.
 */

const characters = 500;
const framesCharacters = 2000;
const frame = /^ {4}at /;

/** Recognises errors by name: a handler may have imported another copy of this package. */
function failureOf(error: unknown, module: string): ThreadFailure {
  if (!(error instanceof Error)) {
    const message = String(error).slice(0, characters);
    return { error: 'thrown', message, permanent: false, frames: undefined };
  }
  const [line = ''] = error.message.split('\n', 1);
  const frames = framesOf(error);
  if (error.name === 'UnprocessableMessage') {
    return { error: 'unprocessable', message: line.slice(0, characters), permanent: true, frames };
  }
  if (error.name === 'ResourceRefused' && 'code' in error) {
    const message = `${String(error.code)}: ${line}`.slice(0, characters);
    return { error: 'refused', message, permanent: false, frames };
  }
  const place = placeOf(error, module);
  const summary = `${error.name}: ${line}`;
  const message =
    place === undefined ? summary : `${summary.slice(0, characters - place.length - 3)} (${place})`;
  return { error: 'thrown', message: message.slice(0, characters), permanent: false, frames };
}

function framesOf({ stack }: Error): string | undefined {
  const frames = String(stack)
    .split('\n')
    .filter((line) => frame.test(line));
  return frames.length === 0 ? undefined : frames.join('\n').slice(0, framesCharacters);
}

/** `comity.config.ts:12:5`: the first frame in the folder of the configuration, outside of packages. */
function placeOf({ stack = '' }: Error, module: string): string | undefined {
  if (!URL.canParse('.', module)) return undefined;
  const folder = new URL('.', module).href;
  for (const frame of stack.split('\n')) {
    const start = frame.indexOf(folder);
    if (start < 0 || frame.includes('/node_modules/')) continue;
    const end = frame.endsWith(')') ? frame.length - 1 : frame.length;
    return frame.slice(start + folder.length, end);
  }
  return undefined;
}

/**
 * Lowers the priority of this thread, so that a looping handler takes no time from threads that serve requests: on one
 * shared processor, the 99th percentile of an acknowledgement was 50 ms without it (docs/performance.md). Linux only;
 * elsewhere the priority would be that of the whole program.
 */
function yieldToOthers(): void {
  if (process.platform !== 'linux') return;
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    if (thread !== process.pid) setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Not permitted: handlers run at normal priority.
  }
}

/* The start comes last, so that everything above is initialised before the first message. */

try {
  keepProgramAlive();
  const functions = await load();
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
      message: 'the handler called process.exit, which ended its thread',
    });
  });
  serve(functions);
  post({ kind: 'ready' });
} catch (error) {
  post({ kind: 'unusable', message: failureOf(error, module).message });
}
