/**
 * Patterns of event types that an endpoint wants (surface "Webhooks out"): `products.created` is that type alone, `products.*` every type
 * with one or more segments after `products`, `*` everything, what the program says of endpoints too. A star stands for whole
 * segments at the end and nowhere else, so that an endpoint is found by a look at each segment of a type (pattern-index.ts).
 */
import { eventTypeFault } from '../../../config/event-types.ts';

export type Pattern =
  | { readonly kind: 'all' }
  /** `text`: the type itself, or what stands before `.*`. */
  | { readonly kind: 'exact' | 'below'; readonly text: string };

/** Of any text: one that `refusePattern` refuses matches no type. */
export function compilePattern(text: string): Pattern {
  if (text === '*') return { kind: 'all' };
  return text.endsWith('.*') ? { kind: 'below', text: text.slice(0, -2) } : { kind: 'exact', text };
}

export function matchesPattern(pattern: Pattern, type: string): boolean {
  if (pattern.kind === 'all') return true;
  const { text } = pattern;
  if (pattern.kind === 'exact') return type === text;
  return type.length > text.length + 1 && type.charAt(text.length) === '.' && type.startsWith(text);
}

/** What is wrong with a pattern, as a sentence; undefined: nothing. */
export function refusePattern(text: string): string | undefined {
  const pattern = compilePattern(text);
  if (pattern.kind === 'all') return undefined;
  if (pattern.text.includes('*')) {
    return 'a star in a pattern stands for everything after a dot at its end, as in products.*, or alone';
  }
  const fault = eventTypeFault(pattern.text);
  return fault === undefined ? undefined : `a pattern ${fault}, and may end with .* or be * alone`;
}
