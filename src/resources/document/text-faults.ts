/**
 * Texts that are too long for the indexes that hold them (config/text-bounds.ts). Bytes are only counted where the number of UTF-16
 * units leaves it open: a unit takes at most three, so a short text costs a comparison.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { TextBound } from '../../model/collection.ts';
import { memberAt } from '../../model/matches.ts';

const bytesPerUnitMax = 3;
const none: readonly FieldError[] = [];

/** One fault for each text that is over its bound. */
export function textFaults(bounds: readonly TextBound[], value: unknown): readonly FieldError[] {
  let faults: FieldError[] | undefined;
  for (const { path, bytesMax } of bounds) {
    const text = memberAt(value, path);
    if (typeof text !== 'string' || text.length * bytesPerUnitMax <= bytesMax) continue;
    if (text.length <= bytesMax && Buffer.byteLength(text) <= bytesMax) continue;
    faults ??= [];
    faults.push({
      pointer: formatJsonPointer(path),
      message: `must take at most ${bytesMax} bytes, because it is indexed`,
    });
  }
  return faults ?? none;
}
