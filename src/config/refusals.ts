/** What is wrong with a text that a setting was given, as the predicate of a sentence; undefined for a good one. */
import { isOrigin } from '../http/syntax/origin.ts';

const keyStart = 'sk_';
const keySymbols = '0123456789-._~+/=';

/** A secret key (§5.2), in characters that every carrier takes as they are (token68, RFC 9110 §11.2). */
export function refuseKey(value: string): string | undefined {
  if (!value.startsWith(keyStart) || value.length === keyStart.length)
    return 'must start with "sk_" and go on';
  for (const character of value) {
    const letter = character.toLowerCase();
    if (!((letter >= 'a' && letter <= 'z') || keySymbols.includes(character))) {
      return 'may hold only letters, digits and the characters - . _ ~ + / =';
    }
  }
  return undefined;
}

/** `*`, or serialised origins separated by commas (§4.8). */
export function refuseOrigins(value: string): string | undefined {
  const origins = value.split(',').map((origin) => origin.trim());
  if (origins.length === 1 && origins[0] === '*') return undefined;
  const bad = origins.find((origin) => origin === 'null' || !isOrigin(origin));
  if (bad === undefined) return undefined;
  return `must be * or a comma-separated list of origins such as https://app.example, and "${bad}" is none`;
}

/** A URL of a PostgreSQL server (surface). It may hold a password, so no message repeats it. */
export function refuseDatabaseUrl(value: string): string | undefined {
  if (!value.startsWith('postgres://') && !value.startsWith('postgresql://')) {
    return 'must start with postgres://';
  }
  if (!URL.canParse(value)) return 'must be a URL such as postgres://user:password@host:5432/database';
  return new URL(value).pathname.length > 1 ? undefined : 'must name a database, such as /comity at its end';
}

/** A name that needs no quoting, so that operators can write it as it is. */
export function refuseSchema(value: string): string | undefined {
  const first = value.charAt(0);
  if (first < 'a' || first > 'z') return 'must start with a lower-case letter';
  for (const character of value) {
    const isLetter = character >= 'a' && character <= 'z';
    if (!isLetter && !(character >= '0' && character <= '9') && character !== '_') {
      return 'may hold only lower-case letters, digits and _';
    }
  }
  return value.startsWith('pg_') ? 'must not start with pg_, which PostgreSQL keeps for itself' : undefined;
}

/** An origin that clients see, without a path (§4.8). */
export function refusePublicUrl(value: string): string | undefined {
  return isOrigin(value) && value !== 'null' && (value.startsWith('https://') || value.startsWith('http://'))
    ? undefined
    : 'must be an origin such as https://api.example, without a path';
}

/** A mail server (RFC 5321). It may hold a password, so no message repeats it. */
export function refuseSmtpUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== 'smtp:' && url.protocol !== 'smtps:') || url.hostname === '') {
    return 'must be a URL such as smtps://user:password@mail.example:465';
  }
  return undefined;
}

/** `name@host`, or `Name <name@host>`. */
export function refuseMail(value: string): string | undefined {
  const open = value.lastIndexOf('<');
  const address = open === -1 ? value : value.slice(open + 1, value.endsWith('>') ? -1 : undefined);
  const at = address.lastIndexOf('@');
  const plain = [...value].every((character) => character >= ' ' && character !== '\u007f');
  return plain && at > 0 && at < address.length - 1 && !address.includes(' ')
    ? undefined
    : 'must be an address such as Shop <no-reply@shop.example>';
}

/** A page that a mail links to. */
export function refuseMailUrl(value: string): string | undefined {
  if (!value.includes('{code}')) return 'must hold {code}, which the code takes the place of';
  const url = value.replaceAll('{code}', 'code');
  if (!URL.canParse(url) || !['http:', 'https:'].includes(new URL(url).protocol)) {
    return 'must be a URL such as https://app.example/verify#{code}';
  }
  return undefined;
}

const secretKeyLength = 32;
const hexKey = /^[0-9a-f]{64}$/i;
/** With or without padding, in either alphabet (RFC 4648 §4 and §5). */
const base64Key = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The octets of a key as it is written: 32 of them in base64, base64url or hexadecimal. */
export function secretKeyBytes(text: string): Uint8Array | undefined {
  if (hexKey.test(text)) return Buffer.from(text, 'hex');
  // Both alphabets are read by Node's decoder.
  if (!base64Key.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === secretKeyLength ? bytes : undefined;
}

export function refuseSecretKey(value: string): string | undefined {
  return secretKeyBytes(value) === undefined
    ? 'must be 32 random octets in base64 or hexadecimal, such as from "openssl rand -base64 32"'
    : undefined;
}

/** Several with commas between. */
export function refuseSecretKeys(value: string): string | undefined {
  const bad = value.split(',').find((key) => secretKeyBytes(key.trim()) === undefined);
  return bad === undefined
    ? undefined
    : 'must be one key or several with commas between, each as COMITY_SECRET_KEY is';
}
