/** The least that a receiver verifies: one HMAC over the octets that came, compared in constant time, and where the key stands. */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { hmacKey, type SigningScheme, webhooksPath } from '../../received/messages.ts';

const toleranceS = 300;
const keys = {
  standard: createSecretKey(hmacKey('standard')),
  timestamped: createSecretKey(hmacKey('timestamped')),
  plain: createSecretKey(hmacKey('plain')),
};

/** @returns what tells repetitions; undefined: not to be believed */
export function verifiedKey(target: string, headers: IncomingHttpHeaders, body: Buffer): string | undefined {
  switch (target.slice(webhooksPath.length + 1)) {
    case 'standard': {
      const id = String(headers['webhook-id']);
      const time = String(headers['webhook-timestamp']);
      const signature = String(headers['webhook-signature']).slice('v1,'.length);
      const isSigned = fits('standard', `${id}.${time}.`, body, signature, 'base64');
      return isSigned && isNow(time) ? id : undefined;
    }
    case 'timestamped': {
      const field = String(headers['service-signature']);
      const comma = field.indexOf(',');
      const time = field.slice('t='.length, comma);
      if (!fits('timestamped', `${time}.`, body, field.slice(comma + ',v1='.length), 'hex')) return undefined;
      return isNow(time) ? (JSON.parse(body.toString('latin1')) as { id: string }).id : undefined;
    }
    case 'plain': {
      const signature = String(headers['x-hub-signature-256']).slice('sha256='.length);
      return fits('plain', '', body, signature, 'hex') ? String(headers['x-service-delivery']) : undefined;
    }
    default:
      return undefined;
  }
}

function fits(
  scheme: SigningScheme,
  prefix: string,
  body: Buffer,
  signature: string,
  encoding: 'base64' | 'hex',
): boolean {
  const expected = createHmac('sha256', keys[scheme]).update(prefix).update(body).digest();
  const given = Buffer.from(signature, encoding);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function isNow(time: string): boolean {
  return Math.abs(Date.now() / 1000 - Number(time)) <= toleranceS;
}
