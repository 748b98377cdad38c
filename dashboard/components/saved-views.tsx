/**
 * The saved views of a list (§5.11): a menu that opens, saves, shares, renames and deletes them. The address of the list has the whole
 * state of a view, and its id only so that changes of it can be saved.
 */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { View } from '../api-types.ts';
import { hasPath, isCollection, type Listed, pathOf } from '../description.ts';
import { titleOfReference } from '../reference-titles.ts';
import { go, linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { caller, isAdministrator, readable } from '../session.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { ProblemNote } from './problem.tsx';

type Saved = View & { readonly etag: string };

/** The part of a list's address that a view keeps. */
type State = { readonly query: string; readonly columns: readonly string[] };

/** Most that one page of a list has. */
const viewsRead = 1000;
/** Parts of the address that are not of the state. */
const notKept = ['path', 'columns', '$view', '$action', 'cursor', 'new', 'deleted'];

/** @returns whether the list can have saved views */
export function hasViews(list: Listed): boolean {
  return hasPath(pathOf('views')) && (isCollection(list) || list.tag === 'users');
}

function stateOf(query: URLSearchParams): State {
  const kept = new URLSearchParams(query);
  for (const name of notKept) kept.delete(name);
  return { query: kept.toString(), columns: query.get('columns')?.split(',') ?? [] };
}

function isSame(one: State, other: State): boolean {
  const text = ({ query, columns }: State) =>
    JSON.stringify([[...new URLSearchParams(query)].map(String).sort(), columns]);
  return text(one) === text(other);
}

export function linkOfView(path: string, { id, query, columns }: View): string {
  return linkTo('list', {
    ...Object.fromEntries(new URLSearchParams(query)),
    ...{ path, columns: columns.join(','), $view: id },
  });
}

type SavedViewsProps = { readonly list: Listed; readonly query: URLSearchParams };

export function SavedViews({ list, query }: SavedViewsProps): JSX.Element {
  const menu = useRef<HTMLDetailsElement>(null);
  const { views, problem, read, write } = useViews(list);
  const state = stateOf(query);
  const active = views?.find(({ id }) => id === query.get('$view'));
  const isChanged = active !== undefined && !isSame(active, state);
  const close = () => {
    if (menu.current !== null) menu.current.open = false;
    menu.current?.querySelector('summary')?.focus();
  };
  const save = async (name: string, shared: boolean) => {
    const made = await write('POST', pathOf('views'), { collection: list.name, name, shared, ...state });
    if (made === undefined) return;
    go(linkOfView(list.path, made));
    close();
  };
  return (
    <details
      class="views"
      ref={menu}
      onToggle={() => menu.current?.open === true && void read()}
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <summary class="button">
        <span>{active === undefined ? 'Views' : active.name}</span>
        {isChanged ? <span class="quiet">(changed)</span> : null}
      </summary>
      <div class="menu-panel">
        <ProblemNote problem={problem} />
        <Choice list={list} views={views ?? []} active={active} onChoose={close} />
        {active !== undefined && mayChange(active) ? (
          <Changes
            key={active.id}
            {...{ active, isChanged, state, write }}
            onDeleted={close}
            path={list.path}
          />
        ) : null}
        <SaveAs key={String(views?.length)} onSave={save} />
      </div>
    </details>
  );
}

function mayChange({ ownerId }: Saved): boolean {
  return ownerId === caller.value?.id || isAdministrator();
}

type Write = (method: string, path: string, json?: object, tag?: string) => Promise<Saved | undefined>;

/** The views of a list: those of the caller, and shared ones. */
function useViews(list: Listed) {
  const [views, setViews] = useState<readonly Saved[] | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = async () => {
    const reply = await send('QUERY', pathOf('views'), {
      json: {
        // An administrator may read the views of others that are not shared too.
        filter: { collection: list.name, or: [{ ownerId: caller.value?.id ?? '' }, { shared: true }] },
        ...{ sort: ['name'], limit: viewsRead },
        fields: ['*', 'etag'],
      },
    });
    setProblem(problemOf(reply));
    if (isObject(reply.json) && Array.isArray(reply.json.items))
      setViews(reply.json.items as unknown as readonly Saved[]);
  };
  useEffect(() => void read(), []);
  const write: Write = async (method, path, json, tag) => {
    const headers = tag === undefined ? {} : { 'If-Match': tag };
    const reply = await send(method, path, { headers, ...(json === undefined ? {} : { json }) });
    await read();
    setProblem(problemOf(reply));
    return isObject(reply.json) && reply.status < 400 ? (reply.json as unknown as Saved) : undefined;
  };
  return { views, problem, read, write };
}

type ChoiceProps = {
  readonly list: Listed;
  readonly views: readonly Saved[];
  readonly active: Saved | undefined;
  readonly onChoose: () => void;
};

function Choice({ list, views, active, onChoose }: ChoiceProps): JSX.Element {
  const own = views.filter(({ ownerId }) => ownerId === caller.value?.id);
  const others = views.filter(({ ownerId }) => ownerId !== caller.value?.id);
  const item = (view: Saved) => (
    <li key={view.id}>
      <a
        href={linkOfView(list.path, view)}
        aria-current={view.id === active?.id ? 'true' : undefined}
        onClick={onChoose}
      >
        {view.name} <SharedBy view={view} />
      </a>
    </li>
  );
  if (views.length === 0) return <p class="quiet">No saved views yet.</p>;
  return (
    <>
      {own.length === 0 ? null : <h2>Mine</h2>}
      <ul>{own.map(item)}</ul>
      {others.length === 0 ? null : <h2>Shared by others</h2>}
      <ul>{others.map(item)}</ul>
    </>
  );
}

function SharedBy({ view: { ownerId = '', shared } }: { readonly view: Saved }): JSX.Element | null {
  if (!shared) return null;
  if (ownerId === caller.value?.id) return <span class="badge quiet">shared</span>;
  const users = pathOf('users');
  const isAccount = ownerId.startsWith('usr_') && readable.value.has(users);
  const name = isAccount ? titleOfReference(users, ownerId) : undefined;
  return name === undefined ? null : <span class="quiet">{name}</span>;
}

type ChangesProps = {
  readonly active: Saved;
  readonly isChanged: boolean;
  readonly state: State;
  readonly write: Write;
  readonly onDeleted: () => void;
  readonly path: string;
};

/** Changes that the owner and administrators make to the view that is open. */
function Changes({ active, isChanged, state, write, onDeleted, path }: ChangesProps): JSX.Element {
  const target = `${pathOf('views')}/${active.id}`;
  const [name, setName] = useState<string | undefined>(undefined);
  const change = (json: object) => write('PATCH', target, json, active.etag);
  const rename = async (event: Event) => {
    event.preventDefault();
    if ((await change({ name })) !== undefined) setName(undefined);
  };
  const remove = async () => {
    const problem = problemOf(await send('DELETE', target, { headers: { 'If-Match': active.etag } }));
    if (problem !== undefined) return problem;
    go(
      linkTo('list', {
        path,
        ...Object.fromEntries(new URLSearchParams(state.query)),
        columns: state.columns.join(','),
      }),
    );
    onDeleted();
    return undefined;
  };
  return (
    <fieldset>
      <legend>{active.name}</legend>
      {name === undefined ? (
        <div class="buttons">
          {isChanged ? (
            <button type="button" class="primary" onClick={() => change(state)}>
              Save changes
            </button>
          ) : null}
          <button type="button" onClick={() => setName(active.name)}>
            Rename
          </button>
          <button type="button" onClick={() => change({ shared: !active.shared })}>
            {active.shared ? 'Stop sharing' : 'Share'}
          </button>
          <ConfirmButton action="Delete" question="Delete it?" onConfirm={remove} />
        </div>
      ) : (
        <form class="buttons" onSubmit={rename}>
          <input
            aria-label="New name"
            value={name}
            maxLength={100}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <button type="submit" class="primary">
            Rename
          </button>
          <button type="button" onClick={() => setName(undefined)}>
            Cancel
          </button>
        </form>
      )}
    </fieldset>
  );
}

type SaveAsProps = { readonly onSave: (name: string, shared: boolean) => Promise<void> };

function SaveAs({ onSave }: SaveAsProps): JSX.Element {
  const [name, setName] = useState('');
  const [shared, setShared] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    if (name !== '') void onSave(name, shared);
  };
  return (
    <form onSubmit={submit}>
      <fieldset>
        <legend>Save what the list shows</legend>
        <div class="buttons">
          <input
            aria-label="Name of the view"
            placeholder="Name"
            value={name}
            maxLength={100}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <button type="submit">Save as new</button>
        </div>
        <label>
          <input
            type="checkbox"
            checked={shared}
            onChange={(event) => setShared(event.currentTarget.checked)}
          />{' '}
          Share with others that may read this list
        </label>
      </fieldset>
    </form>
  );
}
