/**
 * Makes previews of images in processes of their own: a queue that is bounded and fair, and a time after which the process is ended and
 * replaced. `sharp`, which a project installs itself, decodes and encodes; it gets octets, never paths or names.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Settings } from '../config/settings.ts';
import type { WholePreviewRule } from '../model/file.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { StoreUnavailable } from '../store/store.ts';
import { JobFailed, type PoolWorker, ThreadPool } from '../store/thread-pool.ts';
import { workerFile } from '../store/worker-file.ts';

/** What a preview is made of. */
export type PreviewSource = {
  /** Judged by the content. */
  readonly type: string;
  readonly bytes: number;
  /** Reads all octets. */
  readonly open: () => Promise<AsyncIterable<Uint8Array>>;
};

/** The file that a preview is. */
export type MadePreview = {
  readonly bytes: number;
  /** In hexadecimal digits. */
  readonly sha256: string;
  readonly width: number;
  readonly height: number;
};

/** No preview can be made of the file. `message` says why, to be read after "no preview: ". */
export class PreviewRefused extends Error {
  override readonly name = 'PreviewRefused';
}

export type PreviewSettings = Pick<
  Settings,
  | 'previewProcesses'
  | 'previewsWaitingMax'
  | 'previewTimeoutMs'
  | 'previewSourcePixelsMax'
  | 'previewSourceBytesMax'
>;

export type PreviewMaker = {
  /**
   * Makes a preview as a new file at the path.
   * @param party for whom it is
   * @throws PreviewRefused; StoreUnavailable if the queue is full; what `open` throws
   */
  make(source: PreviewSource, rule: WholePreviewRule, path: string, party: string): Promise<MadePreview>;
  close(): Promise<void>;
};

/** What the process gets over its channel; the octets follow on its standard input. */
export type PreviewOrder = {
  readonly rule: WholePreviewRule;
  readonly bytes: number;
  readonly pixelsMax: number;
  readonly path: string;
};
export type PreviewReply = { readonly made: MadePreview } | { readonly refused: string };

type PreviewJob = PreviewOrder & { readonly open: () => AsyncIterable<Uint8Array> };
type JobReply = PreviewReply | { readonly failed: unknown };

/** The types that previews are made of. */
export const previewTypes: ReadonlySet<string> = new Set([
  ...['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/tiff', 'image/avif'],
]);

export function createPreviewMaker(settings: PreviewSettings): PreviewMaker {
  const { previewProcesses, previewTimeoutMs, previewsWaitingMax, previewSourcePixelsMax } = settings;
  const pool = new ThreadPool<PreviewJob, JobReply>({
    start(onError) {
      const worker = new PreviewProcess(onError);
      return { worker, end: () => void worker.terminate() };
    },
    threadsMax: previewProcesses > 0 ? previewProcesses : Math.max(1, Math.floor(availableParallelism() / 2)),
    waitingMax: previewsWaitingMax,
    jobMsMax: previewTimeoutMs,
    leavesOne: true,
  });
  const run = async (job: PreviewJob, party: string): Promise<JobReply> => {
    try {
      return await pool.run(job, party);
    } catch (error) {
      // Once more, in a new process: it may have been ended from outside.
      if (!(error instanceof JobFailed) || error.why !== 'ended') throw error;
      return await pool.run(job, party);
    }
  };
  return {
    async make({ type, bytes, open }, rule, path, party) {
      const reason = refusalOf(type, bytes, settings);
      if (reason !== undefined) throw new PreviewRefused(reason);
      let isRead = false;
      const octets = async function* (): AsyncGenerator<Uint8Array> {
        yield* await open();
        isRead = true;
      };
      const job = { rule, bytes, pixelsMax: previewSourcePixelsMax, path, open: octets };
      const reply = await run(job, party).catch((error) => fail(error, isRead, previewTimeoutMs));
      if ('made' in reply) return reply.made;
      if ('failed' in reply) throw reply.failed;
      throw new PreviewRefused(explain(reply.refused, previewSourcePixelsMax));
    },
    close: () => pool.close(),
  };
}

function refusalOf(type: string, bytes: number, settings: PreviewSettings): string | undefined {
  if (type === 'image/heic' || type === 'image/heif')
    return 'HEIC is compressed by HEVC, which sharp does not decode; send the photo as JPEG';
  if (type === 'image/svg+xml')
    return 'an SVG is a document that may refer to others, and has any size: show the file itself';
  if (!previewTypes.has(type)) return `a file of the type ${type} is no image that previews are made of`;
  const { previewSourceBytesMax } = settings;
  if (bytes <= previewSourceBytesMax) return undefined;
  return `the image has ${bytes} octets, and previews are made of at most ${previewSourceBytesMax} (COMITY_PREVIEW_SOURCE_BYTES_MAX)`;
}

/** What libvips says, as a sentence. */
function explain(message: string, pixelsMax: number): string {
  if (message.includes('pixel limit'))
    return `the image has more than ${pixelsMax} pixels (COMITY_PREVIEW_SOURCE_PIXELS_MAX)`;
  if (message.includes('unsupported image format') || message.includes('operation is blocked'))
    return 'the content is no image that previews are made of';
  return 'the image is damaged or not whole';
}

const retryAfterSeconds = 5;

function fail(error: unknown, isRead: boolean, timeoutMs: number): never {
  if (!(error instanceof JobFailed)) throw error;
  if (error.why === 'late' && !isRead)
    throw new StoreUnavailable(`a file was not read within ${timeoutMs} ms`, { retryAfterSeconds });
  if (error.why === 'late')
    throw new PreviewRefused(`it takes longer than ${timeoutMs} ms (COMITY_PREVIEW_TIMEOUT_MS)`);
  if (error.why === 'ended')
    throw new PreviewRefused('the process that makes it ended twice', { cause: error.cause });
  const message = error.why === 'full' ? 'too many previews wait to be made' : 'the program is stopping';
  throw new StoreUnavailable(message, { retryAfterSeconds, cause: error });
}

/** An idle process takes 60 MB. */
const idleMs = 30_000;
/** Of JavaScript; libvips has its own memory. */
const heapMegabytesMax = 256;

/** A worker of the pool whose work is done by a process, which is started for a job and ends when it has none. */
class PreviewProcess implements PoolWorker {
  readonly #onError: (error: unknown) => void;
  #child: ChildProcess | undefined;
  #isBusy = false;
  #isEnded = false;
  #idle: NodeJS.Timeout | undefined;
  #onMessage: (reply: unknown) => void = ignoreError;
  #onExit: (reply: unknown) => void = ignoreError;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  on(event: 'message' | 'exit', listener: (reply: unknown) => void): void {
    if (event === 'message') this.#onMessage = listener;
    else this.#onExit = listener;
  }

  postMessage(job: PreviewJob): void {
    const { open: _, ...order } = job;
    clearTimeout(this.#idle);
    this.#isBusy = true;
    const child = this.#child ?? this.#start();
    child.send(order, ignoreError);
    void this.#feed(child, job);
  }

  ref(): void {
    this.#child?.ref();
    this.#child?.channel?.ref();
  }

  unref(): void {
    this.#child?.unref();
    this.#child?.channel?.unref();
  }

  async terminate(): Promise<void> {
    clearTimeout(this.#idle);
    if (this.#child === undefined) this.#end();
    else this.#child.kill('SIGKILL');
  }

  #start(): ChildProcess {
    const child = ownEmitter(
      fork(fileURLToPath(workerFile('./preview-process', import.meta.url)), {
        // Nothing of the environment of the program, which has its secrets.
        env: {},
        execArgv: [`--max-old-space-size=${heapMegabytesMax}`],
        stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
      }),
      this.#onError,
    );
    if (child.stdin !== null) ownEmitter(child.stdin, ignoreError);
    this.#child = child;
    child.on('message', (reply: PreviewReply) => this.#settle(child, reply));
    child.on('exit', (code, signal) => this.#lose(child, `the process ended by ${signal ?? `code ${code}`}`));
    return child;
  }

  async #feed(child: ChildProcess, { open, bytes }: PreviewJob): Promise<void> {
    try {
      // A process that ends closes its input: its end is the answer then.
      for await (const chunk of exactly(open(), bytes)) if (!(await write(child, chunk))) return;
    } catch (failed) {
      this.#settle(child, { failed });
    }
  }

  #settle(child: ChildProcess, reply: JobReply): void {
    if (child !== this.#child || !this.#isBusy) return;
    this.#isBusy = false;
    // The rest of an image is in the input of a process whose source failed.
    if ('failed' in reply) this.#release(child);
    else this.#idle = setTimeout(() => this.#release(child), idleMs).unref();
    this.#onMessage(reply);
  }

  /** Ends a process that has no job; the next job starts another. */
  #release(child: ChildProcess): void {
    if (this.#child === child) this.#child = undefined;
    child.kill('SIGKILL');
  }

  #lose(child: ChildProcess, reason: string): void {
    if (child !== this.#child) return;
    this.#child = undefined;
    if (this.#isBusy) this.#onError(new Error(reason));
    this.#end();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onExit(undefined);
  }
}

/** Resolves when the process has taken the octets; false if it takes none any more. */
function write({ stdin }: ChildProcess, octets: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    if (stdin === null) resolve(false);
    else stdin.write(octets, (error) => resolve(!error));
  });
}

/** @throws if there are fewer octets than the file has */
async function* exactly(source: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const chunk of source) {
    count += chunk.length;
    yield chunk;
  }
  if (count !== bytes) throw new StoreUnavailable(`a file of ${bytes} octets ended after ${count}`);
}
