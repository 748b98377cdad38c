/** Checks of settings that hold text. Each returns what is wrong, as the predicate of a sentence, or undefined for a valid text. */

import { isIP } from 'node:net';
import { isToken } from '../http/syntax/field-value.ts';
import { isOrigin, originOfUrl } from '../http/syntax/uri.ts';

const keyStart = 'sk_';
const keySymbols = '0123456789-._~+/=';

/** A secret key (§5.2) in the characters that every place for a credential accepts (token68, RFC 9110 §11.2). */
/** Text that a Bearer credential can hold (RFC 6750 §2.1). */
const bearerToken = /^[A-Za-z0-9._~+/-]{16,}=*$/;

export function refuseToken(token: string): string | undefined {
  return bearerToken.test(token) ? undefined : 'must be 16 or more letters, digits and -._~+/';
}

export function refuseKey(value: string): string | undefined {
  if (!value.startsWith(keyStart) || value.length === keyStart.length)
    return 'must start with "sk_" and have at least one more character';
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
  return `must be * or a comma-separated list of origins such as https://app.example, and "${bad}" is not one`;
}

export function refuseFieldNames(value: string): string | undefined {
  const names = value.split(',').map((name) => name.trim());
  const bad = names.find((name) => !isToken(name));
  if (bad === undefined) return undefined;
  return `must be * or a comma-separated list of header fields such as X-Trace, and "${bad}" is not one`;
}

/** The URL of a PostgreSQL server. It may contain a password, so no message repeats it. */
export function refuseDatabaseUrl(value: string): string | undefined {
  if (!value.startsWith('postgres://') && !value.startsWith('postgresql://')) {
    return 'must start with postgres://';
  }
  if (!URL.canParse(value)) return 'must be a URL such as postgres://user:password@host:5432/database';
  return new URL(value).pathname.length > 1 ? undefined : 'must name a database, such as /comity at its end';
}

/** A schema name that needs no quoting. */
export function refuseSchema(value: string): string | undefined {
  const first = value.charAt(0);
  if (first < 'a' || first > 'z') return 'must start with a lower-case letter';
  for (const character of value) {
    const isLetter = character >= 'a' && character <= 'z';
    if (!isLetter && !(character >= '0' && character <= '9') && character !== '_') {
      return 'may hold only lower-case letters, digits and _';
    }
  }
  return value.startsWith('pg_') ? 'must not start with pg_, which PostgreSQL reserves' : undefined;
}

/** Threads beyond this many share a port and one writer without gain. */
const workersMost = 64;

export function refuseProcesses(value: string): string | undefined {
  if (value === 'auto' || isCount(value)) return undefined;
  return `must be auto or an integer from 1 to ${workersMost}`;
}

function isCount(value: string): boolean {
  return (
    value.length <= 2 && String(Number(value)) === value && Number(value) >= 1 && Number(value) <= workersMost
  );
}

/** As in the `base` of a configuration, so that the path means the same to every proxy and in the name of a cookie. */
const rootPath = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;
/** Each field with a path has it, and proxies grant all fields of a response 4 KiB. */
const rootCharactersMax = 200;
const dotSegment = /\/\.{1,2}(?:\/|$)/;

/** An origin, or an origin with the path that a proxy removes from requests. No message repeats the URL, which may contain a password. */
export function refusePublicUrl(value: string): string | undefined {
  const origin = originOfUrl(value);
  const path = value.slice(origin.length);
  if (origin.includes('@')) return 'must not contain a user name or a password';
  if (value.includes('?') || value.includes('#')) return 'must not have a query or a fragment';
  const isHttp = origin.startsWith('https://') || origin.startsWith('http://');
  if (!isHttp || !isOrigin(origin))
    return 'must be a URL such as https://api.example or https://example.com/backend';
  if (dotSegment.test(path)) return 'must not have . or .. as a segment of its path';
  if (!rootPath.test(path))
    return 'may have only letters, digits and - . _ ~ between the slashes of its path';
  if (path.length > rootCharactersMax) return `must have a path of at most ${rootCharactersMax} characters`;
  return undefined;
}

export function withoutEndingSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}

/** A mail server (RFC 5321). Its URL may contain a password, so no message repeats it. */
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

export function refuseMailUrl(value: string): string | undefined {
  if (!value.includes('{code}')) return 'must contain {code}, which Comity replaces with the code';
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

/** The octets of a key: 32 in base64, base64url or hexadecimal. */
export function secretKeyBytes(text: string): Uint8Array | undefined {
  if (hexKey.test(text)) return Buffer.from(text, 'hex');
  // Node's decoder reads both alphabets.
  if (!base64Key.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === secretKeyLength ? bytes : undefined;
}

/** The keys of a file in the form of `secret.key`, the preferred one first: one a line, beside comments. */
export function secretKeyLines(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

export function refuseSecretKey(value: string): string | undefined {
  return secretKeyBytes(value) === undefined
    ? 'must be 32 random octets in base64 or hexadecimal, such as from "openssl rand -base64 32"'
    : undefined;
}

export function refuseSecretKeys(value: string): string | undefined {
  const bad = value.split(',').find((key) => secretKeyBytes(key.trim()) === undefined);
  return bad === undefined
    ? undefined
    : 'must be one or more keys in the form of COMITY_SECRET_KEY, separated by commas';
}

const portMax = 65_535;
const digits = /^\d{1,5}$/;

/** A list of addresses and blocks: `10.0.0.0/8,fd00::/8`. */
export function refuseCidrs(value: string): string | undefined {
  const bad = commaSeparated(value).find((part) => !isCidr(part));
  return bad === undefined
    ? undefined
    : `must be a comma-separated list of addresses such as 10.0.0.0/8, and "${bad}" is not one`;
}

/** A list of ports and ranges: `80,443,1024-65535`. */
export function refusePorts(value: string): string | undefined {
  const bad = commaSeparated(value).find((part) => !isPortRange(part));
  return bad === undefined
    ? undefined
    : `must be a comma-separated list of ports and ranges such as 443,8000-8999, and "${bad}" is not one`;
}

/** The entries of a comma-separated list; none for an empty text. */
export function commaSeparated(value: string): readonly string[] {
  return value.trim() === '' ? [] : value.split(',').map((part) => part.trim());
}

function isCidr(text: string): boolean {
  const slash = text.indexOf('/');
  const version = isIP(slash < 0 ? text : text.slice(0, slash));
  if (version === 0) return false;
  return slash < 0 || isNumber(text.slice(slash + 1), 0, version === 4 ? 32 : 128);
}

function isPortRange(text: string): boolean {
  const [first = '', last, ...rest] = text.split('-');
  if (rest.length > 0 || !isNumber(first, 1, portMax)) return false;
  return last === undefined || (isNumber(last, 1, portMax) && Number(first) <= Number(last));
}

function isNumber(text: string, least: number, most: number): boolean {
  if (!digits.test(text)) return false;
  return Number(text) >= least && Number(text) <= most;
}

export function refusePortNumber(value: string): string | undefined {
  return isNumber(value, 0, portMax) ? undefined : `must be a port from 0 to ${portMax}`;
}
