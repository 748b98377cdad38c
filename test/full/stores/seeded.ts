/**
 * A clock and a randomness that two programs can be given alike. Both are set anew for each request, so that a program
 * that asks them more often than the other does not leave it behind for good.
 */

export type Seeded = {
  readonly clock: () => number;
  readonly random: { readonly digit: () => number; readonly bytes: (count: number) => Buffer };
  set(time: number, seed: number): void;
};

export function createSeeded(time: number): Seeded {
  let now = time;
  let state = 1;
  // Mulberry32: 32 bits of state, and every bit of them in each number.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return {
    clock: () => now,
    random: {
      digit: () => next() % 32,
      bytes: (count) => Buffer.from(Array.from({ length: count }, () => next() & 255)),
    },
    set(newTime, seed) {
      now = newTime;
      state = seed | 0;
    },
  };
}
