/**
 * The queue of a sender's due messages (work/due-queue.ts), and the division of the process's capacity among senders.
 * The buffer holds no bodies.
 */
import type { Source } from '../../config/senders.ts';
import type { Received } from '../../model/received.ts';
import type { Row } from '../../store/store.ts';
import { type Budget, DueQueue, type DueRows } from '../../work/due-queue.ts';
import type { Breaker } from '../../work/retries.ts';
import type { HandOn } from './hand-on.ts';

export type DueMessage = Pick<Received, 'id' | 'dedupeKey' | 'contentLength'>;

/** The parts of a queue that its sender determines. */
type SenderParts = Pick<SenderQueue, 'sender' | 'handOn' | 'share' | 'inFlightMax'>;

/** Rows of one read in addition to taken ones. */
const wantedMin = 32;
const wantedMax = 256;

export class SenderQueue extends DueQueue<DueMessage> {
  readonly sender: Source;
  readonly handOn: HandOn;
  readonly share: Share;
  readonly inFlightMax: number;
  /** Messages whose handler runs again, or waits to: meanwhile no other begins. */
  rerunning = 0;
  #rerun: Promise<void> = Promise.resolve();

  constructor(
    rows: DueRows,
    breaker: Breaker,
    budget: Budget,
    { sender, handOn, share, inFlightMax }: SenderParts,
  ) {
    super(rows, breaker, budget);
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

  /**
   * Resolves when it is this message's turn, with the function that ends the turn: superseded handlers of a sender run
   * again one at a time.
   */
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
    const { id, dueAt, dedupeKey, contentLength } = JSON.parse(doc) as Received;
    return { due: { id, dedupeKey, contentLength }, dueAt };
  }
}

type Share = {
  inFlight: number;
  /** Places reserved for this sender. */
  readonly kept: number;
};

/**
 * Divides the messages that a process hands on at once. Half of the places are reserved, in equal parts, for the
 * senders; any sender may use the other half. So a sender whose messages all hang, or that has a long backlog, never
 * blocks another, and a sender that is alone with work has more than half of the whole.
 */
export class Shares {
  readonly #max: number;
  readonly #keptEach: number;
  #inFlight = 0;
  /** Reserved places that are unused. */
  #unused = 0;

  /**
   * @param max messages handed on at once, at least 1
   * @param senders number of senders that hand on
   */
  constructor(max: number, senders: number) {
    this.#max = max;
    this.#keptEach = Math.max(1, Math.floor(max / (2 * Math.max(1, senders))));
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get hasRoom(): boolean {
    return this.#inFlight < this.#max;
  }

  /** @param inFlightMax the sender's limit of concurrent messages */
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
