/**
 * The length of a unit, which both engines count and bound alike: what waits to be committed is held in memory, and PostgreSQL gets the
 * documents of a unit as one text.
 */
import type { Unit } from './store.ts';

/** Characters of the longest unit, and of the units of one batch together: half of the longest text of the runtime. */
export const unitCharactersMost = 256 * 1024 * 1024;

/** An upper bound of what the runtime holds for a character. */
export const octetsPerCharacter = 2;

/** A unit that is longer than the store takes: nothing of it was made, and a retry would not help. */
export class UnitTooLarge extends Error {
  override readonly name = 'UnitTooLarge';
}

/** Characters of a unit's documents and search texts. */
export function unitCharacters(unit: Unit): number {
  let characters = 0;
  for (const { next } of unit.changes) {
    if (next !== null) characters += next.doc.length + (next.search?.length ?? 0);
  }
  for (const { doc, former } of unit.events) characters += doc.length + (former?.length ?? 0);
  return characters;
}

/**
 * Characters that a batch counts for each row, besides its document: the program encodes, writes and announces every row. With them, a batch
 * of units with 250 deliveries each has 2,000 rows; with 30,000 it held the event loop for 450 ms.
 */
export const charactersPerRow = 4096;

/** The part of `charactersPerTransactionMax` that a unit takes. @param characters of its documents and search texts */
export function batchCharacters({ changes, events }: Unit, characters: number): number {
  return characters + charactersPerRow * (changes.length + events.length);
}

/** Characters of the longest unit. @param bytesMax `unitsWaitingBytesMax`, which bounds a unit that waits alone as well */
export function unitCharactersMaxOf(bytesMax: number): number {
  return Math.min(Math.floor(bytesMax / octetsPerCharacter), unitCharactersMost);
}

/** Characters of the documents that one unit deletes or changes: their events hold them again. */
export function deletedCharactersMaxOf({
  unitCharactersMax,
}: {
  readonly unitCharactersMax: number;
}): number {
  return Math.floor(unitCharactersMax / 2);
}

/** @throws UnitTooLarge */
export function demandUnitFits(characters: number, most: number): void {
  if (characters > most)
    throw new UnitTooLarge(
      `the change would write ${characters} characters at once, and ${most} are the limit (COMITY_UNITS_WAITING_BYTES_MAX): change fewer or shorter documents at once`,
    );
}
