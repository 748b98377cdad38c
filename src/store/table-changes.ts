/** The listeners of a store for changes of tables (`onChange`, `onAppend` of the contract), apart from it because they exist before it. */

export class ChangeListeners {
  readonly #byTable = new Map<string, Set<() => void>>();

  /** @returns a function that removes the listener */
  add(table: string, listener: () => void): () => void {
    // Wrapped, so that a listener added twice is called twice and removed once.
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

  call(tables: Iterable<string>): void {
    for (const table of tables) {
      for (const listener of this.#byTable.get(table) ?? []) listener();
    }
  }
}
