/**
 * The part of an invalid document in which faults are looked for. TypeBox finds out that a document is invalid in
 * a millisecond for a megabyte, but lists errors at about 1 µs an item whether it still keeps them or not: half a
 * million bad items would stop the event loop for 0.7 s. So arrays are cut where the document gets long.
 */

import type { Json } from '../../http/syntax/json.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { isMembers, setMember } from './json-value.ts';

export type FaultSample = {
  /** The value itself where nothing was cut. */
  readonly value: unknown;
  /** Pointers of the arrays that were cut, the outer before the inner; at most `cutsMax`. */
  readonly cut: readonly string[];
};

const cutsMax = 20;

/** Copies arrays and objects until `valuesMax` values are seen; after that arrays end. Objects are never cut. */
export function sampleForFaults(value: unknown, valuesMax: number): FaultSample {
  const sampling = new Sampling(valuesMax);
  const sample = sampling.copy(value as Json, []);
  return sampling.cut.length === 0 ? { value, cut: [] } : { value: sample, cut: sampling.cut };
}

class Sampling {
  readonly cut: string[] = [];
  #left: number;

  constructor(valuesMax: number) {
    this.#left = valuesMax;
  }

  copy(value: Json, path: (string | number)[]): Json {
    this.#left -= 1;
    if (Array.isArray(value)) return this.#copyItems(value, path);
    if (!isMembers(value)) return value;
    const copy = {};
    for (const name of Object.keys(value)) {
      path.push(name);
      setMember(copy, name, this.copy(value[name] ?? null, path));
      path.pop();
    }
    return copy;
  }

  #copyItems(items: readonly Json[], path: (string | number)[]): Json[] {
    const copy: Json[] = [];
    for (const [index, item] of items.entries()) {
      if (this.#left <= 0) {
        if (this.cut.length < cutsMax) this.cut.push(formatJsonPointer(path));
        break;
      }
      path.push(index);
      copy.push(this.copy(item, path));
      path.pop();
    }
    return copy;
  }
}
