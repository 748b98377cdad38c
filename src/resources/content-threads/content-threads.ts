/**
 * Threads that parse, check and serialize content that is too long for the event loop: a megabyte of JSON takes 100 ms
 * to a second, depending on its structure and the schema. Jobs wait in a queue that is fair by party and bounded in
 * octets. A thread whose job exceeds its time (such as a pattern that backtracks without end) is terminated; the next
 * job starts a new one. Threads start when first needed and take about 20 MB each.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../../config/settings.ts';
import type { ContentLimits } from '../../kernel/content/content-shape.ts';
import type { Collection } from '../../model/collection.ts';
import { FairQueue } from '../../model/fair-queue.ts';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../../store/store.ts';
import { workerFile } from '../../store/worker-file.ts';
import { type PatchLimits, patchLimitsOf } from '../document/json-patch.ts';
import type { Job, Outcome } from './job.ts';

export type ThreadLimits = {
  readonly contentLimits: ContentLimits;
  readonly patchLimits: PatchLimits;
  readonly validationErrorsMax: number;
};

/** The part of a collection that can cross to a thread: everything but its rules, which may be functions. */
type PlainCollection = Pick<
  Collection,
  | 'name'
  | 'schema'
  | 'fields'
  | 'formats'
  | 'textField'
  | 'textBounds'
  | 'tenantField'
  | 'unpatchable'
  | 'takenIds'
  | 'searchFields'
  | 'searchIndex'
  | 'references'
  | 'readOnly'
  | 'hidden'
>;

export type ThreadData = ThreadLimits & { readonly collections: ReadonlyMap<string, PlainCollection> };
export type ThreadRequest = { readonly collection: string; readonly job: Job };
export type ThreadReply = { readonly outcome: Outcome } | { readonly failure: string };

/** The settings of the pool. */
type ThreadSettings = ContentLimits &
  Pick<
    Settings,
    | 'contentThreads'
    | 'contentInlineBytesMax'
    | 'contentQueueBytesMax'
    | 'contentWorkTimeoutMs'
    | 'patchOperationsMax'
    | 'validationErrorsMax'
  >;

export type CollectionThreads = {
  /** Octets of content, and of the stored representation, up to which the event loop does the work itself. */
  readonly inlineBytesMax: number;
  /** @param party the principal or address that the job counts for @throws StoreUnavailable if the queue is full */
  carryOut(job: Job, party: string): Promise<Outcome>;
};

export type ContentThreads = {
  /** Undefined for a collection whose schema holds functions, which cannot cross to a thread. */
  of(collection: Collection): CollectionThreads | undefined;
  close(): Promise<void>;
};

type Waiting = {
  readonly request: ThreadRequest;
  readonly octets: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
};

type Thread = {
  readonly worker: Worker;
  work: { readonly party: string; readonly item: Waiting; readonly timer: NodeJS.Timeout } | undefined;
};

/** For a schema with `uniqueItems`, whose check takes 5 µs an item. */
const inlineBytesWithUniqueItemsMax = 4096;

export function createContentThreads(
  settings: ThreadSettings,
  collections: ReadonlyMap<string, Collection>,
): ContentThreads {
  const plain = new Map<string, PlainCollection>();
  for (const collection of collections.values()) {
    if (isPlain(collection.schema)) plain.set(collection.name, plainCollection(collection));
  }
  const pool = new ContentPool(settings, plain);
  return {
    of(collection) {
      if (!plain.has(collection.name) || collections.get(collection.name) !== collection) return undefined;
      const most = hasCostlyPattern(collection.schema) ? 0 : settings.contentInlineBytesMax;
      const inlineBytesMax = hasUniqueItems(collection.schema)
        ? Math.min(most, inlineBytesWithUniqueItemsMax)
        : most;
      return {
        inlineBytesMax,
        carryOut: (job, party) => pool.carryOut({ collection: collection.name, job }, party),
      };
    },
    close: () => pool.close(),
  };
}

class ContentPool {
  readonly #timeoutMs: number;
  readonly #data: ThreadData;
  readonly #threadsMax: number;
  readonly #threads: Thread[] = [];
  readonly #waiting: FairQueue<Waiting>;
  #closed = false;

  constructor(settings: ThreadSettings, collections: ReadonlyMap<string, PlainCollection>) {
    const { validationErrorsMax, contentThreads } = settings;
    const contentLimits = contentLimitsOf(settings);
    this.#timeoutMs = settings.contentWorkTimeoutMs;
    this.#data = { contentLimits, patchLimits: patchLimitsOf(settings), validationErrorsMax, collections };
    this.#threadsMax = contentThreads > 0 ? contentThreads : Math.min(4, Math.max(2, availableParallelism()));
    this.#waiting = new FairQueue(settings.contentQueueBytesMax, ({ octets }) => octets);
  }

  carryOut(request: ThreadRequest, party: string): Promise<Outcome> {
    if (this.#closed) return Promise.reject(unavailable('the program is stopping'));
    return new Promise((resolve, reject) => {
      this.#waiting.push(party, { request, octets: countOctets(request.job), resolve, reject });
      this.#dispatch();
      for (const refused of this.#waiting.overflow()) {
        refused.reject(unavailable(`${this.#waiting.size} octets of content wait for a thread`));
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiting.drop()) reject(unavailable('the program is stopping'));
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
  }

  #dispatch(): void {
    while (!this.#closed && this.#waiting.count > 0) {
      const thread = this.#threads.find(({ work }) => work === undefined) ?? this.#start();
      const next = thread === undefined ? undefined : this.#waiting.take((party) => this.#mayWork(party));
      if (thread === undefined || next === undefined) return;
      const timer = setTimeout(() => this.#giveUp(thread), this.#timeoutMs);
      thread.work = { ...next, timer };
      thread.worker.ref();
      thread.worker.postMessage(next.item.request);
    }
  }

  /** Where there are several threads, one party never takes all of them. */
  #mayWork(party: string): boolean {
    const working = this.#threads.filter(({ work }) => work?.party === party).length;
    return working < Math.max(1, this.#threadsMax - 1);
  }

  #start(): Thread | undefined {
    if (this.#threads.length >= this.#threadsMax) return undefined;
    let cause: unknown = 'the thread exited without an error';
    const worker = ownEmitter(
      new Worker(workerFile('./content-thread', import.meta.url), { workerData: this.#data }),
      (error) => {
        cause = error;
      },
    );
    const thread: Thread = { worker, work: undefined };
    worker.on('message', (reply: ThreadReply) => {
      const work = this.#free(thread);
      worker.unref();
      this.#dispatch();
      if ('outcome' in reply) work?.item.resolve(reply.outcome);
      else work?.item.reject(new Error(`a content thread failed: ${reply.failure}`));
    });
    worker.on('exit', () => {
      this.#remove(thread);
      this.#free(thread)?.item.reject(new Error('a content thread ended', { cause }));
      this.#dispatch();
    });
    this.#threads.push(thread);
    return thread;
  }

  #giveUp(thread: Thread): void {
    const work = this.#free(thread);
    this.#remove(thread);
    void thread.worker.terminate();
    const message = `takes longer than ${this.#timeoutMs} ms to check against the schema; send a shorter document`;
    const problem = { code: 'validation_failed', errors: [{ pointer: '', message }] } as const;
    work?.item.resolve({ ok: false, problem });
    this.#dispatch();
  }

  #free(thread: Thread): Thread['work'] {
    const { work } = thread;
    thread.work = undefined;
    clearTimeout(work?.timer);
    return work;
  }

  #remove(thread: Thread): void {
    const index = this.#threads.indexOf(thread);
    if (index !== -1) this.#threads.splice(index, 1);
  }
}

/** Those that cross to a thread. */
function contentLimitsOf(limits: ContentLimits): ContentLimits {
  const { jsonDepthMax, jsonMembersMax, formFieldsMax } = limits;
  const { multipartFieldBytesMax, multipartHeaderPairsMax, multipartHeaderBytesMax } = limits;
  return {
    ...{ jsonDepthMax, jsonMembersMax, formFieldsMax },
    ...{ multipartFieldBytesMax, multipartHeaderPairsMax, multipartHeaderBytesMax },
  };
}

function countOctets(job: Job): number {
  const content = 'bytes' in job.content ? job.content.bytes.length : 0;
  return 1 + content + (job.kind === 'propose' ? (job.target.current?.length ?? 0) : 0);
}

function unavailable(message: string): StoreUnavailable {
  return new StoreUnavailable(message, { retryAfterSeconds: 1 });
}

function plainCollection(collection: Collection): PlainCollection {
  const { name, schema, fields, formats, textField, textBounds } = collection;
  const { tenantField, unpatchable, takenIds, searchFields, searchIndex, references } = collection;
  return {
    ...{ name, schema: JSON.parse(JSON.stringify(schema)), fields, formats, textField, textBounds },
    ...{ tenantField, unpatchable, takenIds, searchFields, references },
    ...(searchIndex === undefined ? {} : { searchIndex }),
    // The job carries the fields that are closed to its writer.
    ...{ readOnly: new Map(), hidden: new Map() },
  };
}

/** True if JSON can hold the schema: a refinement is a function. */
function isPlain(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return typeof schema !== 'function';
  return Object.getOwnPropertyNames(schema).every((name) =>
    isPlain((schema as Readonly<Record<string, unknown>>)[name]),
  );
}

function hasCostlyPattern(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  if ('pattern' in schema && typeof schema.pattern === 'string' && mayBacktrack(schema.pattern)) return true;
  return Object.values(schema).some(hasCostlyPattern);
}

/**
 * True if a regular expression may take exponential time: a repeated group contains a repetition or alternatives,
 * as in `^(a+)+$`. Some matches are harmless; they only cost the way through a thread.
 */
export function mayBacktrack(pattern: string): boolean {
  const groups: boolean[] = [];
  let closed: boolean | undefined;
  let inClass = false;
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern.charAt(at);
    const repeats = !inClass && (character === '*' || character === '+' || character === '{');
    if (repeats && closed === true) return true;
    if (repeats || (character === '|' && !inClass)) groups.fill(true);
    closed = undefined;
    if (character === '\\') at += 1;
    else if (inClass) inClass = character !== ']';
    else if (character === '[') inClass = true;
    else if (character === '(') groups.push(false);
    else if (character === ')') closed = groups.pop() ?? false;
  }
  return false;
}

function hasUniqueItems(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  if ('uniqueItems' in schema && schema.uniqueItems === true) return true;
  return Object.values(schema).some(hasUniqueItems);
}
