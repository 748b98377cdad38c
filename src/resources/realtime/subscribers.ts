/**
 * Who wants events of which types, by pattern and within that by audience: an event costs a look for each segment of its type, one
 * decision for each audience that wants it, and one call for each socket.
 */
import { patternsOfType } from '../../model/event-pattern.ts';
import type { Readers } from './readers.ts';

export class Subscribers<Socket> {
  readonly #byPattern = new Map<string, Map<Readers, Set<Socket>>>();

  add(pattern: string, readers: Readers, socket: Socket): void {
    let byReaders = this.#byPattern.get(pattern);
    if (byReaders === undefined) {
      byReaders = new Map();
      this.#byPattern.set(pattern, byReaders);
    }
    const sockets = byReaders.get(readers);
    if (sockets === undefined) byReaders.set(readers, new Set([socket]));
    else sockets.add(socket);
  }

  delete(pattern: string, readers: Readers, socket: Socket): void {
    const byReaders = this.#byPattern.get(pattern);
    const sockets = byReaders?.get(readers);
    if (byReaders === undefined || sockets === undefined) return;
    sockets.delete(socket);
    if (sockets.size === 0) byReaders.delete(readers);
    if (byReaders.size === 0) this.#byPattern.delete(pattern);
  }

  /** Those who want the type, by pattern: one that is subscribed to several which match comes several times. */
  *of(type: string): Iterable<readonly [Readers, ReadonlySet<Socket>]> {
    for (const pattern of patternsOfType(type)) {
      const byReaders = this.#byPattern.get(pattern);
      if (byReaders !== undefined) yield* byReaders;
    }
  }

  /** Patterns that somebody is subscribed to, for tests. */
  get patterns(): number {
    return this.#byPattern.size;
  }
}
