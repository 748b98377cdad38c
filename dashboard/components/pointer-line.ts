/** The line of a JSON text at which the value of a pointer (RFC 6901) begins, for faults within a member that is edited as JSON. */

type At = { readonly text: string; index: number };

/** @returns undefined if the text is not JSON or has no such value */
export function lineOfPointer(text: string, pointer: string): number | undefined {
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  try {
    JSON.parse(text);
  } catch {
    return undefined; // The text was changed since the server judged it.
  }
  const at: At = { text, index: 0 };
  for (const step of steps) {
    skipSpace(at);
    if (!enter(at, step)) return undefined;
  }
  skipSpace(at);
  return text.slice(0, at.index).split('\n').length;
}

/** Moves from the beginning of an object or array to the value of a member or item. */
function enter(at: At, step: string): boolean {
  const opening = at.text[at.index];
  if (opening !== '{' && opening !== '[') return false;
  at.index += 1;
  for (let count = 0; ; count += 1) {
    skipSpace(at);
    if (at.text[at.index] === '}' || at.text[at.index] === ']') return false;
    let name = String(count);
    if (opening === '{') {
      const start = at.index;
      skipValue(at);
      name = JSON.parse(at.text.slice(start, at.index)) as string;
      skipSpace(at);
      at.index += 1;
    }
    if (name === step) return true;
    skipSpace(at);
    skipValue(at);
    skipSpace(at);
    if (at.text[at.index] !== ',') return false;
    at.index += 1;
  }
}

function skipSpace(at: At): void {
  while (/\s/.test(at.text[at.index] ?? '')) at.index += 1;
}

/** Valid JSON only: brackets are balanced outside of strings. */
function skipValue(at: At): void {
  let depth = 0;
  do {
    const character = at.text[at.index] ?? '';
    if (character === '"') {
      at.index += 1;
      while (at.text[at.index] !== '"') at.index += at.text[at.index] === '\\' ? 2 : 1;
      at.index += 1;
    } else if (character === '{' || character === '[') {
      depth += 1;
      at.index += 1;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      at.index += 1;
    } else if (depth > 0) at.index += 1;
    else while (/[^\s,\]}:]/.test(at.text[at.index] ?? '')) at.index += 1;
  } while (depth > 0);
}
