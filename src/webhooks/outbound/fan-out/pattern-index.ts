/**
 * Who wants a type, without looking at everyone: by exact types, by what stands before each dot of the type, and those who want
 * everything. Made anew whenever the endpoints change.
 */
import { compilePattern } from './pattern.ts';

export type PatternIndex<Value> = {
  /** Everyone with a pattern that matches the type, once each. */
  find(type: string): readonly Value[];
};

export function createPatternIndex<Value>(
  entries: Iterable<readonly [value: Value, patterns: readonly string[]]>,
): PatternIndex<Value> {
  const exact = new Map<string, Value[]>();
  const below = new Map<string, Value[]>();
  const all: Value[] = [];
  for (const [value, patterns] of entries) {
    for (const text of patterns) {
      const pattern = compilePattern(text);
      if (pattern.kind === 'all') all.push(value);
      else add(pattern.kind === 'exact' ? exact : below, pattern.text, value);
    }
  }
  return {
    find(type) {
      const found = new Set(all);
      for (const value of exact.get(type) ?? []) found.add(value);
      // The last character is left out: nothing would stand after its dot.
      for (let dot = type.indexOf('.'); dot >= 0 && dot < type.length - 1; dot = type.indexOf('.', dot + 1)) {
        for (const value of below.get(type.slice(0, dot)) ?? []) found.add(value);
      }
      return [...found];
    },
  };
}

function add<Value>(lists: Map<string, Value[]>, text: string, value: Value): void {
  const list = lists.get(text);
  if (list === undefined) lists.set(text, [value]);
  else list.push(value);
}
