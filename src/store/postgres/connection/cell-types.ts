/**
 * What values of the server become here: numbers for its integers and doubles, booleans, and the text as it came for everything
 * else, so that no date is made of one and no JSON parsed. A bigint beyond 2^53 would lose digits; revisions, times in
 * milliseconds and counts stay far below.
 */
import type { CustomTypesConfig } from 'pg';

/** Type numbers of pg_type that are fixed for ever. */
const boolean = 16;
const numbers: ReadonlySet<number> = new Set([20 /* int8 */, 21, 23, 26 /* oid */, 700, 701 /* float8 */]);

export const cellTypes: CustomTypesConfig = {
  getTypeParser: ((oid: number) => {
    if (numbers.has(oid)) return Number;
    return oid === boolean ? isTrue : asItCame;
  }) as CustomTypesConfig['getTypeParser'],
};

function isTrue(text: string): boolean {
  return text === 't';
}

function asItCame(text: string): string {
  return text;
}
