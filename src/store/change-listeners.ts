/** Listeners for changes of tables (`onChange`, `onAppend` of the contract), apart from the store because they exist before it. */
import type { Change } from './store.ts';

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

/** True for a change that only expects a row, or its absence. */
export function isOnlyExpected({ expect, next, stays }: Change): boolean {
  return stays === true || (next === null && 'absent' in expect);
}

/** True for a change that removes a row, softly or not. */
export function isLeaving({ expect, next, stays }: Change): boolean {
  return stays !== true && 'rev' in expect && (next === null || next.deletedAt !== null);
}
