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
