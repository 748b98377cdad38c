/**
 * One connection over which events are heard, opened again as long as it is wanted: over a WebSocket, an event stream, or by polling the feed.
 *
 * Modes: `opening`; `open`, events are heard; `waiting`, to be opened again, also for a slow reader; `over`. A connection that
 * cannot be opened although the server answers, as behind a proxy without WebSockets, is replaced by the next kind. It is given up for a
 * refusal that stays, such as 401 where no other token can be had; how a handshake was refused no script learns, so a ticket is asked for first.
 */
import type { ClientEvent } from './api.ts';
import { ComityError, refusalIn } from './error.ts';
import { absolute, backoff, type Fetching, type Send, wait } from './send.ts';
import type { Session } from './session.ts';

export type Transport = 'socket' | 'stream' | 'poll';

/** The parts of a client that a line needs. */
export type Parts = Fetching & {
  readonly transport?: Transport | undefined;
  readonly session: Session;
  readonly send: Send;
};

type MovedAs = readonly ['left' | 'entered', { readonly collection: string; readonly id?: string }];

/** An event, or documents that the caller may no longer read or may read now. */
export type Seen =
  | { readonly event: ClientEvent; readonly moved?: undefined }
  | { readonly event?: undefined; readonly moved: MovedAs };

type Hearing = {
  /** `tickets.*`, an exact type, or `*`. */
  patterns(): readonly string[];
  /** Events of these patterns are heard from now on. */
  onOpen(): void;
  onEvent(event: Seen): void;
  /** It will be opened again. */
  onLost(error: Error | undefined): void;
  /** It will not. */
  onEnd(error: Error | undefined): void;
};

export type Line = {
  /** There are further patterns. */
  extend(): void;
  pause(): void;
  resume(): void;
  close(): void;
};

const order: readonly Transport[] = ['socket', 'stream', 'poll'];
/** Until the next kind is tried. */
const missesMax = 2;
/** A connection that ends sooner counts as one that was not opened, for the time to the next. */
const steadyMs = 10_000;
const openMs = 15_000;
/** The server writes to an idle stream every 15 s unless it is set otherwise. */
const silentMs = 45_000;
const pingMs = 30_000;
const pollSeconds = 20;
const retryAfterSecondsMax = 300;

/** It cannot be had here, although the server answers. */
class Unsupported extends Error {}

/** One attempt, until it ends. */
type Attempt = {
  readonly patterns: readonly string[];
  /** Undefined: from now on. */
  readonly after: string | undefined;
  readonly signal: AbortSignal;
  opened(place?: string): void;
  /** @param place where the next attempt goes on */
  hear(seen: Seen, place: string | undefined): void;
  /** Set while further patterns can be asked for on the same connection. */
  subscribe?: ((patterns: readonly string[]) => void) | undefined;
};

/** @param after a place in the log, from which each attempt goes on; undefined: each begins with what happens then */
export function openLine(parts: Parts, after: string | undefined, hearing: Hearing): Line {
  const line = new RepeatedLine(parts, after, hearing);
  void line.run();
  return line;
}

class RepeatedLine implements Line {
  readonly #parts: Parts;
  readonly #hearing: Hearing;
  /** Where the next attempt goes on. */
  #place: string | undefined;
  #kind: number;
  #mode: 'opening' | 'open' | 'waiting' | 'over' = 'opening';
  #isPaused = false;
  #goOn: () => void = () => undefined;
  #isExtending = false;
  #attempt: Attempt | undefined;
  /** Ends the attempt, or the wait for the next one. */
  #stop = new AbortController();
  #openedAt = 0;
  /** Attempts in a row that found this kind of connection unsupported, and those that did not last. */
  #misses = 0;
  #tries = 0;

  constructor(parts: Parts, after: string | undefined, hearing: Hearing) {
    const { WebSocket: socket, document } = globalThis as { WebSocket?: unknown; document?: unknown };
    const isPage = document !== undefined && socket !== undefined;
    this.#parts = parts;
    this.#hearing = hearing;
    this.#place = after;
    this.#kind = order.indexOf(parts.transport ?? (isPage ? 'socket' : 'stream'));
  }

  async run(): Promise<void> {
    for (;;) {
      await this.#resumed();
      if (this.#mode === 'over') return;
      this.#stop = new AbortController();
      const { signal } = this.#stop;
      this.#mode = 'opening';
      this.#openedAt = 0;
      this.#attempt = this.#begin(signal);
      const failure = await attempts[order[this.#kind] ?? 'poll'](this.#parts, this.#attempt).then(
        () => undefined,
        (error: Error) => error,
      );
      this.#attempt = undefined;
      const wasStopped = signal.aborted;
      this.#stop.abort();
      if (this.#isOver()) return;
      if (!wasStopped && isFinal(failure, this.#place !== undefined)) {
        this.#mode = 'over';
        return this.#hearing.onEnd(failure);
      }
      this.#mode = 'waiting';
      this.#hearing.onLost(wasStopped ? undefined : failure);
      if (!wasStopped) await this.#pauseAfter(failure);
    }
  }

  #begin(signal: AbortSignal): Attempt {
    return {
      ...{ patterns: this.#hearing.patterns(), after: this.#place, signal },
      opened: (from) => {
        if (signal.aborted) return;
        if (this.#place !== undefined) this.#place = from ?? this.#place;
        this.#openedAt ||= Date.now();
        this.#mode = 'open';
        this.#hearing.onOpen();
      },
      hear: (seen, at) => {
        if (signal.aborted || this.#mode !== 'open') return;
        if (this.#place !== undefined) this.#place = at ?? this.#place;
        this.#hearing.onEvent(seen);
      },
    };
  }

  /** Waits before the next attempt, which is of the next kind if this one is not supported. */
  #pauseAfter(failure: Error | undefined): Promise<void> {
    this.#misses = failure instanceof Unsupported ? this.#misses + 1 : 0;
    if (this.#misses >= missesMax && this.#kind < order.length - 1) {
      this.#kind += 1;
      this.#misses = 0;
    }
    const isSteady = this.#openedAt > 0 && Date.now() - this.#openedAt > steadyMs;
    this.#tries = isSteady ? 1 : this.#tries + 1;
    this.#stop = new AbortController();
    return untilOnline(Math.max(backoff(this.#tries), retryAfterMs(failure)), this.#stop.signal);
  }

  #resumed(): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve;
      if (!this.#isPaused || this.#mode === 'over') resolve();
    });
  }

  /** Asked in a function: the compiler does not know that it changes during an attempt. */
  #isOver(): boolean {
    return this.#mode === 'over';
  }

  extend(): void {
    if (this.#isExtending) return;
    this.#isExtending = true;
    // Lists that are opened together are asked for together.
    queueMicrotask(() => {
      this.#isExtending = false;
      const attempt = this.#attempt;
      if (attempt?.subscribe !== undefined) attempt.subscribe(this.#hearing.patterns());
      else if (attempt !== undefined) this.#stop.abort();
    });
  }

  pause(): void {
    this.#isPaused = true;
    this.#stop.abort();
  }

  resume(): void {
    this.#isPaused = false;
    this.#goOn();
  }

  close(): void {
    this.#mode = 'over';
    this.#stop.abort();
    this.#goOn();
  }
}

/** @param hasPlace events were missed where the place is gone; without one there is nothing to miss */
function isFinal(error: Error | undefined, hasPlace: boolean): boolean {
  if (!(error instanceof ComityError)) return false;
  const { status } = error;
  return status === 410 ? hasPlace : status >= 400 && status < 500 && status !== 408 && status !== 429;
}

function retryAfterMs(error: Error | undefined): number {
  if (!(error instanceof ComityError)) return 0;
  return Math.min(retryAfterSecondsMax, error.retryAfter ?? 0) * 1000;
}

/** Waits, on a page at most until the network is back. */
async function untilOnline(ms: number, signal: AbortSignal): Promise<void> {
  const online = new AbortController();
  const wake = (): void => online.abort();
  const target = globalThis as Partial<EventTarget>;
  target.addEventListener?.('online', wake);
  await wait(ms, AbortSignal.any([signal, online.signal]));
  target.removeEventListener?.('online', wake);
}

type Attempts = { readonly [Kind in Transport]: (parts: Parts, attempt: Attempt) => Promise<void> };

const attempts: Attempts = { socket: hearBySocket, stream: hearByStream, poll: hearByPolling };

// The WebSocket.

async function hearBySocket({ baseUrl, session, send }: Parts, attempt: Attempt): Promise<void> {
  const { signal, patterns, after } = attempt;
  const url = absolute(`${baseUrl}/realtime`);
  url.protocol = url.protocol.replace('http', 'ws');
  const sent = { signal, once: true, timeout: openMs };
  const isKnown = session.sendsCookies || (await session.authorization()) !== undefined;
  // Without a credential no ticket is given; the read shows that the server answers.
  if (isKnown) {
    const { body } = await send('POST', '/realtime/tickets', sent);
    url.searchParams.set('ticket', (body as { readonly ticket: string }).ticket);
  } else await send('GET', '/events?limit=1&fields=id', sent);
  if (signal.aborted) return;
  const socket = new WebSocket(url, 'comity.v1');
  const close = (): void => socket.close();
  signal.addEventListener('abort', close);
  let isOpen = false;
  let heardAt = Date.now();
  const ask = (frame: object): void => {
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(frame));
  };
  // A connection that a sleeping machine lost looks open until something is sent.
  const watch = setInterval(() => {
    const silence = Date.now() - heardAt;
    if (silence > pingMs + openMs || (!isOpen && silence > openMs)) finish();
    else if (silence > pingMs) ask({ subscribe: [] });
  }, 5_000);
  let finish: (error?: Error) => void = () => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      finish = (error) => (error === undefined ? resolve() : reject(error));
      socket.onopen = () => {
        attempt.subscribe = (named) => ask({ subscribe: named });
        ask({ subscribe: patterns, ...(after === undefined ? {} : { after }) });
      };
      socket.onmessage = ({ data }) => {
        heardAt = Date.now();
        const frame = JSON.parse(String(data)) as Frame;
        if (frame.error !== undefined) return finish(new ComityError('answer_unknown', frame.error));
        if (frame.reset !== undefined) return finish(expired(frame));
        if (frame.subscribed !== undefined && isOpen && frame.subscribed.length === 0) return;
        if (frame.subscribed !== undefined) {
          isOpen = true;
          return attempt.opened();
        }
        const { event, etag, ...moved } = frame;
        if (event === undefined) return hearMoved(attempt, moved, undefined);
        const { object } = event.data;
        const data_ = etag === undefined ? event.data : { object: { ...(object as object), etag } };
        attempt.hear({ event: { ...event, data: data_ } }, event.id);
      };
      socket.onclose = () => finish(isOpen ? undefined : new Unsupported('the WebSocket was not opened'));
      signal.addEventListener('abort', () => finish());
    });
  } finally {
    clearInterval(watch);
    signal.removeEventListener('abort', close);
    attempt.subscribe = undefined;
    socket.onclose = null;
    socket.onmessage = null;
    close();
  }
}

type Frame = {
  readonly subscribed?: readonly string[];
  readonly event?: ClientEvent;
  readonly etag?: string;
  readonly error?: string;
  readonly reset?: unknown;
};

function hearMoved(attempt: Attempt, data: object, place: string | undefined): void {
  for (const [way, moved] of Object.entries(data))
    if (way === 'left' || way === 'entered') attempt.hear({ moved: [way, moved] }, place);
}

function expired(body: object): ComityError {
  return new ComityError(
    'position_expired',
    'events were missed that are no longer kept; read the lists again',
    {
      status: 410,
      body: body as Record<string, unknown>,
    },
  );
}

/** The query of the log for these patterns, with the tags of documents. */
function logQuery(patterns: readonly string[], after: string): string {
  const changes = ['created', 'updated', 'deleted'];
  const types = patterns.includes('*')
    ? []
    : patterns.flatMap((name) =>
        name.endsWith('.*') ? changes.map((change) => name.slice(0, -1) + change) : [name],
      );
  const named = types.map((type) => `&type=${encodeURIComponent(type)}`).join('');
  return `/events?fields=*,etag&after=${encodeURIComponent(after)}${named}`;
}

// The event stream (HTML, server-sent events), read here: the EventSource of browsers sends no credential, and ends for good at one 503.

async function hearByStream({ baseUrl, session, fetch }: Parts, attempt: Attempt): Promise<void> {
  const { signal, patterns, after } = attempt;
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), openMs);
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), silentMs);
  };
  try {
    const fetcher = fetch ?? ((url: string, init: RequestInit) => globalThis.fetch(url, init));
    const request = async (isAgain: boolean): Promise<Response> => {
      const authorization = await session.authorization();
      const response = await fetcher(baseUrl + logQuery(patterns, after ?? 'now'), {
        headers: { Accept: 'text/event-stream', ...(authorization && { Authorization: authorization }) },
        credentials: session.sendsCookies ? 'include' : 'omit',
        cache: 'no-store',
        signal: AbortSignal.any([signal, silent.signal]),
      });
      if (response.status === 401 && !isAgain && (await session.replace(authorization))) return request(true);
      return response;
    };
    const response = await request(false);
    const type = response.headers.get('Content-Type') ?? '';
    if (!response.ok) throw refusalIn(response, await response.json().catch(() => undefined));
    if (response.body === null || response.body === undefined || !type.startsWith('text/event-stream'))
      throw new Unsupported('the answer is no stream');
    let isOpen = false;
    for await (const message of messagesOf(response.body, () => {
      heard();
      if (!isOpen) attempt.opened();
      isOpen = true;
    })) {
      const data = JSON.parse(message.data) as object;
      if (message.event === 'reset') throw expired(data);
      if (message.event === 'left' || message.event === 'entered') hearMoved(attempt, data, message.id);
      else attempt.hear({ event: data as ClientEvent }, message.id);
    }
  } catch (error) {
    if (silent.signal.aborted) throw new Unsupported('the stream is silent');
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

type Message = { readonly id: string | undefined; readonly event: string; readonly data: string };

const member = /^([^:]*):? ?(.*)$/;
const lineEnd = /\r\n|\n|\r(?!$)/;

/** Reads messages of a stream. @param onPiece anything came, a comment too */
async function* messagesOf(body: ReadableStream<Uint8Array>, onPiece: () => void): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let [id, event, data]: [string | undefined, string, string[]] = [undefined, '', []];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onPiece();
      const lines = (rest + decoder.decode(value, { stream: true })).split(lineEnd);
      rest = lines.pop() ?? '';
      for (const text of lines) {
        if (text === '') {
          if (data.length > 0) yield { id, event, data: data.join('\n') };
          [event, data] = ['', []];
          continue;
        }
        const [, name, content = ''] = member.exec(text) ?? [];
        if (name === 'id') id = content;
        else if (name === 'event') event = content;
        else if (name === 'data') data.push(content);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // It may have failed already.
  }
}

// The feed, where streams do not come through.

async function hearByPolling({ send }: Parts, attempt: Attempt): Promise<void> {
  const { signal, patterns, after } = attempt;
  let place = after ?? (await pageAfter('now'));
  attempt.opened(place);
  while (!signal.aborted) place = await pageAfter(place, { Prefer: `wait=${pollSeconds}` });

  async function pageAfter(from: string, headers?: { readonly Prefer: string }): Promise<string> {
    const answer = await send('GET', logQuery(patterns, from), {
      signal,
      once: true,
      ...(headers && { headers }),
    });
    const { items, nextCursor } = answer.body as {
      items: readonly (ClientEvent | object)[];
      nextCursor: string;
    };
    for (const item of items)
      if ('type' in item) attempt.hear({ event: item }, item.id);
      else hearMoved(attempt, item, undefined);
    if (items.length > 0) attempt.opened(nextCursor);
    return nextCursor;
  }
}
