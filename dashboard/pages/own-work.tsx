/**
 * The part of Home that is about the person: what is assigned to them, their saved views with the numbers of documents, what changed lately and
 * whether they may act on it, and links to the forms of new documents. A part that has nothing is left out.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { View } from '../api-types.ts';
import { Actor, type ActorValue } from '../components/actor.tsx';
import { linkOfView } from '../components/saved-views.tsx';
import { base, description, hasPath, isCollection, type Listed, listOf, pathOf } from '../description.ts';
import { labelOf, nameOf } from '../presentation.ts';
import { titleOf } from '../reference-titles.ts';
import { readRights, rightsIn } from '../rights.ts';
import { linkTo } from '../route.ts';
import { isObject, send } from '../send.ts';
import { caller, isAdministrator, readable } from '../session.ts';
import { type Item, useItems } from '../use-items.ts';
import { Ago } from '../webhooks/clock.tsx';
import { requestOf } from './list-page.tsx';

const viewsShown = 12;
const assignmentsShown = 8;
const everyMs = 15_000;
const eventsRead = 60;
const changesShown = 8;

/** Collections that the caller may read. */
export function readableCollections(): readonly Listed[] {
  return (description.value?.lists ?? []).filter(
    (list) => isCollection(list) && readable.value.has(list.path),
  );
}

export function OwnWork(): JSX.Element {
  const lists = readableCollections();
  return (
    <>
      <Assigned lists={lists} />
      <OwnViews />
      {isAdministrator() ? null : <RecentChanges />}
    </>
  );
}

type ListsProps = { readonly lists: readonly Listed[] };

type Counted = {
  readonly title: string;
  readonly hint: string;
  readonly link: string;
  /** The list without the documents. */
  readonly path: string;
};

/** Members of collections that refer to the account of the person. */
function Assigned({ lists }: ListsProps): JSX.Element | null {
  const me = caller.value;
  const users = pathOf('users');
  if (me?.kind !== 'user') return null;
  const found = lists
    .flatMap((list) =>
      [...list.references]
        .filter(([name, target]) => target === users && list.filters.includes(name))
        .map(([name]) => ({
          title: nameOf(list),
          hint: `${labelOf(list.schema, name)}: you`,
          link: linkTo('list', { path: list.path, [name]: me.id }),
          path: `${list.path}?${new URLSearchParams({ [name]: me.id })}`,
        })),
    )
    .slice(0, assignmentsShown);
  return <Cards title="Assigned to you" cards={found} isOfAny={false} />;
}

function OwnViews(): JSX.Element | null {
  const [views, setViews] = useState<readonly View[]>([]);
  useEffect(() => {
    if (!hasPath(pathOf('views'))) return;
    const filter = { or: [{ ownerId: caller.value?.id ?? '' }, { shared: true }] };
    void send('QUERY', pathOf('views'), { json: { filter, sort: ['name'], limit: viewsShown } }).then(
      ({ json }) => setViews(isObject(json) && Array.isArray(json.items) ? (json.items as View[]) : []),
    );
  }, []);
  const cards = views.flatMap((view) => {
    const list = listOf(pathOf(view.collection));
    if (list === undefined || !readable.value.has(list.path)) return [];
    const path = requestOf(list, new URLSearchParams(view.query));
    return [{ title: view.name, hint: nameOf(list), link: linkOfView(list.path, view), path }];
  });
  return <Cards title="Saved views" cards={cards} isOfAny />;
}

type CardsProps = {
  readonly title: string;
  readonly cards: readonly Counted[];
  /** A card without documents is shown too. */
  readonly isOfAny: boolean;
};

function Cards({ title, cards, isOfAny }: CardsProps): JSX.Element | null {
  const [totals, setTotals] = useState<ReadonlyMap<string, string>>(new Map());
  const paths = cards.map(({ path }) => path).join(' ');
  useEffect(() => {
    let isShown = true;
    const read = async (path: string): Promise<readonly [string, string]> => {
      const [list = '', query] = path.split('?', 2);
      const counted = new URLSearchParams(query);
      counted.set('limit', '1');
      counted.delete('cursor');
      const headers = { Prefer: 'count=exact' };
      const reply = await send('GET', `${list}?${counted}`, { headers }).catch(() => undefined);
      return [path, reply?.headers.get('X-Total-Count') ?? '–'];
    };
    void Promise.all(cards.map(({ path }) => read(path))).then((found) => {
      if (isShown) setTotals(new Map(found));
    });
    return () => {
      isShown = false;
    };
  }, [paths]);
  const shown = isOfAny ? cards : cards.filter(({ path }) => !['0', undefined].includes(totals.get(path)));
  if (shown.length === 0) return null;
  return (
    <>
      <h2>{title}</h2>
      <ul class="cards">
        {shown.map(({ title: name, hint, link, path }) => (
          <li key={link}>
            <a href={link}>
              <strong>{name}</strong>
              <span class="quiet">{hint}</span>
              <span class="count">{totals.get(path) ?? '…'}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

type Change = {
  readonly list: Listed;
  readonly id: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly what: string;
  readonly at: string;
  readonly actor: ActorValue | undefined;
};

/** The newest change of each document, from the events that the person may read. */
function changesIn(events: readonly Item[]): readonly Change[] {
  const found = new Map<string, Change | undefined>();
  for (const { type, data, created, actor } of events) {
    const [, name = '', what = ''] = /^(.+)\.(created|updated|deleted)$/.exec(String(type)) ?? [];
    const list = listOf(pathOf(name));
    const document = isObject(data) ? data.object : undefined;
    if (list === undefined || !isCollection(list) || !isObject(document)) continue;
    const key = `${list.path}/${document.id}`;
    if (found.has(key)) continue;
    const at = new Date(Number(created) * 1000).toISOString();
    const by = isObject(actor) ? (actor as unknown as ActorValue) : undefined;
    const change = { list, document, id: String(document.id), what, at, actor: by };
    found.set(key, what === 'deleted' ? undefined : change);
  }
  return [...found.values()].filter((each) => each !== undefined).slice(0, changesShown);
}

function RecentChanges(): JSX.Element | null {
  const events = useItems(`${base.value}/events?limit=${eventsRead}&sort=-id`, everyMs) ?? [];
  const changes = changesIn(events);
  const actionable = useActionable(changes);
  if (changes.length === 0) return null;
  const keyOf = ({ list, id }: Change) => `${list.path}/${id}`;
  const mine = changes.filter((each) => actionable.get(keyOf(each)) === true);
  const others = changes.filter((each) => actionable.get(keyOf(each)) === false);
  return (
    <>
      <ChangeList title="Changed lately, yours to act on" changes={mine} />
      <ChangeList title={mine.length === 0 ? 'Changed lately' : 'Changed lately, to read'} changes={others} />
    </>
  );
}

/** Decides for each document if the person may change it or call an action of it; the server answers once for each. */
function useActionable(changes: readonly Change[]): ReadonlyMap<string, boolean> {
  const [known, setKnown] = useState<ReadonlyMap<string, boolean>>(new Map());
  const missing = changes.filter(({ list, id }) => !known.has(`${list.path}/${id}`));
  const names = missing.map(({ list, id }) => `${list.path}/${id}`).join(' ');
  useEffect(() => {
    if (missing.length === 0) return undefined;
    let isShown = true;
    const ask = async ({ list, id }: Change): Promise<readonly [string, boolean]> => {
      const { may, mayCall } = await readRights(list, id);
      return [`${list.path}/${id}`, may('update') || (list.member?.steps ?? []).some(mayCall)];
    };
    void Promise.all(missing.map(ask)).then((found) => {
      if (isShown) setKnown(new Map([...known, ...found]));
    });
    return () => {
      isShown = false;
    };
  }, [names]);
  return known;
}

type ChangeListProps = { readonly title: string; readonly changes: readonly Change[] };

function ChangeList({ title, changes }: ChangeListProps): JSX.Element | null {
  if (changes.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul class="event-list">
        {changes.map(({ list, id, document, what, at, actor }) => (
          <li key={`${list.path} ${id}`}>
            <a href={linkTo('member', { path: list.path, id })}>{titleOf(list, document)}</a>
            <span class="quiet">
              {`${list.schema.title ?? nameOf(list)}, ${what === 'created' ? 'created' : 'changed'} `}
              <Ago time={at} /> <Actor actor={actor} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Links to the forms of new documents. */
export function NewDocuments({ lists }: ListsProps): JSX.Element | null {
  if (isAdministrator()) return null;
  const open = lists.filter((list) => list.create !== undefined && rightsIn(list)?.may('create') === true);
  if (open.length === 0) return null;
  return (
    <div class="buttons">
      {open.map((list) => (
        <a key={list.path} class="button" href={linkTo('list', { path: list.path, new: 'yes' })}>
          {`New: ${list.schema.title ?? nameOf(list)}`}
        </a>
      ))}
    </div>
  );
}
