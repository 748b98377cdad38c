/**
 * Who wants a type, without looking at everyone: those with one of the patterns that cover it (`patternsOfType`). Made anew whenever the
 * endpoints change.
 */
import { patternsOfType } from '../../../model/event-pattern.ts';

export type PatternIndex<Value> = {
  /** Everyone with a pattern that matches the type, once each. */
  find(type: string): readonly Value[];
};

export function createPatternIndex<Value>(
  entries: Iterable<readonly [value: Value, patterns: readonly string[]]>,
): PatternIndex<Value> {
  const byPattern = new Map<string, Value[]>();
  for (const [value, patterns] of entries) {
    for (const pattern of patterns) {
      const values = byPattern.get(pattern);
      if (values === undefined) byPattern.set(pattern, [value]);
      else values.push(value);
    }
  }
  return {
    find(type) {
      const found = new Set<Value>();
      for (const pattern of patternsOfType(type)) {
        for (const value of byPattern.get(pattern) ?? []) found.add(value);
      }
      return [...found];
    },
  };
}
