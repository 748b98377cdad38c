/** Fields of an answer as the log of attempts keeps them: all that a person looks for, however many a receiver sends. */
import type { IncomingHttpHeaders } from 'node:http';

/** Fields that are kept; further ones are dropped. */
export const answerFieldsMax = 64;

/** Characters of a value that are kept. */
export const answerFieldCharactersMax = 1024;

/** Names in lower case and values, one entry for each line of a repeated field. */
export function keepFields(fields: IncomingHttpHeaders): readonly (readonly [string, string])[] {
  const kept: (readonly [string, string])[] = [];
  for (const name in fields) {
    if (!Object.hasOwn(fields, name)) continue;
    const value = fields[name];
    if (value === undefined) continue;
    for (const line of typeof value === 'string' ? [value] : value) {
      if (kept.length === answerFieldsMax) return kept;
      kept.push([
        name,
        line.length <= answerFieldCharactersMax ? line : line.slice(0, answerFieldCharactersMax),
      ]);
    }
  }
  return kept;
}

/** Octets of the section as they came, near enough: what HTTP/2 compresses is counted by its text. */
export function sizeOf(fields: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(fields)) {
    for (const line of typeof value === 'string' ? [value] : (value ?? []))
      bytes += name.length + line.length + 4;
  }
  return bytes;
}
