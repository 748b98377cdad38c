/** Finds everyone who wants a type, without looking at those who do not: by the patterns that cover it (`patternsOfType`). */
import { patternsOfType } from '../../../model/event-pattern.ts';

export type PatternIndex<Value> = {
  add(value: Value, patterns: readonly string[]): void;
  remove(value: Value, patterns: readonly string[]): void;
  /** Everyone with a pattern that matches the type, once each. */
  find(type: string): readonly Value[];
};

export function createPatternIndex<Value>(): PatternIndex<Value> {
  const byPattern = new Map<string, Set<Value>>();
  return {
    add(value, patterns) {
      for (const pattern of patterns) {
        const values = byPattern.get(pattern);
        if (values === undefined) byPattern.set(pattern, new Set([value]));
        else values.add(value);
      }
    },
    remove(value, patterns) {
      for (const pattern of patterns) {
        const values = byPattern.get(pattern);
        values?.delete(value);
        if (values?.size === 0) byPattern.delete(pattern);
      }
    },
    find(type) {
      const found = new Set<Value>();
      for (const pattern of patternsOfType(type)) {
        for (const value of byPattern.get(pattern) ?? []) found.add(value);
      }
      return [...found];
    },
  };
}
