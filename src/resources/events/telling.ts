/**
 * How much a stream tells of each event of its reach (§6.10): the whole event, the event without the text of its resource, or that the
 * document left what the reader may see. Rules over references are judged by the rows that they name now, which are read together.
 */
import { judged, RelatedRows } from '../../store/related-rows.ts';
import type { MaybePromise, Store, TailEntry } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { hasLeft, matchableEvent, type Reach } from './leaving.ts';
import type { Withholds } from './withheld-text.ts';

export type Telling = 'whole' | 'withheld' | 'left';

export type Judge = {
  readonly reach: Reach;
  /** Undefined: no text is withheld. */
  readonly withholds?: Withholds | undefined;
};

const none: readonly boolean[] = [];

/** In the order of the events. */
export function told(
  store: Pick<Store, 'read'>,
  { reach, withholds }: Judge,
  entries: readonly TailEntry[],
): MaybePromise<readonly Telling[]> {
  const withheld = withholds === undefined || entries.length === 0 ? none : withholds(entries);
  return whenKnown(withheld, (withheldAt) =>
    whenKnown(leftIn(store, reach, entries), (leftAt) =>
      entries.map((_, at) => (leftAt[at] === true ? 'left' : withheldAt[at] === true ? 'withheld' : 'whole')),
    ),
  );
}

function leftIn(
  store: Pick<Store, 'read'>,
  reach: Reach,
  entries: readonly TailEntry[],
): MaybePromise<readonly boolean[]> {
  if (reach.formerly.op === 'never') return none;
  const rows = new RelatedRows(store);
  return judged(rows, () => entries.map((entry) => hasLeft(reach, matchableEvent(entry, rows.find))));
}
