/**
 * Codes of a second factor, each of which works once: one-time passwords of an authenticator application (RFC 6238), with SHA-1, six digits
 * and steps of 30 seconds, the only parameters that every application reads from a QR code; and recovery codes for a lost device, shown
 * once and stored as digests. Pure but for the hashes.
 */
import { timingSafeEqual } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { digestOf } from '../account-tables.ts';
import type { SecondFactor, Totp } from './factor-row.ts';

export type UsedCode = {
  readonly method: 'totp' | 'recovery_code';
  /** The factor in which the code is used up. */
  readonly next: SecondFactor;
};

/** @param how.at milliseconds since the epoch @returns undefined if the code is wrong, used, or of another time */
export function useCode(
  userId: string,
  factor: SecondFactor,
  typed: string,
  how: { readonly at: number; readonly windowSteps: number },
): UsedCode | undefined {
  const text = typed.trim();
  if (looksLikeTotp(text)) {
    if (factor.totp === null) return undefined;
    const step = stepOfCode(factor.totp, text, how.at, how.windowSteps);
    if (step === undefined) return undefined;
    return { method: 'totp', next: { ...factor, totp: { ...factor.totp, lastStep: step } } };
  }
  const recoveryCodes = takeRecoveryCode(userId, factor.recoveryCodes, text);
  return recoveryCodes === undefined
    ? undefined
    : { method: 'recovery_code', next: { ...factor, recoveryCodes } };
}

/** RFC 4226 §4 recommends 160 bits. */
const secretBytes = 20;
const stepSeconds = 30;
const code = /^[0-9]{6}$/;

/** @returns a new secret in base32 */
export function drawTotpSecret(random: (count: number) => Buffer): string {
  return new Secret({ buffer: new Uint8Array(random(secretBytes)).buffer }).base32;
}

/** The `otpauth:` URI that an application shows as a QR code. */
export function totpUri(secret: string, issuer: string, account: string): string {
  // The colon separates issuer and account in the label.
  return generatorOf(secret, issuer.replaceAll(':', ' '), account).toString();
}

export function looksLikeTotp(text: string): boolean {
  return code.test(text);
}

/**
 * Finds the time step of a code within the window, later than the last accepted step; undefined if the code belongs to none.
 * @param at milliseconds since the epoch @param windowSteps accepted steps before and after the current one
 */
export function stepOfCode(
  { secret, lastStep }: Pick<Totp, 'secret' | 'lastStep'>,
  text: string,
  at: number,
  windowSteps: number,
): number | undefined {
  const generator = generatorOf(secret, '', '');
  const now = Math.floor(at / (stepSeconds * 1000));
  for (let step = Math.max(lastStep + 1, now - windowSteps); step <= now + windowSteps; step += 1) {
    const expected = generator.generate({ timestamp: step * stepSeconds * 1000 });
    if (timingSafeEqual(Buffer.from(expected), Buffer.from(text))) return step;
  }
  return undefined;
}

function generatorOf(secret: string, issuer: string, label: string): TOTP {
  const period = stepSeconds;
  return new TOTP({ issuer, label, algorithm: 'SHA1', digits: 6, period, secret: Secret.fromBase32(secret) });
}

/** Codes of one set; a new set replaces the old one. */
export const recoveryCodesCount = 10;

const codeCharacters = 16;
/** 40 bits, for a code that is good for minutes and a few attempts. */
const typedCodeCharacters = 8;
/** Crockford's base32: no letter looks like a digit. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const bitsOfCharacter = 5;
const written = new RegExp(`^[${alphabet}]+$`);

export type DrawnCodes = { readonly codes: readonly string[]; readonly digests: readonly string[] };

export function drawRecoveryCodes(userId: string, random: (count: number) => Buffer): DrawnCodes {
  const texts = Array.from({ length: recoveryCodesCount }, () => drawCode(random, codeCharacters));
  return {
    codes: texts.map(grouped),
    digests: texts.map((text) => digestOfCode(userId, text)),
  };
}

/** Returns the digests without that of the code; undefined if the code is not one of them. */
export function takeRecoveryCode(
  userId: string,
  digests: readonly string[],
  typed: string,
): readonly string[] | undefined {
  const text = normalizeCode(typed, codeCharacters);
  if (text === undefined) return undefined;
  const digest = digestOfCode(userId, text);
  return digests.includes(digest) ? digests.filter((each) => each !== digest) : undefined;
}

/** Draws a code of a mail that a person types. */
export function drawTypedCode(random: (count: number) => Buffer): string {
  return grouped(drawCode(random, typedCodeCharacters));
}

export function normalizeTyped(typed: string): string | undefined {
  return normalizeCode(typed, typedCodeCharacters);
}

function drawCode(random: (count: number) => Buffer, characters: number): string {
  let bits = BigInt(`0x${random((characters * bitsOfCharacter) / 8).toString('hex')}`);
  let text = '';
  for (let index = 0; index < characters; index += 1) {
    text += alphabet[Number(bits & 31n)];
    bits >>= 5n;
  }
  return text;
}

function grouped(text: string): string {
  return text.match(/.{4}/g)?.join('-') ?? text;
}

/** Longer than a code with separators between all characters. */
const typedCharactersMax = 64;

/** Accepts upper case, other separators, and the letters that people read for digits. */
function normalizeCode(typed: string, characters: number): string | undefined {
  if (typed.length > typedCharactersMax) return undefined;
  const text = typed.toLowerCase().replace(/[\s-]/g, '').replaceAll('o', '0').replace(/[il]/g, '1');
  return text.length === characters && written.test(text) ? text : undefined;
}

/** The account is part of the digest, so that equal digests of two accounts tell nothing. */
function digestOfCode(userId: string, text: string): string {
  return digestOf(`recovery code ${userId} ${text}`);
}
