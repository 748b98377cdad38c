/**
 * What one caller was admitted in one window, by this process and, as far as it knows, by all.
 */

/** Where counters are shared, whoever changes one hands it over here. */
export type Share = (counter: Counter) => void;

export class Counter {
  /** Which limit, and whether the caller is a principal or an address. */
  readonly meter: string;
  readonly caller: string;
  /** The minute since the epoch. */
  readonly window: number;
  admitted = 0;
  /** Of those, what no other process was told yet. */
  untold = 0;
  /** Waits for its turn to be told. */
  waits = false;
  /** The same caller's counter of the window before. */
  before: Counter | undefined;

  constructor(meter: string, caller: string, window: number) {
    this.meter = meter;
    this.caller = caller;
    this.window = window;
  }

  /** What all processes call it. */
  get key(): string {
    return `rate ${this.meter} ${this.window} ${this.caller}`;
  }
}
