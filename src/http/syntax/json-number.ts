/** Numbers in a JSON text: RFC 8259 §6, and RFC 7493 §2.2 as json.ts defines it. */
import { isDigitCode } from './uri-characters.ts';

/** Up to this many digits, a number cannot overflow, underflow or lose a bit of an integer. */
const SAFE_DIGITS = 15;

export const malformedNumber = 'malformed number';

/**
 * The index after the number at `from`; `from` itself if no number begins there; a message if it is malformed or a double cannot represent
 * it.
 */
export function checkNumber(text: string, from: number): number | string {
  const start = text.charCodeAt(from) === 0x2d ? from + 1 : from;
  const integerEnd = digitsEnd(text, start);
  if (integerEnd === start) return start === from ? from : malformedNumber;
  if (text.charCodeAt(start) === 0x30 && integerEnd > start + 1) return malformedNumber;
  let end = integerEnd;
  if (text.charCodeAt(end) === 0x2e) {
    end = digitsEnd(text, integerEnd + 1);
    if (end === integerEnd + 1) return malformedNumber;
  }
  const mantissaEnd = end;
  if ((text.charCodeAt(end) | 0x20) === 0x65) {
    const sign = text.charCodeAt(end + 1);
    const exponentStart = sign === 0x2b || sign === 0x2d ? end + 2 : end + 1;
    end = digitsEnd(text, exponentStart);
    if (end === exponentStart) return malformedNumber;
  }
  if (end === mantissaEnd && end - start <= SAFE_DIGITS) return end;
  return faultOf(text, { from, start, integerEnd, mantissaEnd, end }) ?? end;
}

type NumberParts = {
  readonly from: number;
  readonly start: number;
  readonly integerEnd: number;
  readonly mantissaEnd: number;
  readonly end: number;
};

const beyondRange = 'number beyond the range of a double';

function faultOf(text: string, parts: NumberParts): string | undefined {
  const { from, start, integerEnd, mantissaEnd, end } = parts;
  const literal = text.slice(from, end);
  const value = Number(literal);
  if (!Number.isFinite(value)) return beyondRange;
  // BigInt takes more than linear time, but a finite integer has at most 309 digits.
  if (end === integerEnd) {
    const isKept =
      Number.isSafeInteger(value) || String(value) === literal || BigInt(value) === BigInt(literal);
    return isKept ? undefined : 'integer that a double cannot keep exactly (send it as a string)';
  }
  return value !== 0 || isZero(text, start, mantissaEnd) ? undefined : beyondRange;
}

function isZero(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== 0x30 && code !== 0x2e) return false;
  }
  return true;
}

function digitsEnd(text: string, from: number): number {
  let at = from;
  while (isDigitCode(text.charCodeAt(at))) at += 1;
  return at;
}
