/** Messages between the supervisor and a worker, and the questions of each that the other answers. */
import type { MessagePort, Transferable } from 'node:worker_threads';
import type { Environment, WrittenSettings } from '../../config/load-settings.ts';
import type { Activity } from '../../observe/metrics.ts';
import type { Running } from '../../running.ts';
import type { HomeData } from '../../store/sqlite/home-state.ts';
import type { MaybePromise, Tally } from '../../store/store.ts';

export type WorkerData = {
  /** From 1 on; a worker that replaces another has its number. */
  readonly number: number;
  readonly environment: Environment;
  readonly written: WrittenSettings;
  /** Identifies the configuration that the supervisor read; the worker refuses to serve another one. */
  readonly fingerprint: string;
  readonly port: number;
  readonly tlsPort: number | undefined;
  /** This worker's part of the memory budget. */
  readonly memoryBytesMax: number;
  /** Undefined on PostgreSQL. */
  readonly home: HomeData | undefined;
  /** The id of the supervisor, a full stop and a number. */
  readonly processId: string;
  /** When the process started, in milliseconds since the epoch. */
  readonly startedAt: number;
};

export type Started = Pick<Running, 'url' | 'tlsUrl' | 'adminKey' | 'madeSecrets'>;

/** Questions, each with its answer. */
type Questions = {
  readonly tally: { readonly asked: readonly Tally[]; readonly answer: readonly number[] };
  readonly hasEnded: { readonly asked: string; readonly answer: boolean };
  /** The metrics of all workers. */
  readonly metrics: { readonly asked: undefined; readonly answer: string };
  /** The metrics of the worker that is asked. */
  readonly ownMetrics: { readonly asked: undefined; readonly answer: string };
  /** What all workers did in the last day. */
  readonly activity: { readonly asked: undefined; readonly answer: Activity };
  readonly ownActivity: { readonly asked: undefined; readonly answer: Activity };
  /** The event loop of the worker turns; a worker whose loop is held sends no answer. */
  readonly turns: { readonly asked: undefined; readonly answer: true };
};

export type Message =
  /** From a worker. */
  | { readonly kind: 'ready'; readonly started: Started }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: number }
  /** An uncaught error: the worker drains and ends. */
  | { readonly kind: 'ending'; readonly message: string }
  | { readonly kind: 'join'; readonly port: MessagePort }
  /** To a worker. */
  | { readonly kind: 'stop'; readonly reason: string; readonly delayMs: number };

type Kind = keyof Questions;

export type Answer<K extends Kind> = Questions[K]['answer'];

type Answers = {
  readonly [K in Kind]?: (asked: Questions[K]['asked']) => MaybePromise<Questions[K]['answer']>;
};

type Frame =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'question'; readonly id: number; readonly question: Kind; readonly asked: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly message: string };

/** A `Worker` or the port to its parent. */
type Line = {
  postMessage(frame: unknown, transferred?: readonly Transferable[]): void;
  on(event: 'message', listener: (frame: Frame) => void): unknown;
};

type Asked = { readonly resolve: (answer: never) => void; readonly reject: (error: unknown) => void };

export class Asking {
  readonly #line: Line;
  readonly #asked = new Map<number, Asked>();
  #last = 0;

  constructor(line: Line, answers: Answers, onMessage: (message: Message) => void) {
    this.#line = line;
    line.on('message', (frame) => {
      if (frame.kind === 'message') onMessage(frame.message);
      else if (frame.kind === 'question') void this.#reply(answers, frame);
      else this.#settle(frame);
    });
  }

  tell(message: Message, transferred: readonly Transferable[] = []): void {
    this.#line.postMessage({ kind: 'message', message } satisfies Frame, transferred);
  }

  ask<K extends Kind>(question: K, asked: Questions[K]['asked']): Promise<Questions[K]['answer']> {
    this.#last += 1;
    const id = this.#last;
    const frame: Frame = { kind: 'question', id, question, asked };
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#line.postMessage(frame);
    });
  }

  /** Rejects all open questions: the other thread has ended. */
  end(error: Error): void {
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
  }

  async #reply(answers: Answers, { id, question, asked }: Frame & { kind: 'question' }): Promise<void> {
    let frame: Frame;
    try {
      const find = answers[question] as ((asked: unknown) => MaybePromise<unknown>) | undefined;
      if (find === undefined) throw new TypeError(`the thread does not answer ${question}`);
      frame = { kind: 'answer', id, answer: await find(asked) };
    } catch (error) {
      frame = { kind: 'refusal', id, message: error instanceof Error ? error.message : String(error) };
    }
    this.#line.postMessage(frame);
  }

  #settle(frame: Frame & { kind: 'answer' | 'refusal' }): void {
    const asked = this.#asked.get(frame.id);
    this.#asked.delete(frame.id);
    if (frame.kind === 'answer') asked?.resolve(frame.answer as never);
    else asked?.reject(new Error(frame.message));
  }
}
