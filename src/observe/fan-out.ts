/**
 * One `Observe` in front of several sinks. Sinks are called in order, in the turn of the fact, and must not throw.
 */
import type { Observe } from './observation.ts';

export function fanOut(...sinks: readonly Observe[]): Observe {
  const [first, second] = sinks;
  // The program has two sinks, log and metrics: worth a path without a loop.
  if (sinks.length === 2 && first !== undefined && second !== undefined) {
    return (observation) => {
      first(observation);
      second(observation);
    };
  }
  return (observation) => {
    for (const sink of sinks) sink(observation);
  };
}
