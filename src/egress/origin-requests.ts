/**
 * Requests with long content in both directions to one origin that the operator named, such as a bucket of files: a bounded pool of HTTP/1.1
 * connections that the dialler opens. Time is bounded where no octet moves, and not by the length of the content. Imported late, as undici
 * takes 60 ms to load (late-http.ts).
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { type Dispatcher, Pool } from 'undici';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Dial } from './dial.ts';
import { classifyFailure } from './dial-failure.ts';
import type { ExchangeFailure } from './exchange.ts';
import { connectorOf } from './guarded-agent.ts';

export type OriginRequestsOptions = {
  readonly dial: Dial;
  readonly origin: string;
  readonly connectionsMax: number;
  readonly idleMs: number;
  readonly headBytesMax: number;
  /** Time in which an octet must move, and in which a connection must become free. */
  readonly stallMs: number;
};

export type OriginCall = {
  readonly method: Dispatcher.HttpMethod;
  /** With the query. */
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  /** Has the length that a Content-Length field in `fields` says. */
  readonly content?: AsyncIterable<Uint8Array> | undefined;
};

export type OriginAnswer = {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  /** To be read or destroyed; it fails if it is cut, or stalls. */
  readonly content: Readable;
};

/** There was no answer. The message names no address. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed';
  /** `busy`: no connection became free. */
  readonly failure: ExchangeFailure | 'busy';

  constructor(failure: ExchangeFailure | 'busy', message: string, cause?: unknown) {
    super(message, { cause });
    this.failure = failure;
  }
}

export type OriginRequests = {
  /** Rejects with RequestFailed. */
  readonly request: (call: OriginCall) => Promise<OriginAnswer>;
  /** Ends requests under way, and closes every connection. */
  close(): Promise<void>;
};

export function createOriginRequests(options: OriginRequestsOptions): OriginRequests {
  let closed = false;
  const { connectionsMax, stallMs } = options;
  const gate = new ConnectionGate(connectionsMax, stallMs);
  const pool = openPool(options);
  return {
    async request(call) {
      await gate.enter();
      try {
        if (closed) throw new RequestFailed('aborted', 'Comity stops');
        const answer = await send(pool, call, stallMs);
        answer.content.once('close', () => gate.leave());
        return answer;
      } catch (error) {
        gate.leave();
        throw error;
      }
    },
    async close() {
      closed = true;
      await pool.destroy();
    },
  };
}

function openPool({
  dial,
  origin,
  connectionsMax,
  idleMs,
  headBytesMax,
  stallMs,
}: OriginRequestsOptions): Pool {
  const options = {
    connect: connectorOf(dial),
    connections: connectionsMax,
    pipelining: 1,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    maxHeaderSize: headBytesMax,
    // `send` bounds the time until the header section, which undici would count from the end of the content.
    headersTimeout: 0,
    bodyTimeout: stallMs,
  };
  return ownEmitter(new Pool(origin, options), ignoreError);
}

async function send(pool: Pool, call: OriginCall, stallMs: number): Promise<OriginAnswer> {
  const { method, path, fields: headers, content } = call;
  const stall = new Stall(stallMs);
  try {
    const body = content === undefined ? null : stall.watch(content);
    const answer = await pool.request({ method, path, headers, body: body as never, signal: stall.signal });
    const answered = ownEmitter(answer.body as Readable, ignoreError);
    return { status: answer.statusCode, fields: answer.headers, content: answered };
  } catch (error) {
    if (stall.signal.aborted) throw new RequestFailed('timeout', `No octet moved for ${stallMs} ms`, error);
    const { failure, message } = classifyFailure(error);
    throw new RequestFailed(failure, message, error);
  } finally {
    stall.end();
  }
}

/** Aborts a request where nothing has moved for a time, until it is answered. */
class Stall {
  readonly #abort = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #isOver = false;

  constructor(stallMs: number) {
    this.#timer = setTimeout(() => this.#abort.abort(), stallMs);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  async *watch(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const octets of content) {
      if (!this.#isOver) this.#timer.refresh();
      yield octets;
    }
    if (!this.#isOver) this.#timer.refresh();
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}

/** Gives the connections to requests, in the order of their arrival: undici's own queue has no bound in time. */
class ConnectionGate {
  readonly #waitMs: number;
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(connectionsMax: number, waitMs: number) {
    this.#free = connectionsMax;
    this.#waitMs = waitMs;
  }

  /** Rejects with RequestFailed if no connection becomes free in time. */
  enter(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const take = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(take);
        reject(new RequestFailed('busy', `No connection was free for ${this.#waitMs} ms`));
      }, this.#waitMs);
      this.#waiting.add(take);
    });
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
