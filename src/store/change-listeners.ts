/**
 * Who is called when units changed a table (`onChange`, `onAppend` of the contract). Apart from the stores, because what learns of
 * a change is made before the store is.
 */
export class ChangeListeners {
  readonly #byTable = new Map<string, Set<() => void>>();

  /** Adds a listener. @returns what stops it */
  add(table: string, listener: () => void): () => void {
    // Wrapped, so that one listener added twice is called twice and stopped once.
    const call = (): void => listener();
    let listeners = this.#byTable.get(table);
    if (listeners === undefined) {
      listeners = new Set();
      this.#byTable.set(table, listeners);
    }
    listeners.add(call);
    return () => {
      this.#byTable.get(table)?.delete(call);
    };
  }

  /** Calls everyone who listens to one of the tables, once for each of them. */
  call(tables: Iterable<string>): void {
    for (const table of tables) {
      for (const listener of this.#byTable.get(table) ?? []) listener();
    }
  }
}
