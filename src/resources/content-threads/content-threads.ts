/**
 * Threads that parse, check and serialize content that is too long for the event loop: a megabyte of JSON takes 100 ms
 * to a second, depending on its structure and the schema. The queue is bounded in octets. A thread whose job exceeds its
 * time (such as a pattern that backtracks without end) is ended. Each takes about 20 MB.
 */
import { Worker } from 'node:worker_threads';
import type { Settings } from '../../config/settings.ts';
import type { ContentLimits } from '../../kernel/content/content-shape.ts';
import type { Collection } from '../../model/collection.ts';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../../store/store.ts';
import { JobFailed, ThreadPool, threadsOf } from '../../store/thread-pool.ts';
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
  | 'unique'
  | 'searchFields'
  | 'searchIndex'
  | 'references'
  | 'files'
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
  const pool = createPool(settings, plain);
  return {
    of(collection) {
      if (!plain.has(collection.name) || collections.get(collection.name) !== collection) return undefined;
      const most = hasCostlyPattern(collection.schema) ? 0 : settings.contentInlineBytesMax;
      const inlineBytesMax = hasUniqueItems(collection.schema)
        ? Math.min(most, inlineBytesWithUniqueItemsMax)
        : most;
      return {
        inlineBytesMax,
        carryOut: (job, party) => carryOut(pool, { collection: collection.name, job }, party, settings),
      };
    },
    close: () => pool.close(),
  };
}

type ContentPool = ThreadPool<ThreadRequest, ThreadReply>;

function createPool(
  settings: ThreadSettings,
  collections: ReadonlyMap<string, PlainCollection>,
): ContentPool {
  const workerData: ThreadData = {
    contentLimits: contentLimitsOf(settings),
    patchLimits: patchLimitsOf(settings),
    validationErrorsMax: settings.validationErrorsMax,
    collections,
  };
  return new ThreadPool({
    start(onError) {
      const worker = ownEmitter(
        new Worker(workerFile('./content-thread', import.meta.url), { workerData }),
        onError,
      );
      return { worker, end: () => void worker.terminate() };
    },
    threadsMax: threadsOf(settings.contentThreads),
    waitingMax: settings.contentQueueBytesMax,
    sizeOf: ({ job }) => countOctets(job),
    jobMsMax: settings.contentWorkTimeoutMs,
    leavesOne: true,
  });
}

async function carryOut(
  pool: ContentPool,
  request: ThreadRequest,
  party: string,
  { contentWorkTimeoutMs }: ThreadSettings,
): Promise<Outcome> {
  try {
    const reply = await pool.run(request, party);
    if ('outcome' in reply) return reply.outcome;
    throw new Error(`a content thread failed: ${reply.failure}`);
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error;
    if (error.why === 'full')
      throw new StoreUnavailable(`${pool.waiting.size} octets of content wait for a thread`);
    if (error.why === 'ended') throw new Error('a content thread ended', { cause: error.cause });
    if (error.why !== 'late') throw new StoreUnavailable('the program is stopping');
    const message = `takes longer than ${contentWorkTimeoutMs} ms to check against the schema; send a shorter document`;
    return { ok: false, problem: { code: 'validation_failed', errors: [{ pointer: '', message }] } };
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

function plainCollection(collection: Collection): PlainCollection {
  const { name, schema, fields, formats, textField, textBounds } = collection;
  const { tenantField, unpatchable, takenIds, unique, searchFields, searchIndex, references, files } =
    collection;
  return {
    ...{ name, schema: JSON.parse(JSON.stringify(schema)), fields, formats, textField, textBounds },
    ...{ tenantField, unpatchable, takenIds, unique, searchFields, references },
    ...(searchIndex === undefined ? {} : { searchIndex }),
    ...(files === undefined ? {} : { files }),
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
