/**
 * The argument of an application's functions: some members of a run, as if they were the object's own, so that a function may spread and
 * print them. Most functions read a part of it, so a run makes each member when it is read, by an accessor of its class. In an object
 * with accessors of its own each would have a hidden class of its own, too: 7 us for each write, most of it in collections.
 */
import { inspect } from 'node:util';

/** The run of a function. */
export abstract class ShownRun {
  /** What the function gets: `showing(...)(this)`. */
  abstract readonly given: object;

  /** For console.log, which finds this behind the proxy and calls it with the proxy. */
  [inspect.custom](): object {
    return { ...this };
  }
}

/** @returns shows the members of a run, and nothing else of it */
export function showing<Run extends ShownRun>(
  members: readonly (keyof Run & string)[],
): (run: Run) => object {
  const names: ReadonlySet<unknown> = new Set(members);
  const isShown = (name: unknown): name is keyof Run & string => names.has(name);
  const handler: ProxyHandler<Run> = {
    get: (run, name) => (isShown(name) ? run[name] : undefined),
    set(run, name, value) {
      if (isShown(name)) run[name] = value;
      return isShown(name);
    },
    has: (_run, name) => isShown(name),
    ownKeys: () => [...members],
    getOwnPropertyDescriptor: (run, name) =>
      isShown(name) ? { value: run[name], enumerable: true, configurable: true } : undefined,
  };
  return (run) => new Proxy(run, handler);
}
