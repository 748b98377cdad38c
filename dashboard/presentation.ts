/**
 * The texts that people read in place of names and values: labels of lists and members, and values as money, durations or states, as the declaration
 * says it (`x-presentation`, `x-display`), or else as the names and values suggest. Numbers and times are those of the reader's language.
 */
import { type Display, type Listed, resolve, type Schema } from './description.ts';

type Group = { readonly heading: string; readonly members: readonly string[] };

const emptySchema: Schema = {};

function memberOf(schema: Schema, name: string): Schema {
  return resolve(schema.properties?.[name] ?? emptySchema);
}

export function labelOf(schema: Schema, name: string): string {
  const member = memberOf(schema, name);
  return member.title ?? inWords(member['x-references'] === undefined ? name : name.replace(/Id$/, ''));
}

export function displayOf(schema: Schema, name: string): Display {
  return memberOf(schema, name)['x-display'] ?? {};
}

const numericDisplays: ReadonlySet<Display['as']> = new Set(['money', 'percent', 'duration', 'bytes']);

/** Values of the member are numbers for people, which stand below each other at the right. */
export function isNumeric(schema: Schema, name: string): boolean {
  const { type, 'x-references': target } = memberOf(schema, name);
  const types = [type].flat().filter((each) => each !== 'null');
  const isNumber = types.length === 1 && (types[0] === 'number' || types[0] === 'integer');
  // Seconds since the epoch (§6.2) are shown as a time.
  if (isNumber) return target === undefined && name !== 'created';
  return numericDisplays.has(displayOf(schema, name).as);
}

/** The label for several documents of the list. */
export function nameOf({ name, schema }: Listed): string {
  return schema['x-presentation']?.many ?? inWords(name);
}

/** `dueAt` as `Due at`, `portal-links` as `Portal links`. */
export function inWords(name: string): string {
  const words = name
    .replaceAll(/[_\-$]+/g, ' ')
    .replaceAll(/([a-z\d])([A-Z])/g, (_, end, begin) => `${end} ${begin.toLowerCase()}`)
    .trim();
  const [first = '', ...rest] = words;
  return words === 'id' || words === 'url' ? words.toUpperCase() : `${first.toUpperCase()}${rest.join('')}`;
}

/** The members by their groups; those of no group stand under an empty heading, first if there are no others. */
export function groupsOf(schema: Schema, members: readonly string[]): readonly Group[] {
  const declared = schema['x-presentation']?.groups ?? [];
  const named = new Set(declared.flatMap((each) => each.members));
  const groups = declared.map(({ heading, members: own }) => ({
    heading,
    members: own.filter((name) => members.includes(name)),
  }));
  const rest = { heading: '', members: members.filter((name) => !named.has(name)) };
  return [...groups, rest].filter((each) => each.members.length > 0);
}

const digitsOfMoney = (currency: string): number => {
  const { maximumFractionDigits = 2 } = new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
  }).resolvedOptions();
  return maximumFractionDigits;
};

/** @param document the one that has the value; it may name the currency */
export function displayedText(
  value: unknown,
  display: Display,
  document: Readonly<Record<string, unknown>> = {},
): string | undefined {
  const { as, unit } = display;
  if (as === 'money' && (typeof value === 'number' || typeof value === 'string'))
    return moneyText(value, unit === 'minor', currencyOf(display, document));
  if (as === 'country' && typeof value === 'string') return countryText(value);
  if (typeof value !== 'number') return undefined;
  if (as === 'percent')
    return numberText(unit === 'hundred' ? value / 100 : value, {
      style: 'percent',
      maximumFractionDigits: 2,
    });
  if (as === 'bytes') return bytesText(value);
  return as === 'duration' ? durationText(value * unitMs[unit ?? 's']) : undefined;
}

function numberText(value: number | string, options: Intl.NumberFormatOptions): string {
  // A decimal text keeps all its digits.
  return new Intl.NumberFormat(undefined, options).format(value as number);
}

function currencyOf({ currency, currencyField }: Display, document: Readonly<Record<string, unknown>>) {
  const named = currencyField === undefined ? currency : document[currencyField];
  return typeof named === 'string' && /^[A-Za-z]{3}$/.test(named) ? named : undefined;
}

function moneyText(
  value: number | string,
  isMinor: boolean,
  currency: string | undefined,
): string | undefined {
  if (Number.isNaN(Number(value)) || value === '') return undefined;
  const digits = currency === undefined ? 2 : digitsOfMoney(currency);
  const whole = isMinor ? Number(value) / 10 ** digits : value;
  return currency === undefined
    ? numberText(whole, { minimumFractionDigits: digits })
    : numberText(whole, { style: 'currency', currency });
}

function countryText(code: string): string | undefined {
  if (!/^[A-Za-z]{2}$/.test(code)) return undefined;
  return new Intl.DisplayNames(undefined, { type: 'region' }).of(code.toUpperCase());
}

const bytesUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];

function bytesText(value: number): string {
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), bytesUnits.length - 1);
  const style = { style: 'unit', unit: bytesUnits[power] ?? 'byte', maximumFractionDigits: 1 } as const;
  return numberText(value / 1000 ** power, style);
}

const unitMs = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, minor: 1, hundred: 1 } as const;

const parts = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

/** The two largest units: `1 d 4 h`, `90 s` as `1 min 30 s`. */
function durationText(ms: number): string {
  const sign = ms < 0 ? '−' : '';
  let rest = Math.round(Math.abs(ms));
  const texts: string[] = [];
  for (const [unit, size] of parts) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 && texts.length < 2) texts.push(`${count} ${unit}`);
    else if (texts.length > 0) break;
  }
  return texts.length === 0 ? '0 s' : `${sign}${texts.join(' ')}`;
}

const goodWords: ReadonlySet<string> = new Set([
  ...['enabled', 'delivered', 'processed', 'sent', 'succeeded', 'ready', 'active', 'done', 'solved', 'paid'],
]);
const badWords: ReadonlySet<string> = new Set([
  ...['failed', 'disabled', 'not_delivered', 'urgent', 'refused', 'overdue', 'late'],
]);
/** Colours of states that nothing is known of (`.badge.t0` and so on). */
const huesCount = 6;

/** The class of a state: its declared colour, that of a word which is plainly good or bad, or one by its text, always the same. */
export function toneOf(text: string, { tones }: Display = {}): string {
  const declared = tones?.[text];
  if (declared !== undefined) return declared;
  if (goodWords.has(text)) return 'good';
  if (badWords.has(text)) return 'bad';
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return `t${sum % huesCount}`;
}

const shortTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const exactTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });

/** The zone of the reader, such as `Europe/Berlin`. */
export const readerZone: string = shortTime.resolvedOptions().timeZone;

/** An instant in the reader's zone. @param isShort without seconds */
export function timeText(value: string, isShort = false): string {
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? value : (isShort ? shortTime : exactTime).format(ms);
}

export function dateText(value: string): string {
  const ms = Date.parse(`${value}T00:00:00Z`);
  return Number.isNaN(ms) ? value : dayOnly.format(ms);
}

const minuteMs = 60_000;

/** The time of the reader's clocks with their offset from UTC at that instant, as RFC 3339 writes it. */
export function zonedText(value: string): string {
  const ms = Date.parse(value);
  if (Number.isNaN(ms)) return value;
  const offset = -new Date(ms).getTimezoneOffset();
  const two = (part: number) => String(Math.trunc(part)).padStart(2, '0');
  const sign = offset < 0 ? '-' : '+';
  const zone = `${sign}${two(Math.abs(offset) / 60)}:${two(Math.abs(offset) % 60)}`;
  const local = new Date(ms + offset * minuteMs).toISOString();
  return `${local.slice(0, -1)}${zone} (${readerZone}), ${value}`;
}
