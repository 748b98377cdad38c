/**
 * One resource: its members, the form that changes it, what it is related to, its history and the requests on it. Changes send `If-Match`;
 * if somebody else was faster (412), the two versions are shown side by side and the person chooses.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Conflict, changeDocument, type Version, versionOf } from '../change-document.ts';
import { AccountFactor } from '../components/account-factor.tsx';
import { AccountInvite } from '../components/account-invite.tsx';
import { Actions } from '../components/action-panel.tsx';
import { useClosed } from '../components/closed-members.ts';
import { ConfirmButton } from '../components/confirm-button.tsx';
import { ConflictView } from '../components/conflict.tsx';
import { History } from '../components/history.tsx';
import { ListBelow } from '../components/list-below.tsx';
import { Members } from '../components/members.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { Related } from '../components/related.tsx';
import { SchemaForm } from '../components/schema-form.tsx';
import { Sessions } from '../components/sessions.tsx';
import { SidePanel } from '../components/side-panel.tsx';
import { CopyButton, Json } from '../components/value.tsx';
import { hasPath, type Listed, listOf, memberPath, pathOf } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { titleOf } from '../reference-titles.ts';
import { go, linkTo } from '../route.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { isAdministrator } from '../session.ts';

export function MemberPage({ path, id }: { readonly path: string; readonly id: string }): JSX.Element {
  const list = listOf(path);
  if (list?.member === undefined) return <p role="alert">The API has no members at {path}.</p>;
  return <Member key={`${path} ${id}`} list={list} member={list.member} id={id} />;
}

type MemberProps = {
  readonly list: Listed;
  readonly member: NonNullable<Listed['member']>;
  readonly id: string;
};

function Member({ list, member, id }: MemberProps): JSX.Element {
  const target = memberPath(list, id);
  const { version, problem, conflict, read, change, take, forget } = useVersion(target, member.hasHistory);
  const [isEditing, setEditing] = useState(false);
  const [isSaved, setSaved] = useState(false);
  const save = async (changed: Record<string, unknown>, tag: string | null) => {
    if (Object.keys(changed).length > 0 && !(await change(changed, tag))) return;
    setEditing(false);
    setSaved(true);
  };
  const isForm = isEditing && member.patch !== undefined;
  return (
    <section aria-labelledby="member-title">
      <header class="head">
        <p class="path">
          <a href={linkTo('list', { path: list.path })}>{nameOf(list)}</a>{' '}
          <CopyButton text={id} label="Copy id" />
        </p>
        <h1 id="member-title">{version === undefined ? id : titleOf(list, version.document)}</h1>
        <div class="buttons">
          {version === undefined || isEditing ? null : (
            <DisableButton document={version.document} onChange={(changed) => save(changed, version.tag)} />
          )}
          {member.patch === undefined || version === undefined || isEditing ? null : (
            <button type="button" class="primary" onClick={() => setEditing(true)}>
              Edit
            </button>
          )}
          <button type="button" onClick={read}>
            Reload
          </button>
          {member.canDelete ? <Deletion list={list} target={target} tag={version?.tag ?? null} /> : null}
        </div>
      </header>
      <p role="status" class="saved">
        {isSaved && !isEditing ? 'Saved.' : ''}
      </p>
      {isForm ? null : <ProblemNote problem={problem} />}
      {conflict === undefined ? null : (
        <ConflictView
          {...{ list, conflict }}
          onMerge={(chosen) => {
            if (Object.keys(chosen).length > 0) void save(chosen, conflict.theirs.tag);
            else {
              take(conflict.theirs);
              setEditing(false);
            }
          }}
        />
      )}
      {version === undefined || conflict !== undefined || !isForm ? null : (
        <Editing
          {...{ list, target, version, problem }}
          onSubmit={(changed) => save(changed, version.tag)}
          onCancel={() => {
            setEditing(false);
            forget();
          }}
        />
      )}
      {version === undefined || conflict !== undefined ? null : (
        <Shown {...{ list, member, id, version }} onDone={read} />
      )}
    </section>
  );
}

type EditingProps = {
  readonly list: Listed;
  readonly target: string;
  readonly version: Version;
  readonly problem: Problem | undefined;
  readonly onSubmit: (changed: Record<string, unknown>) => Promise<void>;
  readonly onCancel: () => void;
};

function Editing({ list, target, version, problem, onSubmit, onCancel }: EditingProps): JSX.Element {
  const closed = useClosed(list, target);
  return (
    <SidePanel title={`Edit ${titleOf(list, version.document)}`} onClose={onCancel}>
      {closed === undefined ? <p class="loading">Loading…</p> : <ProblemNote problem={closed.problem} />}
      {closed === undefined ? null : (
        <SchemaForm
          key={version.tag}
          {...{ list, problem, onSubmit, onCancel }}
          schema={list.member?.patch ?? {}}
          value={version.document}
          closed={closed.members}
          submit="Save"
        />
      )}
    </SidePanel>
  );
}

type ShownProps = MemberProps & { readonly version: Version; readonly onDone: () => Promise<void> };

function Shown({ list, member, id, version, onDone }: ShownProps): JSX.Element {
  const target = memberPath(list, id);
  return (
    <>
      <Actions steps={member.steps} member={{ path: member.path, target }} onDone={onDone} />
      <Members list={list} id={id} document={version.document} onChange={onDone} />
      <Related list={list} target={target} id={id} />
      {member.lists.map((each) => (
        <ListBelow
          key={each}
          path={each.replace(member.path, target)}
          name={each.slice(member.path.length + 1)}
        />
      ))}
      <details class="step">
        <summary>JSON{version.tag === null ? '' : `, entity tag ${version.tag}`}</summary>
        <Json value={version.document} label="The representation as JSON" />
      </details>
      {list.path === pathOf('users') && hasPath(pathOf('auth/invite')) ? (
        <AccountInvite email={String(version.document.email)} />
      ) : null}
      {hasPath(`${member.path}/second-factor`) && isAdministrator() ? (
        <AccountFactor account={target} />
      ) : null}
      {hasPath(`${member.path}/sessions`) ? <Sessions account={target} /> : null}
      {member.hasHistory ? <History list={list} target={target} tag={version.tag} /> : null}
    </>
  );
}

/** The version that is shown, and its change by a merge patch with If-Match. */
function useVersion(target: string, hasHistory: boolean) {
  const [version, setVersion] = useState<Version | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [conflict, setConflict] = useState<Conflict | undefined>(undefined);
  const read = async () => {
    const reply = await send('GET', target);
    setProblem(problemOf(reply));
    setVersion(versionOf(reply));
  };
  useEffect(() => void read(), [target]);
  const take = (next: Version) => {
    setConflict(undefined);
    setVersion(next);
  };
  /** @returns true if the change was made */
  const change = async (changed: Record<string, unknown>, tag: string | null): Promise<boolean> => {
    const before = conflict?.theirs.document ?? version?.document ?? {};
    const done = await changeDocument(target, { changed, tag, before, hasHistory });
    if ('conflict' in done) setConflict(done.conflict);
    else setProblem('problem' in done ? done.problem : undefined);
    if (!('made' in done)) return false;
    if (done.made === undefined) await read();
    else take(done.made);
    return true;
  };
  return { version, problem, conflict, read, change, take, forget: () => setProblem(undefined) };
}

type DisableButtonProps = {
  readonly document: Readonly<Record<string, unknown>>;
  readonly onChange: (changed: Record<string, unknown>) => Promise<void>;
};

/** An account that is disabled keeps its data and loses its sessions. */
function DisableButton({ document, onChange }: DisableButtonProps): JSX.Element | null {
  const { disabled } = document;
  if (typeof disabled !== 'boolean') return null;
  return (
    <button type="button" onClick={() => onChange({ disabled: !disabled })}>
      {disabled ? 'Enable' : 'Disable'}
    </button>
  );
}

type DeletionProps = { readonly list: Listed; readonly target: string; readonly tag: string | null };

function Deletion({ list, target, tag }: DeletionProps): JSX.Element {
  const remove = async () => {
    const reply = await send('DELETE', target, tag === null ? {} : { headers: { 'If-Match': tag } });
    if (reply.status < 400) go(linkTo('list', { path: list.path }));
    return problemOf(reply);
  };
  const action = list.tag === 'keys' ? 'Revoke' : 'Delete';
  return <ConfirmButton action={action} question={`${action} it?`} onConfirm={remove} />;
}
