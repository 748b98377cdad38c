/**
 * Requests to servers outside over connections that are kept (§6, §8): for each origin a pool of lines, HTTP/2 where the receiver chooses it.
 * Follows no redirect (a 3xx is an answer like any other), keeps no cookies, asks no proxy. The bounds are the settings'.
 */
import { Pool } from 'undici';
import type { Settings } from '../config/settings.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Dial } from './dial.ts';
import type { Exchange, ExchangeCall, ExchangeOutcome } from './exchange.ts';
import { type AttemptTerms, ExchangeAttempt } from './exchange-attempt.ts';
import { OriginGate } from './origin-gate.ts';
import { OriginLine } from './origin-line.ts';

export type ExchangesOptions = {
  readonly dial: Dial;
  readonly settings: Pick<
    Settings,
    | 'egressConnectionsPerOriginMax'
    | 'egressConnectionsPerEndpointMin'
    | 'egressOriginsMax'
    | 'egressIdleMs'
    | 'egressHeadBytesMax'
    | 'egressAnswerBytesMax'
    | 'egressAnswerMs'
    | 'webhookSnippetCharactersMax'
  >;
  /** Authorities to trust in place of the system's; PEM. */
  readonly ca?: string;
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
};

export type Exchanges = {
  /** Never rejects: what went wrong is the outcome. */
  readonly exchange: Exchange;
  /** Origins to which connections are kept. */
  readonly size: () => number;
  /** Ends what is under way as `aborted` and closes every connection; a later exchange is `aborted` at once. */
  readonly close: () => Promise<void>;
};

type Origin = {
  readonly pool: Pool;
  readonly gate: OriginGate<ExchangeAttempt>;
  connections: number;
  inFlight: number;
};

const neverBegun = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 };

export function createExchanges(options: ExchangesOptions): Exchanges {
  return new KeptOrigins(options);
}

class KeptOrigins implements Exchanges {
  readonly #options: ExchangesOptions;
  readonly #terms: AttemptTerms;
  /** The one used least lately first. */
  readonly #origins = new Map<string, Origin>();
  #latest: Origin | undefined;
  /** Given up, and open until what is under way there has ended. */
  readonly #retiring = new Set<Origin>();
  /** What is under way for each signal: one listener for all of it, not one for each exchange. Held by the signal. */
  readonly #underWay = new WeakMap<AbortSignal, Set<ExchangeAttempt>>();
  /**
   * What goes out at the end of this turn of the event loop. undici gives a connection back a turn after the answer, so that who asks again
   * upon an answer would make undici open one more connection, up to the limit, though one is about to be free.
   */
  #unsent: ExchangeAttempt[] = [];
  readonly #closing = new AbortController();
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: ExchangesOptions) {
    this.#options = options;
    const { settings, monotonic = () => performance.now() } = options;
    this.#terms = {
      headBytesMax: settings.egressHeadBytesMax,
      answerBytesMax: settings.egressAnswerBytesMax,
      answerMs: settings.egressAnswerMs,
      snippetCharacters: settings.webhookSnippetCharactersMax,
      monotonic,
    };
    this.#sweeper = setInterval(() => this.#sweep(), settings.egressIdleMs);
    this.#sweeper.unref();
  }

  readonly exchange: Exchange = (call) => {
    const { url, signal } = call;
    if (this.#closing.signal.aborted || signal?.aborted) {
      return Promise.resolve(failed('aborted', 'The program stopped meanwhile'));
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      return Promise.resolve(failed('refused', 'The URL is neither http nor https'));
    }
    return new Promise((resolve) => this.#begin(call, resolve));
  };

  readonly size = (): number => this.#origins.size;

  readonly close = async (): Promise<void> => {
    clearInterval(this.#sweeper);
    const origins = [...this.#origins.values(), ...this.#retiring];
    this.#origins.clear();
    this.#latest = undefined;
    this.#closing.abort(new Error('The program stops'));
    await Promise.all(origins.map(({ pool }) => pool.destroy()));
  };

  #begin(call: ExchangeCall, resolve: (outcome: ExchangeOutcome) => void): void {
    const origin = this.#originOf(call.url);
    const { share = '' } = call;
    origin.inFlight += 1;
    const attempt = new ExchangeAttempt(this.#terms, call, origin.pool, (settled, outcome) => {
      origin.inFlight -= 1;
      const next = origin.gate.leave(share, settled);
      // After undici has put down that the connection is to be given back.
      if (next !== undefined) queueMicrotask(() => this.#sendSoon(next));
      if (origin.inFlight === 0 && this.#retiring.has(origin)) this.#closeRetiring(origin);
      if (call.signal !== undefined) this.#underWay.get(call.signal)?.delete(settled);
      resolve(outcome);
    });
    if (call.signal !== undefined) this.#follow(call.signal).add(attempt);
    if (origin.gate.enter(share, attempt)) this.#sendSoon(attempt);
  }

  #sendSoon(attempt: ExchangeAttempt): void {
    if (this.#unsent.push(attempt) === 1) setImmediate(this.#sendAll);
  }

  readonly #sendAll = (): void => {
    const attempts = this.#unsent;
    this.#unsent = [];
    for (const attempt of attempts) attempt.send();
  };

  #follow(signal: AbortSignal): Set<ExchangeAttempt> {
    const known = this.#underWay.get(signal);
    if (known !== undefined) return known;
    const attempts = new Set<ExchangeAttempt>();
    this.#underWay.set(signal, attempts);
    signal.addEventListener(
      'abort',
      () => {
        for (const attempt of attempts) attempt.abort();
      },
      { once: true },
    );
    return attempts;
  }

  #originOf(url: URL): Origin {
    const key = url.origin;
    const known = this.#origins.get(key);
    if (known === undefined) return this.#open(key);
    if (known !== this.#latest) {
      this.#origins.delete(key);
      this.#origins.set(key, known);
      this.#latest = known;
    }
    return known;
  }

  #open(key: string): Origin {
    const { dial, settings, ca } = this.#options;
    const { monotonic } = this.#terms;
    const terms = {
      dial,
      ca,
      monotonic,
      signal: this.#closing.signal,
      onConnections: (change: 1 | -1): void => {
        origin.connections += change;
      },
    };
    const clientOptions = {
      pipelining: 1,
      allowH2: true,
      maxHeaderSize: settings.egressHeadBytesMax,
      keepAliveTimeout: settings.egressIdleMs,
      keepAliveMaxTimeout: settings.egressIdleMs,
    };
    // The gate bounds what is under way, and the pool needs no more connections than that.
    const pool = ownEmitter(
      new Pool(key, {
        allowH2: true,
        // Never called, for the lines have their own; without it undici would make one.
        connect: (_call, callback) => callback(new Error('A line dials for itself'), null),
        factory: (at) => ownEmitter(new OriginLine(at, clientOptions, terms), ignoreError),
      }),
      ignoreError,
    );
    const gate = new OriginGate<ExchangeAttempt>(
      settings.egressConnectionsPerOriginMax,
      settings.egressConnectionsPerEndpointMin,
    );
    const origin: Origin = { pool, gate, connections: 0, inFlight: 0 };
    this.#origins.set(key, origin);
    this.#latest = origin;
    if (this.#origins.size > settings.egressOriginsMax) this.#giveUpOldest();
    return origin;
  }

  #giveUpOldest(): void {
    const [oldest] = this.#origins;
    if (oldest !== undefined) this.#giveUp(...oldest);
  }

  /** Exchanges under way there end as they would have. */
  #giveUp(key: string, origin: Origin): void {
    this.#origins.delete(key);
    this.#retiring.add(origin);
    if (origin.inFlight === 0) this.#closeRetiring(origin);
  }

  #closeRetiring(origin: Origin): void {
    const forget = (): boolean => this.#retiring.delete(origin);
    origin.pool.close().then(forget, forget);
  }

  /** An origin without a connection holds nothing but memory. */
  #sweep(): void {
    for (const [key, origin] of this.#origins) {
      if (origin.connections === 0 && origin.inFlight === 0) this.#giveUp(key, origin);
    }
  }
}

function failed(failure: 'aborted' | 'refused', message: string): ExchangeOutcome {
  return { kind: 'failed', failure, message, timing: neverBegun };
}
