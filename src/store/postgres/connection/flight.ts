/** Calls that were asked for together, and what became of them: settled once, when all are answered or it is given up. */
import type { Call, Reply } from './call.ts';

export type FlightOptions = {
  readonly calls: readonly Call[];
  /** On the clock of `performance.now()`. */
  readonly endsAt: number;
  readonly resolve: (replies: readonly Reply[]) => void;
  readonly reject: (error: unknown) => void;
  readonly onSettled: (flight: Flight) => void;
};

export class Flight {
  readonly calls: readonly Call[];
  readonly endsAt: number;
  /** Sent a second time already. */
  repeated = false;
  readonly #options: FlightOptions;
  readonly #replies: Reply[] = [];
  #answered = 0;
  #failure: { readonly error: unknown } | undefined;
  #settled = false;

  constructor(options: FlightOptions) {
    this.calls = options.calls;
    this.endsAt = options.endsAt;
    this.#options = options;
  }

  get settled(): boolean {
    return this.#settled;
  }

  answer(at: number, reply: Reply): void {
    this.#replies[at] = reply;
    this.#count();
  }

  /** One call failed. The first that does is what the asker is told: in a transaction the others fail only with it. */
  refuse(error: unknown): void {
    this.#failure ??= { error };
    this.#count();
  }

  /** Nothing more will be answered. */
  abandon(error: unknown): void {
    if (this.#settled) return;
    this.#failure ??= { error };
    this.#settle();
  }

  #count(): void {
    this.#answered += 1;
    if (this.#answered === this.calls.length) this.#settle();
  }

  #settle(): void {
    this.#settled = true;
    this.#options.onSettled(this);
    if (this.#failure === undefined) this.#options.resolve(this.#replies);
    else this.#options.reject(this.#failure.error);
  }
}
