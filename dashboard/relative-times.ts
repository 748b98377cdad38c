/**
 * Times relative to the present in filters (§4.2.10): the choices that a list offers for members with times and days, and the words for values
 * that it shows. The zone is the reader's, and is written into the value, so that a shared view means the same to everybody.
 */
import { readerZone } from './presentation.ts';

type Conditions = Readonly<Record<string, string>>;

const zone = readerZone === 'UTC' ? '' : `[${readerZone}]`;
const at = (value: string) => `${value}${zone}`;
const within = (from: string, to: string): Conditions => ({ gte: at(from), lt: at(to) });

/** By name: what is compared, for a member with a day where that differs. */
const choices: ReadonlyMap<string, { readonly time: Conditions; readonly day?: Conditions }> = new Map([
  ['today', { time: within('today', 'today+P1D'), day: { eq: at('today') } }],
  ['yesterday', { time: within('today-P1D', 'today'), day: { eq: at('today-P1D') } }],
  [
    'in the last 7 days',
    { time: { gte: at('now-P7D'), lte: at('now') }, day: { gte: at('today-P7D'), lte: at('today') } },
  ],
  [
    'in the last 30 days',
    { time: { gte: at('now-P30D'), lte: at('now') }, day: { gte: at('today-P30D'), lte: at('today') } },
  ],
  ['this week', { time: within('thisWeek', 'thisWeek+P1W') }],
  ['this month', { time: within('thisMonth', 'thisMonth+P1M') }],
  ['before now', { time: { lt: at('now') }, day: { lt: at('today') } }],
  ['after now', { time: { gt: at('now') }, day: { gt: at('today') } }],
]);

export const relativeChoices: readonly string[] = [...choices.keys()];

/** The conditions of a choice as parameters of a list, `due[lt]`, without those that stood for the member before. */
export function parametersOf(
  name: string,
  choice: string,
  kind: string,
): Readonly<Record<string, string | undefined>> {
  const { time, day } = choices.get(choice) ?? { time: {} };
  const conditions = kind === 'date' ? (day ?? time) : time;
  return Object.fromEntries(
    ['eq', 'gt', 'gte', 'lt', 'lte'].map((operator) => [
      operator === 'eq' ? name : `${name}[${operator}]`,
      conditions[operator],
    ]),
  );
}

const written = /^(now|today|thisWeek|thisMonth|thisYear)(?:([+-])(P[\dYMWDTHS]+))?(?:\[(.+)\])?$/;
const beginnings: Readonly<Record<string, string>> = {
  thisWeek: 'the start of this week',
  thisMonth: 'the start of this month',
  thisYear: 'the start of this year',
};
const datePart = /(\d+)([YMWD])/g;
const timePart = /(\d+)([HMS])/g;
const dateUnits: Readonly<Record<string, string>> = { Y: 'year', M: 'month', W: 'week', D: 'day' };
const timeUnits: Readonly<Record<string, string>> = { H: 'hour', M: 'minute', S: 'second' };

/** `7 days before now`; undefined: the value is no relative time. */
export function relativeText(value: string): string | undefined {
  const [whole, beginning = '', sign, duration = '', named] = written.exec(value) ?? [];
  if (whole === undefined) return undefined;
  const [days = '', times = ''] = duration.slice(1).split('T');
  const parts = [...counted(days, datePart, dateUnits), ...counted(times, timePart, timeUnits)];
  const from = beginnings[beginning] ?? beginning;
  const text = parts.length === 0 ? from : `${parts.join(' ')} ${sign === '-' ? 'before' : 'after'} ${from}`;
  return named === undefined || named === readerZone ? text : `${text} (${named})`;
}

function counted(text: string, part: RegExp, units: Readonly<Record<string, string>>): readonly string[] {
  return [...text.matchAll(part)].map(([, count = '', unit = '']) => {
    const name = units[unit] ?? unit;
    return `${count} ${name}${count === '1' ? '' : 's'}`;
  });
}
