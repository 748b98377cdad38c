/**
 * Sends outgoing requests over kept connections (§6, §8): each origin has a pool of lines, with HTTP/2 if the receiver chooses it. No
 * redirects (a 3xx is an answer like any other), no cookies, no proxies. The settings have the limits.
 */
import { Pool } from 'undici';
import type { Settings } from '../config/settings.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Dial } from './dial.ts';
import type { Exchange, ExchangeCall, ExchangeOutcome } from './exchange.ts';
import { type AttemptTerms, ExchangeAttempt } from './exchange-attempt.ts';
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
  /** Trusted authorities in place of the system's; PEM. */
  readonly ca?: string;
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
};

export type Exchanges = {
  /** Failures are outcomes. */
  readonly exchange: Exchange;
  readonly size: () => number;
  /** Ends exchanges under way as `aborted` and closes every connection; later exchanges are `aborted` at once. */
  readonly close: () => Promise<void>;
};

type Origin = {
  readonly pool: Pool;
  readonly gate: OriginGate<ExchangeAttempt>;
  connections: number;
  inFlight: number;
};

type Target = { readonly origin: string; readonly path: string };

/** Requests sent in one turn of the event loop, about 0.4 ms each. */
const sendsPerTurn = 16;

const neverBegun = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 };

export function createExchanges(options: ExchangesOptions): Exchanges {
  return new KeptOrigins(options);
}

class KeptOrigins implements Exchanges {
  readonly #options: ExchangesOptions;
  readonly #terms: AttemptTerms;
  readonly #origins = new Map<string, Origin>();
  #latest: Origin | undefined;
  /** An endpoint has one URL object for all of its deliveries, and each part of a URL is a new text. */
  readonly #targets = new WeakMap<URL, Target>();
  /** No longer used, and open until their exchanges under way have ended. */
  readonly #retiring = new Set<Origin>();
  /** Exchanges under way by signal: one listener for all of a signal's exchanges. */
  readonly #underWay = new WeakMap<AbortSignal, Set<ExchangeAttempt>>();
  /**
   * Sent at the end of this turn of the event loop. undici releases a connection a turn after the answer, so that a request upon an answer
   * would open one more connection, up to the limit, though one is about to be free.
   */
  readonly #unsent: ExchangeAttempt[] = [];
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

  readonly exchange: Exchange = (call, done) => {
    const { signal } = call;
    if (this.#closing.signal.aborted || signal?.aborted) {
      done(failed('aborted', 'Comity stopped during the attempt'));
      return;
    }
    const target = this.#targetOf(call.url);
    if (target === undefined) done(failed('refused', 'The URL is neither http nor https'));
    else this.#begin(call, target, done);
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

  #begin(call: ExchangeCall, target: Target, done: (outcome: ExchangeOutcome) => void): void {
    const origin = this.#originOf(target.origin);
    const { share = '' } = call;
    origin.inFlight += 1;
    const route = { pool: origin.pool, path: target.path };
    const attempt = new ExchangeAttempt(this.#terms, call, route, (settled, outcome) => {
      origin.inFlight -= 1;
      const next = origin.gate.leave(share, settled);
      // After undici has recorded that the connection will be released.
      if (next !== undefined) queueMicrotask(() => this.#sendSoon(next));
      if (origin.inFlight === 0 && this.#retiring.has(origin)) this.#closeRetiring(origin);
      if (call.signal !== undefined) this.#underWay.get(call.signal)?.delete(settled);
      done(outcome);
    });
    if (call.signal !== undefined) this.#follow(call.signal).add(attempt);
    if (origin.gate.enter(share, attempt)) this.#sendSoon(attempt);
  }

  #sendSoon(attempt: ExchangeAttempt): void {
    if (this.#unsent.push(attempt) === 1) setImmediate(this.#sendAll);
  }

  readonly #sendAll = (): void => {
    const attempts = this.#unsent.splice(0, sendsPerTurn);
    if (this.#unsent.length > 0) setImmediate(this.#sendAll);
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

  /** Undefined for a URL that is neither http nor https. */
  #targetOf(url: URL): Target | undefined {
    const known = this.#targets.get(url);
    if (known !== undefined) return known;
    const { protocol, origin, pathname, search } = url;
    if (protocol !== 'http:' && protocol !== 'https:') return undefined;
    const target = { origin, path: pathname + search };
    this.#targets.set(url, target);
    return target;
  }

  #originOf(key: string): Origin {
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
    // The gate limits requests under way, and the pool needs no more connections than that.
    const pool = ownEmitter(
      new Pool(key, {
        allowH2: true,
        // Never called, because the lines dial themselves; without it undici would create its own.
        connect: (_call, callback) => callback(new Error('An origin line opens its own connections'), null),
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

  /** Retires an origin; its exchanges under way end normally. */
  #giveUp(key: string, origin: Origin): void {
    this.#origins.delete(key);
    this.#retiring.add(origin);
    if (origin.inFlight === 0) this.#closeRetiring(origin);
  }

  #closeRetiring(origin: Origin): void {
    const forget = (): boolean => this.#retiring.delete(origin);
    origin.pool.close().then(forget, forget);
  }

  #sweep(): void {
    for (const [key, origin] of this.#origins) {
      if (origin.connections === 0 && origin.inFlight === 0) this.#giveUp(key, origin);
    }
  }
}

function failed(failure: 'aborted' | 'refused', message: string): ExchangeOutcome {
  return { kind: 'failed', failure, message, timing: neverBegun };
}

type Share<T> = {
  underWay: number;
  readonly waiting: Set<T>;
};

/**
 * Divides the connections to one origin among shares (`share` of a call: an endpoint), so that hanging requests of one endpoint do not stop
 * another endpoint at the same host and port.
 *
 * - All shares together may have `max` requests under way.
 * - Each share may have `ownMax` of its own under way even then. All webhooks of one process together are limited by `webhookInFlightMax`.
 * - webhooks/sending/capacity.ts limits those of one tenant or owner at all origins together.
 * - Other requests wait; when a place becomes free, the waiting shares take turns.
 */
class OriginGate<T> {
  readonly #ownMax: number;
  readonly #max: number;
  readonly #shares = new Map<string, Share<T>>();
  /** Shares with waiting requests, in the order of their turns. */
  readonly #turns = new Set<string>();
  #underWay = 0;

  constructor(max: number, ownMax: number) {
    this.#max = max;
    this.#ownMax = ownMax;
  }

  /** @returns whether the request may start now; otherwise it waits until `leave` returns it */
  enter(name: string, request: T): boolean {
    const share = this.#shares.get(name) ?? { underWay: 0, waiting: new Set() };
    this.#shares.set(name, share);
    if (share.waiting.size === 0 && this.#begin(share)) return true;
    share.waiting.add(request);
    this.#turns.add(name);
    return false;
  }

  /** Ends a request, waiting or under way. @returns a request that may start now */
  leave(name: string, request: T): T | undefined {
    const share = this.#shares.get(name);
    if (share === undefined) return undefined;
    if (share.waiting.delete(request)) {
      if (share.waiting.size === 0) this.#turns.delete(name);
      this.#forget(name, share);
      return undefined;
    }
    this.#underWay -= 1;
    share.underWay -= 1;
    const next = this.#next(name, share);
    this.#forget(name, share);
    return next;
  }

  #begin(share: Share<T>): boolean {
    if (this.#underWay >= this.#max && share.underWay >= this.#ownMax) return false;
    this.#underWay += 1;
    share.underWay += 1;
    return true;
  }

  #next(name: string, share: Share<T>): T | undefined {
    // Over the limit, the released place is one of the share's own.
    if (this.#underWay >= this.#max) return this.#take(name, share);
    for (const turn of this.#turns) {
      const waiting = this.#shares.get(turn);
      if (waiting !== undefined) return this.#take(turn, waiting);
    }
    return undefined;
  }

  #take(name: string, share: Share<T>): T | undefined {
    const [request] = share.waiting;
    if (request === undefined || !this.#begin(share)) return undefined;
    share.waiting.delete(request);
    this.#turns.delete(name);
    if (share.waiting.size > 0) this.#turns.add(name);
    return request;
  }

  #forget(name: string, share: Share<T>): void {
    if (share.underWay === 0 && share.waiting.size === 0) this.#shares.delete(name);
  }
}
