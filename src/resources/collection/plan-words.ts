/**
 * Words for people about the way that a list was read, as the value of `Comity-Plan` (§4.21.6): a token that programs can compare, and a sentence. It
 * shows the collection's indexes and its rules, so only administrators get it, and everyone in development.
 */
import type { Position } from '../../store/store.ts';
import type { Way } from '../../store/store-report.ts';
import type { Asked } from '../query/list-query.ts';

/** Rows that an engine skips at the cost of a page. */
const skippedMax = 1000;

/** A header field has no other characters, and a string of structured fields none of the last two. */
const unfit = /[^ -~]|["\\]/g;

/** @param wayTo not called if groups are computed, which reads every document of the filter */
export function planWords(
  wayTo: () => Way,
  asked: Pick<Asked, 'aggregation' | 'expansion'>,
  position: Position,
): string {
  const way = asked.aggregation === undefined ? wayTo() : undefined;
  const sentences = [sentenceOf(way)];
  if (position.from === 'offset' && position.offset > skippedMax && asked.aggregation === undefined)
    sentences.push(
      `It reads and skips ${position.offset} documents before the page; the next link of a page costs the same at any place.`,
    );
  if (asked.expansion !== undefined) sentences.push('The documents that it includes are read by their ids.');
  return `${way?.by ?? 'groups'};words="${sentences.join(' ').replaceAll(unfit, '?')}"`;
}

function sentenceOf(way: Way | undefined): string {
  if (way === undefined) return 'Reads every document that the filter matches, and adds them up in groups.';
  switch (way.by) {
    case 'nothing':
      return 'Reads nothing: no document can match.';
    case 'one':
      return `Looks up at most one document by ${way.fields.join(', ')}.`;
    case 'index':
      return `Walks the index of ${way.fields.join(', ')} in the order of the list: a page costs what it returns.`;
    case 'words':
      return `Finds documents in the index of the words of ${way.fields.join(', ')}, then sorts them.`;
    case 'references':
      return `Begins with the documents of ${way.table} that ${way.field} names, found by an index, then reads those that refer to them.`;
    case 'scan':
      return `Looks at every document until the page is full: no index serves this filter and order.${adviceOf(way.wanted)}`;
  }
}

function adviceOf(wanted: readonly string[] | undefined): string {
  return wanted === undefined ? '' : ` An index of ${wanted.join(', ')} would.`;
}
