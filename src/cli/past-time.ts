/** A time that lies behind us, as people say it: how long ago (`2h`), or a date or a time as ISO 8601 writes it. */
import { CommandFailure, exitCodes } from './failure.ts';

const ago = /^([1-9][0-9]{0,6})([smhd])$/;
const isoDate = /^\d{4}-/;
const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * @param option how the command line calls it, for the sentence that it is wrong
 * @returns ISO 8601
 */
export function pastTime(option: string, text: string, nowMs: number): string {
  const [, count, unit = ''] = ago.exec(text) ?? [];
  const at = count === undefined ? Date.parse(text) : nowMs - Number(count) * (unitMs[unit] ?? 0);
  if (Number.isNaN(at) || (count === undefined && !isoDate.test(text))) {
    const message = `${option} must be like 2h, 30m, 7d or 2030-12-31T08:00:00Z, not ${JSON.stringify(text)}`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  return new Date(at).toISOString();
}
