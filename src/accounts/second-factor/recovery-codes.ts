/**
 * Recovery codes for a lost device: shown once, stored as digests, each used once. With 80 random bits a slow hash would add nothing.
 */
import { digestOf } from '../digest.ts';

/** Codes of one set; a new set replaces the old one. */
export const recoveryCodesCount = 10;

const codeBytes = 10;
const codeCharacters = 16;
/** Crockford's base32: no letter looks like a digit. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const written = new RegExp(`^[${alphabet}]{${codeCharacters}}$`);

export type DrawnCodes = { readonly codes: readonly string[]; readonly digests: readonly string[] };

export function drawRecoveryCodes(userId: string, random: (count: number) => Buffer): DrawnCodes {
  const texts = Array.from({ length: recoveryCodesCount }, () => drawCode(random));
  return {
    codes: texts.map((text) => text.match(/.{4}/g)?.join('-') ?? text),
    digests: texts.map((text) => digestOfCode(userId, text)),
  };
}

/** Returns the digests without that of the code; undefined if the code is not one of them. */
export function takeRecoveryCode(
  userId: string,
  digests: readonly string[],
  typed: string,
): readonly string[] | undefined {
  const text = normalize(typed);
  if (text === undefined) return undefined;
  const digest = digestOfCode(userId, text);
  return digests.includes(digest) ? digests.filter((each) => each !== digest) : undefined;
}

function drawCode(random: (count: number) => Buffer): string {
  let bits = BigInt(`0x${random(codeBytes).toString('hex')}`);
  let text = '';
  for (let index = 0; index < codeCharacters; index += 1) {
    text += alphabet[Number(bits & 31n)];
    bits >>= 5n;
  }
  return text;
}

/** Longer than a code with separators between all characters. */
const typedCharactersMax = 64;

/** Accepts upper case, other separators, and the letters that people read for digits. */
function normalize(typed: string): string | undefined {
  if (typed.length > typedCharactersMax) return undefined;
  const text = typed.toLowerCase().replace(/[\s-]/g, '').replaceAll('o', '0').replace(/[il]/g, '1');
  return written.test(text) ? text : undefined;
}

/** The account is part of the digest, so that equal digests of two accounts tell nothing. */
function digestOfCode(userId: string, text: string): string {
  return digestOf(`recovery code ${userId} ${text}`);
}
