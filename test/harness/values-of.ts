/** One member, or several, of each of many values, so that a test compares them at once. */

// biome-ignore lint/suspicious/noExplicitAny: the values of parsed content have no type.
type Values = readonly any[];

/** @returns the values of the one name, or a list of the values of each name */
export function valuesOf<All extends Values, const Names extends readonly (keyof All[number])[]>(
  all: All,
  ...names: Names
): (Names extends readonly [infer One extends keyof All[number]] ? All[number][One] : unknown[])[];
export function valuesOf(all: Values, ...names: readonly string[]): unknown[] {
  const [name] = names;
  return all.map((one) =>
    name !== undefined && names.length === 1 ? one[name] : names.map((each) => one[each]),
  );
}
