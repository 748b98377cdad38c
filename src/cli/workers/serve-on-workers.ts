/**
 * Serves one port with several workers: threads, each of which is the whole program with an event loop of its own, over one store. This
 * thread, the supervisor, serves no request. It opens the folder of the embedded store and its writer, answers what only one thread can
 * know, and replaces a worker that ends (docs/decisions/0062-workers-are-threads.md).
 *
 * A worker is starting, serving, ending (after an uncaught error it drains while its successor starts) and ended.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type ListenOptions, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { fingerprintText } from '../../config/configuration.ts';
import type { Environment, WrittenSettings } from '../../config/load-settings.ts';
import { memoryBytesMin, memoryBytesOf } from '../../memory/program-memory.ts';
import { addActivities } from '../../observe/metrics.ts';
import type { Observe } from '../../observe/observation.ts';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import { openStoreHome } from '../../open-store.ts';
import { createTallies, type SqliteHome } from '../../store/sqlite/home.ts';
import { workerFile } from '../../store/worker-file.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import type { Reading } from '../read-configuration.ts';
import { type Answer, Asking, type Message, type Started, type WorkerData } from './worker-messages.ts';

export type WorkersOptions = {
  readonly count: number;
  readonly environment: Environment;
  readonly written: WrittenSettings;
  readonly reading: Omit<Reading, 'warnings'>;
  readonly observe: Observe;
};

export type ServingWorkers = Started & {
  /** Drains and ends all workers, then closes the store. */
  stop(reason: string, delayMs?: number): Promise<void>;
  /** Rejects when no worker serves and none can be started. */
  readonly failed: Promise<never>;
};

/** A worker that ends sooner than this after its start is replaced after a pause, which doubles each time. */
const steadyMs = 10_000;
const pauseMsFirst = 1000;
const pauseMsMost = 30_000;
/** Time for a worker to render its metrics; without them the page has those of the others. */
const metricsMs = 1000;

/** @throws what prevents the start of the first workers */
export async function serveOnWorkers(options: WorkersOptions): Promise<ServingWorkers> {
  const { configuration, settings } = options.reading;
  const { host, port, tlsPort, databaseUrl } = settings;
  const held: HeldPort[] = [];
  const hold = async (wanted: number): Promise<number> => {
    const found = await holdPort(host, wanted);
    held.push(found);
    return found.port;
  };
  let supervisor: Supervisor | undefined;
  try {
    supervisor = new Supervisor(options, {
      port: await hold(port),
      tlsPort: tlsPort === undefined ? undefined : await hold(Number(tlsPort)),
      home:
        databaseUrl === undefined ? await openStoreHome(configuration, settings, options.observe) : undefined,
    });
    const { failed, stop } = supervisor;
    return { ...(await supervisor.start()), failed, stop };
  } catch (error) {
    await supervisor?.stop('a worker could not start');
    throw error;
  } finally {
    for (const { release } of held) await release();
  }
}

type Place = {
  readonly port: number;
  readonly tlsPort: number | undefined;
  readonly home: SqliteHome | undefined;
};

type Member = {
  readonly number: number;
  readonly processId: string;
  readonly worker: Worker;
  readonly asking: Asking;
  readonly startedAt: number;
  /** Why it ended. */
  error: unknown;
  isServing: boolean;
  /** Set once its successor is wanted. */
  isReplaced: boolean;
  readonly ready: PromiseWithResolvers<Started>;
  readonly ended: Promise<void>;
};

class Supervisor {
  readonly #options: WorkersOptions;
  readonly #place: Place;
  readonly #id = randomUUID();
  #begun = 0;
  readonly #members = new Set<Member>();
  readonly #tally = createTallies(Date.now);
  readonly #failed = Promise.withResolvers<never>();
  #pauseMs = pauseMsFirst;
  #isStarted = false;
  #stopping: Promise<void> | undefined;

  constructor(options: WorkersOptions, place: Place) {
    this.#options = options;
    this.#place = place;
    // Handled by `serve` once it runs.
    this.#failed.promise.catch(() => undefined);
  }

  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** @returns what the workers started, with the secrets that any of them created */
  async start(): Promise<Started> {
    const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1);
    const all = await Promise.all(numbers.map((number) => this.#begin(number).ready.promise));
    const [first] = all;
    if (first === undefined) throw new Error('no worker was started');
    this.#isStarted = true;
    return {
      ...first,
      adminKey: all.find(({ adminKey }) => adminKey !== undefined)?.adminKey,
      madeSecrets: all.flatMap(({ madeSecrets }) => madeSecrets),
    };
  }

  readonly stop = (reason: string, delayMs = 0): Promise<void> => {
    this.#stopping ??= this.#stopAll(reason, delayMs);
    return this.#stopping;
  };

  async #stopAll(reason: string, delayMs: number): Promise<void> {
    const members = [...this.#members];
    for (const { asking } of members) asking.tell({ kind: 'stop', reason, delayMs });
    await Promise.all(members.map(({ ended }) => ended));
    await this.#place.home?.close();
  }

  #begin(number: number): Member {
    this.#begun += 1;
    const processId = `${this.#id}.${this.#begun}`;
    const heapMebibytes = getHeapStatistics().heap_size_limit / this.#options.count / 1_048_576;
    const worker = ownEmitter(
      new Worker(workerFile('./worker-thread', import.meta.url), {
        workerData: this.#dataOf(number, processId),
        name: `comity worker ${number}`,
        resourceLimits: { maxOldGenerationSizeMb: Math.floor(heapMebibytes) },
      }),
      (error) => {
        member.error = error;
      },
    );
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const answers = {
      tally: this.#tally,
      hasEnded: (other: string) => [...this.#members].every((member) => member.processId !== other),
      metrics: () => this.#metrics(),
      activity: async () => {
        const [first, ...others] = (await this.#askServing('ownActivity')).filter(isKnown);
        if (first === undefined) throw new Error('no worker has answered in time');
        return addActivities(first, ...others);
      },
    };
    const member: Member = {
      ...{ number, processId, worker, ended, startedAt: performance.now() },
      ...{ error: undefined, isServing: false, isReplaced: false },
      ready: Promise.withResolvers<Started>(),
      asking: new Asking(worker, answers, (message) => this.#hear(member, message)),
    };
    member.ready.promise.catch(() => undefined);
    worker.on('exit', () => {
      resolve();
      this.#leave(member);
    });
    this.#members.add(member);
    return member;
  }

  #dataOf(number: number, processId: string): WorkerData {
    const { count, environment, written, reading } = this.#options;
    const { configuration, settings } = reading;
    const { port, tlsPort, home } = this.#place;
    const memoryBytes = memoryBytesOf(settings) / count;
    return {
      ...{ number, environment, written, port, tlsPort, processId, home: home?.data },
      startedAt: Math.round(performance.timeOrigin),
      fingerprint: fingerprintText(configuration, settings),
      memoryBytesMax: Math.max(memoryBytesMin, Math.floor(memoryBytes)),
    };
  }

  #hear(member: Member, message: Message): void {
    switch (message.kind) {
      case 'ready':
        member.isServing = true;
        member.ready.resolve(message.started);
        void this.#watch(member);
        return;
      case 'failed': {
        const { exitCode } = message;
        member.error = new CommandFailure(message.message, { exitCode });
        return;
      }
      case 'join':
        this.#place.home?.join(message.port);
        return;
      case 'ending':
        member.error = new Error(`uncaught error: ${message.message}`);
        this.#replace(member);
        return;
      case 'stop':
    }
  }

  /** Ends a worker whose event loop no longer turns: its clients would wait for ever. */
  async #watch(member: Member): Promise<void> {
    const silenceMs = this.#options.reading.settings.workerSilenceMs;
    const silence = (): Promise<false> => delay(silenceMs, false, { ref: false });
    while (this.#members.has(member)) {
      // An end of the worker refuses the question.
      const turns = await Promise.race([member.asking.ask('turns', undefined).catch(() => true), silence()]);
      if (!turns) {
        member.error = new Error(`the worker answered nothing for ${silenceMs} ms`);
        await member.worker.terminate();
      } else await Promise.race([silence(), member.ended]);
    }
  }

  #leave(member: Member): void {
    this.#members.delete(member);
    const error = member.error ?? new Error('the worker ended');
    member.asking.end(new Error('the worker ended'));
    member.ready.reject(error);
    if (this.#stopping !== undefined) return;
    this.#options.observe({ kind: 'worker-ended', worker: member.number, error });
    this.#replace(member);
  }

  #replace(member: Member): void {
    // Before that, its end fails the start.
    if (member.isReplaced || this.#stopping !== undefined || !this.#isStarted) return;
    member.isReplaced = true;
    void this.#restart(member.number, performance.now() - member.startedAt);
  }

  /** Starts a successor, again and again, as long as others serve. */
  async #restart(number: number, livedMs: number): Promise<void> {
    let pauseMs = livedMs < steadyMs ? this.#pauseMs : 0;
    for (;;) {
      if (pauseMs > 0) {
        this.#pauseMs = Math.min(pauseMsMost, 2 * this.#pauseMs);
        await delay(pauseMs);
      } else this.#pauseMs = pauseMsFirst;
      if (this.#stopping !== undefined) return;
      const member = this.#begin(number);
      // Its end before it was ready is handled here.
      member.isReplaced = true;
      try {
        await member.ready.promise;
        member.isReplaced = false;
        return;
      } catch (error) {
        if (![...this.#members].some(({ isServing }) => isServing)) {
          const message = 'no worker serves, and none can be started';
          this.#failed.reject(new CommandFailure(message, { exitCode: exitCodes.uncaught, cause: error }));
          return;
        }
        pauseMs = this.#pauseMs;
      }
    }
  }

  async #metrics(): Promise<string> {
    return mergeMetrics((await this.#askServing('ownMetrics')).map((page) => page ?? ''));
  }

  /** @returns undefined for a worker that did not answer in time */
  #askServing<K extends 'ownMetrics' | 'ownActivity'>(
    question: K,
  ): Promise<readonly (Answer<K> | undefined)[]> {
    const serving = [...this.#members].filter(({ isServing }) => isServing);
    return Promise.all(
      serving.map(({ asking }) =>
        Promise.race([asking.ask(question, undefined), delay(metricsMs, undefined, { ref: false })]).catch(
          () => undefined,
        ),
      ),
    );
  }
}

function isKnown<T>(answer: T | undefined): answer is T {
  return answer !== undefined;
}

type HeldPort = { readonly port: number; readonly release: () => Promise<unknown> };

/**
 * Holds the port that workers will share until they have opened it. The system lets any process of the same user join a shared port, another
 * Comity among them, so the supervisor opens it alone first: that fails if anyone has it.
 * @param port 0 finds a free one
 * @throws the error of node:net, such as EADDRINUSE
 */
async function holdPort(host: string, port: number): Promise<HeldPort> {
  if (port !== 0) await (await openPort({ host, port, exclusive: true })).release();
  return openPort({ host, port, reusePort: true });
}

async function openPort(options: ListenOptions): Promise<HeldPort> {
  const server = ownEmitter(createServer(), ignoreError);
  // A client that is early would keep the port open: it is turned away, as before the port was open.
  onArrival(server, 'connection', ignoreError, (socket: Socket) => socket.destroy());
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(options, resolve);
  await promise;
  const address = server.address();
  const release = (): Promise<unknown> => new Promise((closed) => server.close(closed));
  if (address === null || typeof address === 'string') throw new Error('the port has no address');
  return { port: address.port, release };
}

const familyStart = '# HELP ';

/** Families of the process: every worker reports the same values. */
const processPrefix = 'process_';

/**
 * The metrics of several workers as one page, which has each family once.
 * @param pages in the text format of Prometheus; a label distinguishes their samples
 */
export function mergeMetrics(pages: readonly string[]): string {
  const families = new Map<string, { readonly head: string[]; readonly samples: string[] }>();
  for (const [index, page] of pages.entries()) {
    let name = '';
    for (const line of page.split('\n')) {
      if (line === '') continue;
      if (line.startsWith(familyStart)) name = line.slice(familyStart.length).split(' ', 1)[0] ?? '';
      if (index > 0 && name.startsWith(processPrefix)) continue;
      const family = families.get(name) ?? { head: [], samples: [] };
      families.set(name, family);
      if (!line.startsWith('#')) family.samples.push(line);
      else if (!family.head.includes(line)) family.head.push(line);
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]);
  return `${lines.join('\n')}\n`;
}
