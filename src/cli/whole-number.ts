/** Options that take a whole number, refused like any other mistake in the command line. */
import { InvalidArgumentError } from 'commander';

const digits = /^\d{1,9}$/;

export function wholeNumber(least: number, most: number): (written: string) => number {
  return (written) => {
    const value = digits.test(written) ? Number(written) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
