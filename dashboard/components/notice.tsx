/**
 * The outcome of the last change: which document was created, changed, deleted or restored, with the link to it and the way back where there
 * is one. One live region outlives the views, so that a change which leads to another page is announced there.
 */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { changeDocument, type Members, type Version } from '../change-document.ts';
import { type Listed, memberPath } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { idOf, titleOf } from '../reference-titles.ts';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { ProblemNote } from './problem.tsx';

type Notice = {
  /** Tells notices apart. */
  readonly at: number;
  /** The change as the message names it: `Created`. */
  readonly done: string;
  /** Undefined: what was done concerns no document. */
  readonly list?: Listed | undefined;
  readonly documents: readonly Members[];
  /** The documents can be opened. */
  readonly isThere: boolean;
  /** Takes the change back, and announces that. */
  readonly undo?: (() => Promise<Problem | undefined>) | undefined;
};

const notice = signal<Notice | undefined>(undefined);

/** Counts the changes that were taken back: views read again what they show. */
export const undone = signal(0);

/** A later notice restarts it, and so does a pointer or a focus within. */
const shownMs = 15_000;
/** A deletion of more documents is taken back on the page of the deleted ones. */
const restoredMax = 100;

export function announce(done: string, list: Listed, document: Members, undo?: Notice['undo']): void {
  notice.value = {
    at: performance.now(),
    done,
    list,
    documents: [document],
    isThere: list.member !== undefined,
    undo,
  };
}

/** The document that a request beside the plain methods was about. */
export type Concerned = { readonly list: Listed; readonly document: Members };

/** @param title of the request @param isPending it is carried out later */
export function announceAction(title: string, concerned: Concerned | undefined, isPending: boolean): void {
  const done = `${isPending ? 'Began' : 'Carried out'} “${title}”`;
  if (concerned !== undefined) announce(`${done} on`, concerned.list, concerned.document);
  else notice.value = { at: performance.now(), done, documents: [], isThere: false };
}

export function announceDeletion(list: Listed, documents: readonly Members[], done = 'Deleted'): void {
  const undo = async () => {
    for (const document of documents) {
      const problem = problemOf(await send('POST', `${memberPath(list, idOf(list, document))}/restore`));
      if (problem !== undefined) return problem;
    }
    notice.value = { at: performance.now(), done: 'Restored', list, documents, isThere: true };
    undone.value += 1;
    return undefined;
  };
  const canRestore = list.keepsDeleted && documents.length <= restoredMax;
  notice.value = {
    at: performance.now(),
    done,
    list,
    documents,
    isThere: false,
    undo: canRestore ? undo : undefined,
  };
}

type Change = {
  readonly list: Listed;
  readonly changed: Members;
  readonly before: Members;
  /** Undefined: the response had no representation. */
  readonly made: Version | undefined;
};

/** Announces a change of a document. It is taken back by another one, as long as nobody has changed the document since. */
export function announceChange({ list, changed, before, made }: Change): void {
  const names = Object.keys(changed);
  // A merge patch does not remove what was added within an object.
  const isPlain = names.every((name) => !isObject(before[name]) && !isObject(changed[name]));
  const { tag = null, document = before } = made ?? {};
  const undo = async () => {
    const done = await changeDocument(memberPath(list, idOf(list, document)), {
      changed: Object.fromEntries(names.map((name) => [name, before[name] ?? null])),
      ...{ tag, before: document, hasHistory: false },
    });
    if ('problem' in done) return done.problem;
    if ('conflict' in done) return overtaken;
    announce('Changed back', list, document);
    undone.value += 1;
    return undefined;
  };
  announce('Saved', list, document, isPlain && tag !== null ? undo : undefined);
}

const overtaken: Problem = {
  ...{ status: 412, message: 'Somebody changed the document since.', code: undefined, faults: [] },
  ...{ trace: undefined, request: undefined },
};

/** The region of the page. A panel has one of its own, since the page is inert behind it. */
export function Notices(): JSX.Element {
  const { value } = notice;
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    if (value === undefined || isHeld) return undefined;
    const timer = setTimeout(() => dismiss(value), shownMs);
    return () => clearTimeout(timer);
  }, [value, isHeld]);
  // What held the notice before went with it.
  useEffect(() => setHeld(false), [value]);
  const [hold, release] = [() => setHeld(true), () => setHeld(false)];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: who points at the notice reads it; the buttons within take the keys.
    <div
      class="notices"
      onMouseEnter={hold}
      onMouseLeave={release}
      onFocusCapture={hold}
      onBlurCapture={release}
    >
      <div role="status" aria-live="polite">
        {value === undefined ? null : <Sentence notice={value} />}
      </div>
      {value === undefined ? null : <Buttons key={value.at} notice={value} />}
    </div>
  );
}

/** The sentence of the notice for people who hear it while a panel is open. */
export function HiddenNotice(): JSX.Element {
  return (
    <div role="status" aria-live="polite" class="hidden">
      {notice.value === undefined ? null : <Sentence notice={notice.value} />}
    </div>
  );
}

function dismiss(shown: Notice): void {
  if (notice.value === shown) notice.value = undefined;
}

function Sentence({ notice: { done, list, documents, isThere } }: { readonly notice: Notice }): JSX.Element {
  const [first, ...others] = documents;
  if (list === undefined) return <p>{done}.</p>;
  if (first === undefined || others.length > 0)
    return <p>{`${done}: ${documents.length.toLocaleString()} of ${nameOf(list)}.`}</p>;
  const title = titleOf(list, first);
  const link = linkTo('member', { path: list.path, id: idOf(list, first) });
  return (
    <p>
      {done} {isThere ? <a href={link}>{title}</a> : <strong>{title}</strong>}.
    </p>
  );
}

function Buttons({ notice: shown }: { readonly notice: Notice }): JSX.Element {
  const { undo } = shown;
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const takeBack = async () => {
    setBusy(true);
    setProblem(await undo?.());
    setBusy(false);
  };
  return (
    <>
      <ProblemNote problem={problem} />
      {undo === undefined || problem !== undefined ? null : (
        <button type="button" class="small" disabled={isBusy} onClick={takeBack}>
          Undo
        </button>
      )}
      <button type="button" class="small" aria-label="Dismiss" onClick={() => dismiss(shown)}>
        ×
      </button>
    </>
  );
}
