/**
 * The times of cron expressions in every zone whose clocks change in 2026, against a slow model: it writes down the local time of every
 * minute around a change, by Temporal, and applies the rule of the guide to that list.
 */
/// <reference lib="esnext.temporal" />
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobTimes } from '../../src/config/jobs.ts';
import { roundsOf } from '../harness/rounds.ts';

const dayMs = 86_400_000;

/** Expressions with their minutes and hours, told a second time. */
const expressions = [
  { cron: '30 2 * * *', minutes: [30], hours: [2] },
  { cron: '0 2,14 * * *', minutes: [0], hours: [2, 14] },
  { cron: '*/15 2 * * *', minutes: [0, 15, 30, 45], hours: [2] },
  { cron: '0 */2 * * *', minutes: [0], hours: range(0, 22, 2) },
  { cron: '*/20 0-23/3 * * *', minutes: [0, 20, 40], hours: range(0, 21, 3) },
  { cron: '* 1-3 * * *', minutes: range(0, 59), hours: [1, 2, 3] },
  { cron: '5 1-23 * * *', minutes: [5], hours: range(1, 23) },
  { cron: '@daily', minutes: [0], hours: [0] },
  { cron: '0 * * * *', minutes: [0], hours: range(0, 23) },
  { cron: '@hourly', minutes: [0], hours: range(0, 23) },
  { cron: '*/15 0-23 * * *', minutes: [0, 15, 30, 45], hours: range(0, 23) },
  { cron: '7,37 */1 * * *', minutes: [7, 37], hours: range(0, 23) },
] as const;

function range(from: number, to: number, step = 1): readonly number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);
}

type Change = { readonly timeZone: string; readonly at: number };

/** One zone for each pair of moment and offsets: their names are many, their changes few. */
function changesOf2026(): Change[] {
  const found = new Map<string, Change>();
  for (const timeZone of Intl.supportedValuesOf('timeZone')) {
    let time = Temporal.Instant.from('2026-01-01T00:00Z').toZonedDateTimeISO(timeZone);
    for (;;) {
      const next = time.getTimeZoneTransition('next');
      if (next === null || next.epochMilliseconds >= Date.UTC(2027)) break;
      const before = next.subtract({ milliseconds: 1 });
      const key = `${next.epochMilliseconds} ${before.offset} ${next.offset}`;
      if (!found.has(key)) found.set(key, { timeZone, at: next.epochMilliseconds });
      time = next;
    }
  }
  return [...found.values()];
}

type Minute = { readonly at: number; readonly name: string; readonly hour: number; readonly minute: number };

function minutesAround({ timeZone, at }: Change): readonly Minute[] {
  let time = Temporal.Instant.fromEpochMilliseconds(at - dayMs).toZonedDateTimeISO(timeZone);
  return Array.from({ length: 2 * 24 * 60 + 1 }, () => {
    const { epochMilliseconds, day, hour, minute } = time;
    time = time.add({ minutes: 1 });
    return { at: epochMilliseconds, name: nameOf(day, hour, minute), hour, minute };
  });
}

function nameOf(day: number, hour: number, minute: number): string {
  return `${day} ${hour}:${minute}`;
}

type Expression = { readonly minutes: readonly number[]; readonly hours: readonly number[] };

/** @param leftOut the local times that a clock set forward leaves out */
function expected(
  { minutes, hours }: Expression,
  around: readonly Minute[],
  leftOut: ReadonlySet<string>,
  change: Change,
): readonly number[] {
  const matching = around.filter(({ hour, minute }) => hours.includes(hour) && minutes.includes(minute));
  if (hours.length === 24) return matching.map(({ at }) => at);
  const first = new Map<string, number>();
  for (const { at, name } of matching) if (!first.has(name)) first.set(name, at);
  const isLeftOut = [...leftOut].some((name) => {
    const [, hour, minute] = name.split(/[ :]/);
    return hours.includes(Number(hour)) && minutes.includes(Number(minute));
  });
  return [...new Set([...first.values(), ...(isLeftOut ? [change.at] : [])])].sort(
    (one, other) => one - other,
  );
}

function leftOutBy({ timeZone, at }: Change): ReadonlySet<string> {
  const before = Temporal.Instant.fromEpochMilliseconds(at - 1).toZonedDateTimeISO(timeZone);
  const after = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toPlainDateTime();
  const names = new Set<string>();
  for (
    let time = before.toPlainDateTime().add({ milliseconds: 1 });
    Temporal.PlainDateTime.compare(time, after) < 0;
    time = time.add({ minutes: 1 })
  ) {
    names.add(nameOf(time.day, time.hour, time.minute));
  }
  return names;
}

test('every expression runs by the rule, in every zone whose clocks change', () => {
  const changes = changesOf2026();
  assert.ok(changes.length > 20, `${changes.length} changes`);
  // Troll changes by two hours, Lord Howe by half of one; the full tier has all.
  const first = ({ timeZone }: Change) =>
    Number(!['Antarctica/Troll', 'Australia/Lord_Howe'].includes(timeZone));
  changes.sort((one, other) => first(one) - first(other));
  for (const change of changes.slice(0, roundsOf(8, changes.length))) {
    const around = minutesAround(change);
    const leftOut = leftOutBy(change);
    for (const expression of expressions) {
      const times = jobTimes({ cron: expression.cron, timeZone: change.timeZone });
      const [from, to] = [change.at - dayMs, change.at + dayMs];
      const wanted = expected(expression, around, leftOut, change).filter((at) => at > from);
      const found: number[] = [];
      for (let at = times.after(from); at !== undefined && at <= to; at = times.after(at)) found.push(at);
      const what = `${expression.cron} in ${change.timeZone}`;
      assert.deepEqual(found.map(textOf), wanted.map(textOf), what);
      for (const [index, at] of wanted.entries()) {
        const before = wanted[index - 1];
        if (index % 7 === 0) assert.equal(times.lastUntil(at), at, what);
        if (before !== undefined) assert.equal(times.lastUntil(at - 1), before, what);
      }
    }
  }
});

function textOf(ms: number): string {
  return new Date(ms).toISOString();
}

test('the changes of Europe/Berlin are as the guide shows them', () => {
  const spring = '2026-03-29T00:30:00.000Z';
  const autumn = '2026-10-24T23:59:00.000Z';
  for (const [cron, start, ...wanted] of [
    ['0 2,14 * * *', spring, '2026-03-29T01:00:00.000Z', '2026-03-29T12:00:00.000Z'],
    ['*/15 2 * * *', spring, '2026-03-29T01:00:00.000Z', '2026-03-30T00:00:00.000Z'],
    ['0 */2 * * *', spring, '2026-03-29T01:00:00.000Z', '2026-03-29T02:00:00.000Z'],
    ['0 2,14 * * *', autumn, '2026-10-25T00:00:00.000Z', '2026-10-25T13:00:00.000Z'],
    ['45 2 * * *', autumn, '2026-10-25T00:45:00.000Z', '2026-10-26T01:45:00.000Z'],
    ['0 */2 * * *', autumn, '2026-10-25T00:00:00.000Z', '2026-10-25T03:00:00.000Z'],
    ['30 * * * *', autumn, '2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z'],
  ] as const) {
    const { after } = jobTimes({ cron, timeZone: 'Europe/Berlin' });
    const first = after(Date.parse(start)) ?? assert.fail();
    const second = after(first) ?? assert.fail();
    assert.deepEqual([textOf(first), textOf(second)], wanted, cron);
  }
});
