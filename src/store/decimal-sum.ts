/**
 * Exact sums of numbers. A number counts as the decimal that its document shows, so 0.1 + 0.2 is 0.3: the shortest decimal that reads as the
 * same double. A sum is exact however many numbers it has and in whatever order they come; it is rounded once, to a double, when it is shown.
 * Both engines therefore give the same sum: PostgreSQL adds its `numeric`, SQLite calls this class (about 60 ns a number).
 */

/** Integers of this size, and decimals scaled to millionths, are exact as doubles and have no shorter decimal of the same value. */
const digitsExact = 1e15;
const scale = 1e6;
const scaleDigits = 6;
/** An accumulator below this stays exact after one more addition. */
const accumulatedMax = Number.MAX_SAFE_INTEGER - digitsExact;

export class DecimalSum {
  #integers = 0;
  #millionths = 0;
  /** Sums that fit no accumulator, by the power of ten of their unit; at most some 650 of them. */
  readonly #byExponent = new Map<number, bigint>();

  add(value: number): void {
    if (Number.isInteger(value) && Math.abs(value) < digitsExact) {
      this.#integers += value;
      if (Math.abs(this.#integers) > accumulatedMax) {
        this.#carry(0, BigInt(this.#integers));
        this.#integers = 0;
      }
      return;
    }
    const scaled = Math.round(value * scale);
    if (Math.abs(scaled) >= digitsExact || scaled / scale !== value) {
      const { digits, exponent } = parseDecimal(String(value));
      this.#carry(exponent, digits);
      return;
    }
    this.#millionths += scaled;
    if (Math.abs(this.#millionths) > accumulatedMax) {
      this.#carry(-scaleDigits, BigInt(this.#millionths));
      this.#millionths = 0;
    }
  }

  /** The sum as a decimal without an exponent: `12`, `-0.5`. */
  toText(): string {
    const parts = [...this.#byExponent, [0, BigInt(this.#integers)] as const];
    if (this.#millionths !== 0) parts.push([-scaleDigits, BigInt(this.#millionths)]);
    const least = Math.min(...parts.map(([exponent]) => exponent));
    let digits = 0n;
    for (const [exponent, part] of parts) digits += part * 10n ** BigInt(exponent - least);
    return formatDecimal({ digits, exponent: least });
  }

  #carry(exponent: number, digits: bigint): void {
    this.#byExponent.set(exponent, (this.#byExponent.get(exponent) ?? 0n) + digits);
  }
}

/** `digits` times ten to the power of `exponent`. */
type Decimal = { readonly digits: bigint; readonly exponent: number };

function parseDecimal(text: string): Decimal {
  const [mantissa = '', power = '0'] = text.split('e');
  const point = mantissa.indexOf('.');
  const decimals = point === -1 ? 0 : mantissa.length - point - 1;
  return { digits: BigInt(mantissa.replace('.', '')), exponent: Number(power) - decimals };
}

function formatDecimal({ digits, exponent }: Decimal): string {
  if (exponent >= 0) return String(digits * 10n ** BigInt(exponent));
  const sign = digits < 0n ? '-' : '';
  const text = String(digits < 0n ? -digits : digits).padStart(1 - exponent, '0');
  return `${sign}${text.slice(0, exponent)}.${text.slice(exponent)}`;
}

/** The double nearest to a decimal; null beyond the greatest one, as JSON writes it. */
export function nearestDouble(decimal: string): number | null {
  const value = Number(decimal) + 0;
  return Number.isFinite(value) ? value : null;
}

/** Digits of the quotient that decide its rounding; no double needs more. */
const quotientDigits = 800;

/** The double nearest to the mean of numbers with this sum; null for no number. */
export function meanOf(sum: string, count: number): number | null {
  if (count === 0) return null;
  const { digits, exponent } = parseDecimal(sum);
  const divisor = exponent < 0 && exponent >= -scaleDigits ? 10 ** -exponent * count : count;
  // One division of two integers that are exact as doubles is rounded correctly.
  if (exponent <= 0 && exponent >= -scaleDigits && isExact(digits) && divisor <= Number.MAX_SAFE_INTEGER) {
    return Number(digits) / divisor + 0;
  }
  const parts = BigInt(count);
  const shifted = digits * 10n ** BigInt(quotientDigits);
  const quotient = shifted / parts;
  // A remainder is shown by one more digit, so that a quotient just beside the middle of two doubles is not rounded as the middle.
  const beyond = shifted % parts === 0n ? '0' : '1';
  return nearestDouble(`${quotient}${beyond}e${exponent - quotientDigits - 1}`);
}

function isExact(digits: bigint): boolean {
  return digits <= BigInt(Number.MAX_SAFE_INTEGER) && digits >= -BigInt(Number.MAX_SAFE_INTEGER);
}
