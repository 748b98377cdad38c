/** Options that take several words, apart by spaces, by commas, or by the option given again. */
import { InvalidArgumentError } from 'commander';

export function commaList(written: string, before: readonly string[] = []): readonly string[] {
  const words = written
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (words.length === 0) throw new InvalidArgumentError('It must not be empty.');
  return [...before, ...words];
}
