/**
 * Matches a text against a `like` pattern: `%` any run, `_` any one character, `\` escapes the next character.
 * Characters are code points, as in both stores.
 *
 * The pattern is split at `%` into segments, each searched after the one before it: the leftmost match suffices, since
 * the next `%` covers the rest. The cost is at most the product of both lengths; `check` is called often enough for a
 * caller to stop the search by throwing.
 */

export type LikeMatcher = (text: string) => boolean;

/** A literal text, or one character of any kind. */
type Step = string | typeof anyOne;
type Segment = readonly Step[];

const anyOne = Symbol('any one character');

/** Characters searched between two calls of `check`. */
const windowCharacters = 16_384;
const noCheck = (): void => undefined;

export function createLikeMatcher(pattern: string, check: () => void = noCheck): LikeMatcher {
  const segments = segmentsOf(pattern);
  const first = segments[0] ?? [];
  if (segments.length === 1) return (text) => endOf(text, 0, first) === text.length;
  const last = segments.at(-1) ?? [];
  const between = segments.slice(1, -1).filter((segment) => segment.length > 0);
  return (text) => {
    let at = endOf(text, 0, first);
    for (const segment of between) {
      if (at === -1) return false;
      at = find(text, at, segment, check);
    }
    if (at === -1) return false;
    const start = startOf(text, last);
    return start >= at && endOf(text, start, last) === text.length;
  };
}

/** True if the text contains the term; calls `check` in between. */
export function holds(text: string, term: string, check: () => void): boolean {
  return indexOf(text, term, 0, check) !== -1;
}

/** One segment more than there are `%`. */
function segmentsOf(pattern: string): readonly Segment[] {
  const segments: Step[][] = [];
  let steps: Step[] = [];
  let literal = '';
  const endLiteral = (): void => {
    if (literal !== '') steps.push(literal);
    literal = '';
  };
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern.charAt(index);
    if (character === '%' || character === '_') endLiteral();
    if (character === '%') {
      segments.push(steps);
      steps = [];
    } else if (character === '_') steps.push(anyOne);
    else if (character === '\\' && index + 1 < pattern.length) {
      index += 1;
      literal += pattern.charAt(index);
    } else literal += character;
  }
  endLiteral();
  segments.push(steps);
  return segments;
}

/** The end of the segment that begins at `at`; -1 if it does not match there. */
function endOf(text: string, at: number, segment: Segment): number {
  let end = at;
  for (const step of segment) {
    if (step === anyOne) {
      if (end >= text.length) return -1;
      end += isPair(text, end) ? 2 : 1;
    } else {
      if (!text.startsWith(step, end)) return -1;
      end += step.length;
    }
  }
  return end;
}

/** The start of a segment that ends the text; -1 if the text is too short. */
function startOf(text: string, segment: Segment): number {
  let start = text.length;
  for (let index = segment.length - 1; index >= 0; index -= 1) {
    const step = segment[index] ?? anyOne;
    if (step !== anyOne) start -= step.length;
    else start -= start >= 2 && isPair(text, start - 2) ? 2 : 1;
    if (start < 0) return -1;
  }
  return start;
}

/** The end of the leftmost match of the segment at or after `from`; -1 without a match. */
function find(text: string, from: number, segment: Segment, check: () => void): number {
  const [first] = segment;
  let untilCheck = windowCharacters;
  for (let at = from; at <= text.length; ) {
    if (typeof first === 'string') {
      at = indexOf(text, first, at, check);
      if (at === -1) return -1;
    }
    const end = endOf(text, at, segment);
    if (end !== -1) return end;
    at += isPair(text, at) ? 2 : 1;
    untilCheck -= segment.length;
    if (untilCheck > 0) continue;
    untilCheck = windowCharacters;
    check();
  }
  return -1;
}

/** `text.indexOf`, in windows: its worst case is the product of both lengths, and nothing interrupts it. */
function indexOf(text: string, term: string, from: number, check: () => void): number {
  const windowSize = windowCharacters + term.length;
  if (text.length - from <= windowSize) return text.indexOf(term, from);
  for (let start = from; start + term.length <= text.length; start += windowCharacters + 1) {
    const found = text.slice(start, start + windowSize).indexOf(term);
    if (found !== -1) return start + found;
    check();
  }
  return -1;
}

function isPair(text: string, at: number): boolean {
  const high = text.charCodeAt(at);
  if (high < 0xd800 || high > 0xdbff) return false;
  const low = text.charCodeAt(at + 1);
  return low >= 0xdc00 && low <= 0xdfff;
}
