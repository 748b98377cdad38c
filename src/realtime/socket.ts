/**
 * One WebSocket of `comity.v1`: its subscriptions and its events. It knows messages and a peer, not the transport.
 *
 * Modes: `live`, the hub passes events to it; `behind`, a catch-up reads missed events from the log and the hub passes
 * nothing, so that the client gets all events in log order; `closed`. Further catch-ups wait meanwhile.
 *
 * A live socket with a slow client is closed with 1013, because its frames wait in memory; a catch-up waits for its
 * client instead, because its events are in the log. A message that is malformed is answered and counted like any other.
 */
import type { ConversationListener, ConversationPeer } from '../http/message.ts';
import { stillCounted, windowMs } from '../kernel/rate-limit/rate-limiter.ts';
import type { Known } from '../model/principal.ts';
import { isAfter } from '../store/follow-log.ts';
import type { LogPosition, MaybePromise } from '../store/store.ts';
import { whenKnown } from '../store/store.ts';
import { CatchUp, type Missed, type RealtimeLog } from './catch-up.ts';
import type { Listener } from './hub.ts';
import { beginning, type LoggedEvent, type Readers } from './readers.ts';
import {
  type ClientFrame,
  errorFrame,
  readClientFrame,
  type Subscription,
  subscribedFrame,
  unplaced,
} from './subprotocol.ts';

export type SocketLimits = {
  readonly realtimePatternsMax: number;
  readonly realtimeBufferBytesMax: number;
  /** Each message may cost a read of the log, and a malformed one its answer. */
  readonly realtimeMessagesPerMinuteMax: number;
};

/** The parts that all sockets share; made once. */
type SharedSockets = RealtimeLog & {
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly limits: SocketLimits;
};

type OpenedSocket = {
  readonly readers: Readers;
  /** The caller of the handshake; undefined: opened without a credential. */
  readonly known: Known | undefined;
  /** The result of `hub.head` when the conversation was agreed on. */
  readonly head: LogPosition;
  /** Called once. */
  readonly onClosed: () => void;
};

/** Too many messages, in the range that RFC 6455 §7.4.2 leaves to applications; the last digits are those of the status 429. */
export const tooManyMessages = 4429;
/** Octets of a reason (RFC 6455 §5.5); the reasons here are ASCII. */
const reasonBytesMax = 123;

export class RealtimeSocket implements Listener, ConversationListener {
  readonly #shared: SharedSockets;
  readonly #peer: ConversationPeer;
  readonly #readers: Readers;
  readonly #onClosed: () => void;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #waiting: Missed[] = [];
  #mode: 'live' | 'behind' | 'closed' = 'live';
  #catchUp: CatchUp | undefined;
  readonly #stopWatching: (() => void) | undefined;
  readonly confirm: Listener['confirm'];
  /** Events that the hub announces up to here have already been sent. */
  #sentTo: LogPosition = beginning;
  #lastEvent: LoggedEvent | undefined;
  #lastId: string | undefined;
  /** The peer reported a full buffer, and has not called `onReady` since. */
  #isFull = false;
  #octetsSent = 0;
  #minute = 0;
  #messages = 0;
  #messagesBefore = 0;

  constructor(
    shared: SharedSockets,
    peer: ConversationPeer,
    { readers, known, head, onClosed }: OpenedSocket,
  ) {
    this.#shared = shared;
    this.#peer = peer;
    this.#readers = readers;
    this.#onClosed = onClosed;
    const stands = known?.stands;
    this.confirm = stands && (() => this.#confirmBy(stands));
    peer.onReady(() => {
      this.#isFull = false;
      this.#catchUp?.goOn();
    });
    shared.hub.enter(this, head);
    // Calls back at once if the credential ended while the socket was being opened.
    const stop = known?.onEnd(() => this.#end());
    if (this.#mode === 'closed') stop?.();
    else this.#stopWatching = stop;
  }

  /** Patterns of its subscriptions. */
  get patterns(): Iterable<string> {
    return this.#subscriptions.keys();
  }

  /** Octets of the events that were sent. */
  get octetsSent(): number {
    return this.#octetsSent;
  }

  onMessage(text: string): void {
    if (this.#mode === 'closed' || !this.#mayGoOn()) return;
    const read = readClientFrame(text, this.#shared.limits.realtimePatternsMax);
    const error = read.ok ? this.#obey(read.frame) : read.error;
    if (error !== undefined) this.#say(errorFrame(error));
    else this.#say(subscribedFrame(this.#subscriptions.keys()));
    if (this.#mode === 'live') this.#catchUpNext();
  }

  onClosed(): void {
    this.#leave();
  }

  /** Closes the socket if its credential has ended, also in another process before what was read from the log. */
  #confirmBy(stands: NonNullable<Known['stands']>): MaybePromise<void> {
    if (this.#mode === 'closed') return undefined;
    return whenKnown(stands(), (good) => {
      if (!good) this.#end();
    });
  }

  #end(): void {
    this.#close(1008, 'credential ended');
  }

  hear(event: LoggedEvent, frame: Buffer): void {
    if (this.#lastEvent === event || this.#mode !== 'live') return;
    this.#lastEvent = event;
    if (!isAfter(event.position, this.#sentTo)) return;
    if (this.#mayWait()) this.#send(event.entry.id, frame);
  }

  hearOfChildren(event: LoggedEvent, frame: Buffer): void {
    if (this.#mode !== 'live' || !isAfter(event.position, this.#sentTo)) return;
    // The client resumes after the event itself, or an earlier one, and then hears it again.
    if (this.#mayWait()) this.#send(undefined, frame);
  }

  fail(): void {
    this.#close(1011, 'the event log cannot be read; reconnect later');
  }

  /** @returns the reason if the frame is refused */
  #obey(frame: ClientFrame): string | undefined {
    if (frame.kind === 'unsubscribe') {
      this.#unsubscribe(frame.patterns);
      return undefined;
    }
    const { realtimePatternsMax } = this.#shared.limits;
    const fresh = new Set(frame.patterns.filter((pattern) => !this.#subscriptions.has(pattern)));
    if (this.#subscriptions.size + fresh.size > realtimePatternsMax) {
      return `a WebSocket may subscribe to at most ${realtimePatternsMax} patterns`;
    }
    this.#subscribe(fresh, frame.after);
    return undefined;
  }

  #subscribe(fresh: ReadonlySet<string>, after: string | undefined): void {
    const { hub } = this.#shared;
    const made = new Set<Subscription>();
    for (const pattern of fresh) {
      const subscription = { pattern, since: after === undefined ? hub.position : unplaced };
      this.#subscriptions.set(pattern, subscription);
      made.add(subscription);
      if (this.#mode === 'live' && after === undefined) hub.subscribe(pattern, this.#readers, this);
    }
    if (after !== undefined && made.size > 0) this.#waiting.push({ after, fresh: made });
  }

  #unsubscribe(patterns: readonly string[]): void {
    const { hub } = this.#shared;
    for (const pattern of patterns) {
      this.#subscriptions.delete(pattern);
      hub.unsubscribe(pattern, this.#readers, this);
    }
  }

  #catchUpNext(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#withdraw();
    this.#mode = 'behind';
    const socket = {
      ...{ readers: this.#readers, memory: this.#peer.memory },
      all: () => this.#subscriptions.values(),
      send: (id: string | undefined, frame: string | Buffer) => this.#send(id, frame),
      done: (cursor: LogPosition) => this.#catchUpDone(cursor),
      confirm: () => this.confirm?.(),
      fail: () => this.fail(),
    };
    this.#catchUp = new CatchUp(this.#shared, socket, next);
    this.#catchUp.start();
  }

  #catchUpDone(cursor: LogPosition): void {
    const { hub } = this.#shared;
    this.#catchUp = undefined;
    this.#mode = 'live';
    // With other writing processes, a client may know of an event before this hub announces it.
    this.#sentTo = cursor;
    for (const { pattern, since } of this.#subscriptions.values()) {
      if (since !== unplaced) hub.subscribe(pattern, this.#readers, this);
    }
    this.#catchUpNext();
  }

  #send(id: string | undefined, frame: string | Uint8Array): boolean {
    this.#lastId = id ?? this.#lastId;
    this.#octetsSent += Buffer.byteLength(frame);
    const hasRoom = this.#peer.send(frame);
    if (!hasRoom) this.#isFull = true;
    return hasRoom;
  }

  #say(frame: string): void {
    if (this.#mayWait() && !this.#peer.send(frame)) this.#isFull = true;
  }

  /** Closes the socket and returns false if too much waits for the client. */
  #mayWait(): boolean {
    const { limits } = this.#shared;
    if (!this.#isFull || this.#peer.waitingBytes() <= limits.realtimeBufferBytesMax) return true;
    // Events are sent in order, so the client can resume after the last one.
    const reason = `fell behind; resume after ${this.#lastId ?? ''}`;
    const isNamed = this.#lastId !== undefined && reason.length <= reasonBytesMax;
    this.#close(1013, isNamed ? reason : 'fell behind');
    return false;
  }

  /** Counts the messages of the last minute as a rate limit counts requests. */
  #mayGoOn(): boolean {
    const { clock, limits } = this.#shared;
    const { realtimeMessagesPerMinuteMax: most } = limits;
    const now = clock();
    const minute = Math.floor(now / windowMs);
    if (minute !== this.#minute) {
      this.#messagesBefore = minute === this.#minute + 1 ? this.#messages : 0;
      this.#messages = 0;
      this.#minute = minute;
    }
    this.#messages += 1;
    if (this.#messages + stillCounted(this.#messagesBefore, now % windowMs) <= most) return true;
    this.#close(
      tooManyMessages,
      `more than ${most} messages in a minute (COMITY_REALTIME_MESSAGES_PER_MINUTE_MAX)`,
    );
    return false;
  }

  #close(code: number, reason: string): void {
    if (this.#mode === 'closed') return;
    this.#leave();
    this.#peer.close(code, reason);
  }

  #leave(): void {
    if (this.#mode === 'closed') return;
    this.#mode = 'closed';
    this.#catchUp?.stop();
    this.#stopWatching?.();
    this.#withdraw();
    this.#waiting.length = 0;
    this.#subscriptions.clear();
    this.#shared.hub.leave(this);
    this.#onClosed();
  }

  #withdraw(): void {
    const { hub } = this.#shared;
    for (const pattern of this.#subscriptions.keys()) hub.unsubscribe(pattern, this.#readers, this);
  }
}
