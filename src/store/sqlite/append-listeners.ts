/**
 * Who is called when events were appended. Apart from the store, because the writer calls them and the store is made after
 * the writer.
 */
export class AppendListeners {
  readonly #listeners = new Set<() => void>();

  /** Adds a listener. @returns what stops it */
  add(listener: () => void): () => void {
    // Wrapped, so that one listener added twice is called twice and stopped once.
    const call = (): void => listener();
    this.#listeners.add(call);
    return () => {
      this.#listeners.delete(call);
    };
  }

  callAll(): void {
    for (const listener of this.#listeners) listener();
  }
}
