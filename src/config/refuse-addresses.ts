/** What is wrong with a list of addresses or ports that a setting was given, as the predicate of a sentence; undefined for a good one. */
import { isIP } from 'node:net';

const portMax = 65_535;
const digits = /^\d{1,5}$/;

/** `10.0.0.0/8,fd00::/8`; an address alone means just that one. */
export function refuseCidrs(value: string): string | undefined {
  const bad = partsOf(value).find((part) => !isCidr(part));
  return bad === undefined
    ? undefined
    : `must be a comma-separated list of addresses such as 10.0.0.0/8, and "${bad}" is none`;
}

/** `80,443,1024-65535` */
export function refusePorts(value: string): string | undefined {
  const bad = partsOf(value).find((part) => !isPortRange(part));
  return bad === undefined
    ? undefined
    : `must be a comma-separated list of ports and ranges such as 443,8000-8999, and "${bad}" is none`;
}

/** The entries of a comma-separated list; none of an empty text. */
export function partsOf(value: string): readonly string[] {
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

/** A port, or 0 for a free one. */
export function refusePortNumber(value: string): string | undefined {
  return isNumber(value, 0, portMax) ? undefined : `must be a port from 0 to ${portMax}`;
}
