/**
 * Folds the case of texts for comparisons that ignore it: one table of letters for both stores and for what is evaluated here, because an
 * index may hold folded texts. Letters are replaced one by one, and no text gets longer in UTF-8. There is no normalization: `é` as one
 * character and as two stay different, as in comparisons that heed case.
 */

/** Blocks in which every letter is assigned, so that no later version of Unicode adds a pair: Latin, Greek, Cyrillic, Armenian, full width. */
const blocks = [
  [0x00c0, 0x024f],
  [0x0370, 0x0556],
  [0x1e00, 0x1fff],
  [0xff21, 0xff3a],
] as const;

/** Letters of no case pair of their own: the final sigma and the long s. */
const others = [
  ['ς', 'σ'],
  ['ſ', 's'],
] as const;

/** What each letter beyond ASCII becomes. */
export const foldedLetters: ReadonlyMap<string, string> = new Map([...pairs(), ...others]);

const beyondAscii = /[^\0-\x7f]/;
const letters = new RegExp(`[${[...foldedLetters.keys()].join('')}]`, 'g');

export function foldCase(text: string): string {
  // ASCII alone needs no table, and most texts are ASCII.
  const lower = text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
  return beyondAscii.test(lower)
    ? lower.replace(letters, (letter) => foldedLetters.get(letter) ?? letter)
    : lower;
}

function* pairs(): Generator<readonly [string, string]> {
  for (const [first, last] of blocks) {
    for (let code = first; code <= last; code += 1) {
      const letter = String.fromCharCode(code);
      const lower = letter.toLowerCase();
      const isShort = lower.length === 1 && octetsOf(lower) <= octetsOf(letter);
      if (lower !== letter && isShort) yield [letter, lower];
    }
  }
}

/** Octets of a character of the basic plane in UTF-8. */
function octetsOf(character: string): number {
  const code = character.charCodeAt(0);
  return code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
}
