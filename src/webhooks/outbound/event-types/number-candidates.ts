/** Numbers that a numeric schema may allow: those at its bounds and near them, and multiples where it asks for such. */

type NumberSchema = Readonly<Record<string, unknown>>;

/** Different numbers of one schema: an array may want them unique. */
const variantsMax = 100;

export function* numberCandidates(schema: NumberSchema, isInteger: boolean): Generator<number> {
  const least = bound(schema.minimum, schema.exclusiveMinimum, Math.max) ?? Number.NEGATIVE_INFINITY;
  const most = bound(schema.maximum, schema.exclusiveMaximum, Math.min) ?? Number.POSITIVE_INFINITY;
  const multiple =
    typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : undefined;
  const step = multiple ?? 1;
  if (least === Number.NEGATIVE_INFINITY && most === Number.POSITIVE_INFINITY) yield step;
  const start = least > Number.NEGATIVE_INFINITY ? least : most < Number.POSITIVE_INFINITY ? most : 0;
  const [from, direction] =
    least > Number.NEGATIVE_INFINITY ? [Math.ceil(start / step), 1] : [Math.floor(start / step), -1];
  if (multiple === undefined) yield start;
  for (let number = 0; number <= variantsMax; number += 1) yield (from + direction * number) * step;
  if (isInteger) return;
  // Between two bounds that no whole number lies between.
  if (Number.isFinite(least) && Number.isFinite(most)) yield (least + most) / 2;
}

function bound(
  inclusive: unknown,
  exclusive: unknown,
  choose: (a: number, b: number) => number,
): number | undefined {
  const named = [inclusive, exclusive].filter((value): value is number => typeof value === 'number');
  return named.length === 0 ? undefined : named.reduce((a, b) => choose(a, b));
}
