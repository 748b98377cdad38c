/**
 * Names that fit PostgreSQL, which silently truncates identifiers after 63 bytes: a longer one is cut at a whole character and ends with a
 * digest of all of it, so that long names stay distinct. The catalogue `comity_indexes` has the full name.
 */
import { hash } from 'node:crypto';

const nameBytesMax = 63;
/** 80 bits make collisions practically impossible. */
const digestCharacters = 20;

/** @returns the name itself if it fits */
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

/** The channel for LISTEN and NOTIFY between processes on one schema; the server takes 63 bytes. */
export function channelOf(schema: string): string {
  return physicalName(`comity_${schema}`);
}
