/**
 * The parameters of a body of application/x-www-form-urlencoded (URL Standard §5.1) as they are signed: sorted by name
 * and by value, each name followed by its value, duplicate pairs once. Names and values stay octets, so that invalid
 * UTF-8 is signed as it is.
 */

/** A sender has dozens; each costs time before the signature is verified. */
const parametersMax = 1000;

/** Undefined for more than `parametersMax`. */
export function signedParameters(body: Uint8Array): Uint8Array[] | undefined {
  const pairs = readPairs(body);
  if (pairs === undefined) return undefined;
  pairs.sort(comparePairs);
  const signed: Uint8Array[] = [];
  for (const [at, pair] of pairs.entries()) {
    const before = pairs[at - 1];
    if (before === undefined || comparePairs(before, pair) !== 0) signed.push(pair.name, pair.value);
  }
  return signed;
}

type Pair = { readonly name: Uint8Array; readonly value: Uint8Array };

const ampersand = 0x26;
const equalsSign = 0x3d;
const percent = 0x25;
const plus = 0x2b;
const space = 0x20;

function readPairs(body: Uint8Array): Pair[] | undefined {
  const pairs: Pair[] = [];
  let from = 0;
  while (from < body.length) {
    const found = body.indexOf(ampersand, from);
    const end = found < 0 ? body.length : found;
    if (end > from) {
      if (pairs.length === parametersMax) return undefined;
      const sequence = body.subarray(from, end);
      const equals = sequence.indexOf(equalsSign);
      const nameEnd = equals < 0 ? sequence.length : equals;
      pairs.push({
        name: decodePercent(sequence.subarray(0, nameEnd)),
        value: decodePercent(sequence.subarray(nameEnd + 1)),
      });
    }
    from = end + 1;
  }
  return pairs;
}

/** A percent sign without two hexadecimal digits stands for itself. */
function decodePercent(octets: Uint8Array): Uint8Array {
  const decoded = new Uint8Array(octets.length);
  let length = 0;
  for (let at = 0; at < octets.length; at += 1) {
    const octet = octets[at] ?? 0;
    const high = octet === percent ? digitOf(octets[at + 1]) : -1;
    const low = high < 0 ? -1 : digitOf(octets[at + 2]);
    if (low >= 0) at += 2;
    decoded[length] = low >= 0 ? (high << 4) | low : octet === plus ? space : octet;
    length += 1;
  }
  return decoded.subarray(0, length);
}

function digitOf(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function comparePairs(one: Pair, other: Pair): number {
  return compareOctets(one.name, other.name) || compareOctets(one.value, other.value);
}

function compareOctets(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}
