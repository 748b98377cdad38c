/**
 * Time-based one-time passwords (RFC 6238): SHA-1, six digits and steps of 30 seconds, the only parameters that every authenticator
 * application reads from a QR code.
 */
import { timingSafeEqual } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Totp } from './factor-row.ts';

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
