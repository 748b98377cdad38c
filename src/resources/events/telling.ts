/**
 * Decides how much of each event a stream shows to its reader (§6.10): the whole event, the event without the text of its resource, that the
 * document left what the reader may see, or nothing; and what it says about documents that refer to it (§6.14). Rules over references are
 * judged by the rows that they name now, which are read together.
 */
import { always, type Filter } from '../../model/filter.ts';
import { matches } from '../../model/matches.ts';
import { judged } from '../../store/related-rows.ts';
import { type MaybePromise, type TailEntry, whenKnown } from '../../store/store.ts';
import { type ChildMessage, childMessages } from './child-messages.ts';
import { hasLeft, matchableEvent, type Reach, valueOfEvent } from './leaving.ts';
import { type LooksStore, ParentLooks } from './parent-looks.ts';
import type { ParentRule } from './parent-rules.ts';
import type { Withholds } from './withheld-text.ts';

export type Told = {
  readonly telling: 'whole' | 'withheld' | 'left' | 'nothing';
  /** About documents that refer to that of the event. */
  readonly children: readonly ChildMessage[];
};

export type Judge = {
  readonly reach: Reach;
  /** Undefined: no text is withheld. */
  readonly withholds?: Withholds | undefined;
  /** The filter of the reader's query. Absent: all events. */
  readonly requested?: Filter | undefined;
  /** The children that the reader asks for, as a condition on them, for the event of their parent. Absent: all. */
  readonly wanted?: (rule: ParentRule, entry: TailEntry) => Filter;
};

type Judgement = Omit<Told, 'telling'> & { readonly telling: Exclude<Told['telling'], 'withheld'> };

const none: readonly boolean[] = [];
const noChildren: readonly ChildMessage[] = [];
const whole: Judgement = { telling: 'whole', children: noChildren };

/** In the order of the events, which pass `both` of the reach and what was requested, or are of parents. */
export function told(
  store: LooksStore,
  judge: Judge,
  entries: readonly TailEntry[],
): MaybePromise<readonly Told[]> {
  const { withholds } = judge;
  const withheld = withholds === undefined || entries.length === 0 ? none : withholds(entries);
  return whenKnown(withheld, (withheldAt) =>
    whenKnown(judgements(store, judge, entries), (judgedAt) =>
      entries.map((_, at) => {
        const judgement = judgedAt[at] ?? whole;
        const isWithheld = judgement.telling === 'whole' && withheldAt[at] === true;
        return isWithheld ? { ...judgement, telling: 'withheld' } : judgement;
      }),
    ),
  );
}

function judgements(
  store: LooksStore,
  { reach, requested = always, wanted = () => always }: Judge,
  entries: readonly TailEntry[],
): MaybePromise<readonly Judgement[]> {
  const { parents, visible, formerly } = reach;
  if (formerly.op === 'never' && (parents?.size ?? 0) === 0) return [];
  const looks = new ParentLooks(store);
  const judgementOf = (entry: TailEntry): Judgement => {
    const event = matchableEvent(entry, looks.rows.find);
    const rules = parents?.get(entry.collection);
    if (rules === undefined) return hasLeft(reach, event) ? left : whole;
    const parent = { entry, value: (field: Parameters<typeof event.value>[0]) => valueOfEvent(entry, field) };
    const children = childMessages(rules, parent, looks, (rule) => wanted(rule, entry));
    if (!matches(requested, event)) return { telling: 'nothing', children };
    if (matches(visible, event)) return { telling: 'whole', children };
    return { telling: matches(formerly, event) ? 'left' : 'nothing', children };
  };
  return judged(looks, () => entries.map(judgementOf));
}

const left: Judgement = { telling: 'left', children: noChildren };
