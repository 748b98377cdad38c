/**
 * Ids that the server assigns (§2.1): 26 characters of Crockford base32, 48 bits of time and 80 of randomness. They
 * increase within one process even in one millisecond, so that the order of ids is the order of creation.
 */
import type { Collection } from './collection.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const randomDigits = 16;
const timeCharacters = 10;
const idCharacters = timeCharacters + randomDigits;
export const clientIdCharactersMax = 255;
/** Unreserved characters (RFC 3986 §2.3), and no dot segment. */
export const clientIdPattern = '^(?![.]{1,2}$)[A-Za-z0-9._~-]+$';
const clientId = new RegExp(clientIdPattern);

/**
 * @param now milliseconds since the epoch
 * @param randomDigit a uniformly random integer from 0 to 31
 */
export function createIdSource(now: () => number, randomDigit: () => number): () => string {
  let lastTime = -1;
  let timeText = '';
  /** All characters but the last, which most ids of a millisecond share. */
  let start = '';
  const digits: number[] = new Array(randomDigits).fill(0);

  function reseed(time: number): void {
    lastTime = time;
    timeText = encodeTime(time);
    // The highest digit starts in the lower half: 2^79 increments before it could overflow.
    for (let index = 0; index < randomDigits; index += 1) digits[index] = randomDigit();
    digits[0] = (digits[0] ?? 0) & 15;
  }

  return () => {
    const time = now();
    // A clock that steps back keeps the last time, so ids never go back.
    const isNew = time > lastTime;
    if (isNew) reseed(time);
    else increment(digits);
    const last = digits[randomDigits - 1] ?? 0;
    if (isNew || last === 0) start = timeText + encodeDigits(digits);
    return start + alphabet[last];
  };
}

/** All but the last digit. */
function encodeDigits(digits: readonly number[]): string {
  let text = '';
  for (let index = 0; index < randomDigits - 1; index += 1) text += alphabet[digits[index] ?? 0];
  return text;
}

function increment(digits: number[]): void {
  for (let index = digits.length - 1; index >= 0; index -= 1) {
    const digit = (digits[index] ?? 0) + 1;
    if (digit < 32) {
      digits[index] = digit;
      return;
    }
    digits[index] = 0;
  }
}

function encodeTime(time: number): string {
  let rest = time;
  let text = '';
  for (let place = 0; place < timeCharacters; place += 1) {
    text = `${alphabet[rest % 32]}${text}`;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** How ids begin that several places make or recognise: by the kind of thing that they name. */
export const idPrefixes = {
  account: 'usr_',
  event: 'evt_',
  key: 'key_',
  message: 'rec_',
  passkey: 'pas_',
} as const;

export function idFor(kind: keyof typeof idPrefixes, newId: () => string): string {
  return `${idPrefixes[kind]}${newId()}`;
}

/** The time of an id that the server assigned, milliseconds since the epoch. @param id with or without a prefix such as `file_` */
export function timeOfId(id: string): number {
  let time = 0;
  for (const character of id.slice(-idCharacters, timeCharacters - idCharacters))
    time = time * 32 + alphabet.indexOf(character);
  return time;
}

/** True if a client may choose the id with PUT: 1 to 255 unreserved characters (RFC 3986 §2.3), not a dot segment. */
function isClientId(id: string): boolean {
  return id.length <= clientIdCharactersMax && clientId.test(id);
}

// Ids that a client or a function chooses: how they are written, and which of them no document can have (§2.1).

export const idMessage = 'an id has 1 to 255 letters, digits, ".", "_", "~" or "-"';

/** The reason why no document can be created with the id. A document with the name of an operation could not be addressed. */
export function idFault({ takenIds }: Pick<Collection, 'takenIds'>, id: string): string | undefined {
  if (!isClientId(id)) return idMessage;
  if (!takenIds.includes(id)) return undefined;
  return `"${id}" cannot be an id, because it is the path of an operation of the collection: ${takenIds.join(', ')}`;
}
