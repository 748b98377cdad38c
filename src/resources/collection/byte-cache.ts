/**
 * A least-recently-used cache bounded by the size of what it holds.
 */

export type ByteCache<T> = {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
};

/**
 * @param sizeMax keys and values together, in what `sizeOf` counts; a value of more than an eighth of it is not kept
 */
export function createByteCache<T>(sizeMax: number, sizeOf: (value: T) => number): ByteCache<T> {
  const entries = new Map<string, T>();
  let size = 0;

  function forget(key: string, value: T): void {
    entries.delete(key);
    size -= key.length + sizeOf(value);
  }

  return {
    get(key) {
      const value = entries.get(key);
      if (value === undefined) return undefined;
      // A Map keeps insertion order, so the first entry is the one used longest ago.
      entries.delete(key);
      entries.set(key, value);
      return value;
    },
    set(key, value) {
      const added = key.length + sizeOf(value);
      if (added > sizeMax / 8) return;
      const before = entries.get(key);
      if (before !== undefined) forget(key, before);
      entries.set(key, value);
      size += added;
      for (const [oldKey, oldValue] of entries) {
        if (size <= sizeMax) break;
        forget(oldKey, oldValue);
      }
    },
  };
}
