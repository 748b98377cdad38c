/**
 * The queue of a sender's messages that are due (work/due-queue.ts), and how senders share what the process hands on at once. The buffer holds
 * no bodies.
 */
import type { DeclaredSender } from '../../config/senders.ts';
import type { Received } from '../../model/received.ts';
import type { Row } from '../../store/store.ts';
import { DueQueue, type DueQueueOptions } from '../work/due-queue.ts';
import type { HandOn } from './hand-on.ts';

/** A message that was due when it was read. */
export type DueMessage = Pick<Received, 'id' | 'dedupeKey'>;

export type SenderQueueOptions = Omit<DueQueueOptions, 'id'> & {
  readonly sender: DeclaredSender;
  readonly handOn: HandOn;
  readonly share: Share;
  readonly inFlightMax: number;
};

/** Rows that one read brings besides what is taken. */
const wantedMin = 32;
const wantedMax = 256;

export class SenderQueue extends DueQueue<DueMessage> {
  readonly sender: DeclaredSender;
  readonly handOn: HandOn;
  readonly share: Share;
  readonly inFlightMax: number;
  /** When it was paused last, in milliseconds since the epoch. */
  pausedAt = 0;
  /** Messages whose handler is run again, or waits to be: as long as there are some, no other begins. */
  rerunning = 0;
  #rerun: Promise<void> = Promise.resolve();

  constructor({ sender, handOn, share, inFlightMax, ...options }: SenderQueueOptions) {
    super({ ...options, id: sender.name });
    this.sender = sender;
    this.handOn = handOn;
    this.share = share;
    this.inFlightMax = inFlightMax;
  }

  get lane(): string {
    return `sender/${this.id}`;
  }

  get wanted(): number {
    return this.taken + Math.min(Math.max(2 * this.inFlightMax, wantedMin), wantedMax);
  }

  /** Resolves in turn with what lets the next one go: what lost a race against its own kind runs again one at a time. */
  async rerunTurn(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#rerun;
    this.#rerun = promise;
    this.rerunning += 1;
    await before;
    return () => {
      this.rerunning -= 1;
      resolve();
    };
  }

  protected parse({ doc }: Row): { readonly due: DueMessage; readonly dueAt: string | null } {
    const { id, dueAt, dedupeKey } = JSON.parse(doc) as Received;
    return { due: { id, dedupeKey }, dueAt };
  }
}

/** What is kept of a sender. */
type Share = {
  /** Messages that are being handed on. */
  inFlight: number;
  /** How many of these no other sender can prevent. */
  readonly kept: number;
};

/**
 * How the senders share what a process hands on at once. Half of it is divided among them, and each sender's part of that half is kept
 * free for it; the other half is anyone's. So a sender whose messages all hang, or whose backlog is long, never holds up another, and one that is
 * alone in having something to do still has more than half of the whole.
 */
export class Shares {
  readonly #max: number;
  readonly #keptEach: number;
  #inFlight = 0;
  /** What is kept free and not used. */
  #unused = 0;

  /**
   * @param max messages handed on at once, at least 1
   * @param senders that hand on
   */
  constructor(max: number, senders: number) {
    this.#max = max;
    this.#keptEach = Math.max(1, Math.floor(max / (2 * Math.max(1, senders))));
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether any more may be handed on, whichever sender it is of. */
  get hasRoom(): boolean {
    return this.#inFlight < this.#max;
  }

  /** @param inFlightMax messages of the sender at once */
  add(inFlightMax: number): Share {
    const kept = Math.min(this.#keptEach, inFlightMax);
    this.#unused += kept;
    return { inFlight: 0, kept };
  }

  admits(share: Share): boolean {
    if (!this.hasRoom) return false;
    return share.inFlight < share.kept || this.#inFlight + this.#unused < this.#max;
  }

  begin(share: Share): void {
    if (share.inFlight < share.kept) this.#unused -= 1;
    share.inFlight += 1;
    this.#inFlight += 1;
  }

  end(share: Share): void {
    share.inFlight -= 1;
    this.#inFlight -= 1;
    if (share.inFlight < share.kept) this.#unused += 1;
  }
}
