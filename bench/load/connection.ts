/**
 * One keep-alive connection with one outstanding request. Reads go into one buffer shared by all connections
 * (`onread`), which is safe because each chunk is used up within its callback.
 */
import { connect, type Socket } from 'node:net';
import { ResponseReader } from './response-reader.ts';

/** What a connection tells its owner at each answer; the owner sends the next request. */
export type AnswerHandler = (connection: LoadConnection, latencyMs: number) => void;

export class LoadConnection {
  readonly number: number;
  readonly reader = new ResponseReader();
  sampled = false;
  readonly #socket: Socket;
  readonly #onAnswer: AnswerHandler;
  #sentAtMs = 0;
  #ended = false;

  constructor(options: {
    readonly host: string;
    readonly port: number;
    readonly number: number;
    readonly buffer: Uint8Array;
    readonly onReady: (connection: LoadConnection) => void;
    readonly onAnswer: AnswerHandler;
    readonly onFault: (connection: LoadConnection, fault: string) => void;
  }) {
    this.number = options.number;
    this.#onAnswer = options.onAnswer;
    this.#socket = connect({
      host: options.host,
      port: options.port,
      noDelay: true,
      onread: {
        buffer: options.buffer,
        callback: (count, buffer) => {
          this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, count), options.onFault);
          return true;
        },
      },
    });
    this.#socket.once('connect', () => options.onReady(this));
    this.#socket.on('error', (error) => this.#fail(error.message, options.onFault));
    this.#socket.on('close', () => this.#fail('the server closed the connection', options.onFault));
  }

  /** Sends one request; a sampled one keeps the whole answer in `reader`. */
  send(request: Buffer, sampled: boolean): void {
    this.sampled = sampled;
    this.reader.begin(sampled);
    this.#sentAtMs = performance.now();
    this.#socket.write(request);
  }

  end(): void {
    this.#ended = true;
    this.#socket.destroy();
  }

  #take(chunk: Buffer, onFault: (connection: LoadConnection, fault: string) => void): void {
    if (this.#ended) return;
    const outcome = this.reader.read(chunk);
    if (outcome === 'complete') this.#onAnswer(this, performance.now() - this.#sentAtMs);
    else if (outcome === 'malformed') this.#fail(this.reader.fault, onFault);
  }

  #fail(fault: string, onFault: (connection: LoadConnection, fault: string) => void): void {
    if (this.#ended) return;
    this.end();
    onFault(this, fault);
  }
}
