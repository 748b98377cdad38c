/**
 * Parsers of option values; commander reports their refusals like other mistakes in the command line. A JSON object is given as JSON, as
 * `@file`, or as `-` for stdin.
 */
import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { isRecord } from '../config/inspection.ts';
import { usageFailure } from './failure.ts';
import type { Terminal } from './terminal.ts';

const digits = /^\d{1,9}$/;

export function wholeNumber(least: number, most: number): (written: string) => number {
  return (written) => {
    const value = digits.test(written) ? Number(written) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

const ago = /^([1-9][0-9]{0,6})([smhd])$/;
const isoDate = /^\d{4}-/;
const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a past time: a duration (`2h`), or an ISO 8601 date or time.
 * @param option its name, for the error message
 * @returns ISO 8601
 */
export function pastTime(option: string, text: string, nowMs: number = Date.now()): string {
  const [, count, unit = ''] = ago.exec(text) ?? [];
  const at = count === undefined ? Date.parse(text) : nowMs - Number(count) * (unitMs[unit] ?? 0);
  if (Number.isNaN(at) || (count === undefined && !isoDate.test(text))) {
    throw usageFailure(
      `${option} must be like 2h, 30m, 7d or 2030-12-31T08:00:00Z, not ${JSON.stringify(text)}`,
    );
  }
  return new Date(at).toISOString();
}

/** Parses several words, separated by spaces or commas, or from a repeated option. */
export function commaList(written: string, before: readonly string[] = []): readonly string[] {
  const words = written
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (words.length === 0) throw new InvalidArgumentError('It must not be empty.');
  return [...before, ...words];
}

export type Members = Readonly<Record<string, unknown>>;

/** @param option its name, for the error message */
export async function readObject(terminal: Terminal, option: string, written: string): Promise<Members> {
  const text =
    written === '-' ? (await terminal.stdin.setEncoding('utf8').toArray()).join('') : textIn(written);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (isRecord(value)) return value;
  throw usageFailure(`${option} must be a JSON object, @file or -`);
}

function textIn(written: string): string {
  if (!written.startsWith('@')) return written;
  const file = written.slice(1);
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw usageFailure(`${file} cannot be read (${reason})`, error);
  }
}
