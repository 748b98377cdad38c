/** Search texts in SQL. */
import { quoteText } from './value.ts';

/** True for texts made by the declaration of the mark. */
export function isMarked(column: string, mark: string): string {
  return `substr(${column},1,${mark.length})=${quoteText(mark)}`;
}
