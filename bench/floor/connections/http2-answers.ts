/**
 * What the two floors of HTTP/2 answer: a row by its id, looked up as the floor of HTTP/1.1 does, and one constant answer at another path,
 * whose fields and content are given by whoever measures, so that they are those of Comity.
 */
import { createDateText, createLookup, validatorFields } from '../answer.ts';
import { openFloorStore } from '../store.ts';

/** The path of the constant answer, with the fields of it but Date, and its content. */
export type ConstantAnswer = {
  readonly path: string;
  readonly fields: readonly string[];
  readonly content: string;
};
export type FloorAnswer = {
  /** Names and values, names in lower case, without Date, which the server adds. */
  readonly fields: readonly string[];
  readonly content: string;
};

/** @returns undefined where there is no such row: 404 */
export function createFloorAnswers(
  file: string,
  constant: ConstantAnswer,
): (path: string) => FloorAnswer | undefined {
  const lookup = createLookup(openFloorStore(file));
  const dateText = createDateText();
  return (path) => {
    if (path === constant.path) return constant;
    const row = lookup(path);
    if (row === undefined) return undefined;
    const [rev, doc, updatedAtMs] = row;
    const fields = validatorFields(rev, dateText(updatedAtMs));
    for (let at = 0; at < fields.length; at += 2) fields[at] = (fields[at] ?? '').toLowerCase();
    fields.push('content-type', 'application/json', 'content-length', String(Buffer.byteLength(doc)));
    return { fields, content: doc };
  };
}
