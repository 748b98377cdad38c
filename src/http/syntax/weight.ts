/**
 * Quality values: RFC 9110 §12.4.2. A weight is a number of thousandths, so that comparison is exact.
 */

/** The weight of what is named without one: the largest. */
export const WEIGHT_MAX = 1000;

/** Reads `0`, `1`, `0.123`, `1.000`: at most three decimals, in thousandths (0 to 1000); undefined otherwise. */
export function parseWeight(text: string): number | undefined {
  if (text.length === 0 || text.length > 5) return undefined;
  const whole = text.charCodeAt(0) - 0x30;
  if (whole !== 0 && whole !== 1) return undefined;
  if (text.length > 1 && text.charCodeAt(1) !== 0x2e) return undefined;
  let thousandths = whole * WEIGHT_MAX;
  let unit = 100;
  for (let at = 2; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    thousandths += digit * unit;
    unit /= 10;
  }
  return thousandths > WEIGHT_MAX ? undefined : thousandths;
}
