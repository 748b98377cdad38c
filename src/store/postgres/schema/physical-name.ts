/**
 * Names that fit PostgreSQL, which silently cuts an identifier after 63 bytes: a longer one is cut here, at a whole
 * character, and ends with a digest of all of it, so that two long names never become one. What such a name stands for
 * is never read from it again: the catalogue `comity_indexes` says it in full.
 */
import { hash } from 'node:crypto';

const nameBytesMax = 63;
/** 80 bits: names that meet would have to be looked for. */
const digestCharacters = 20;

/** @returns the name itself where it fits */
export function physicalName(name: string): string {
  if (Buffer.byteLength(name) <= nameBytesMax) return name;
  let cut = '';
  let bytes = digestCharacters + 1;
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > nameBytesMax) break;
    cut += character;
  }
  return `${cut}~${hash('sha256', name, 'hex').slice(0, digestCharacters)}`;
}
