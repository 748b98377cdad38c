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
import { ConfirmButton } from '../components/confirm-button.tsx';
import { ConflictView } from '../components/conflict.tsx';
import { History } from '../components/history.tsx';
import { ListBelow } from '../components/list-below.tsx';
import { Members } from '../components/members.tsx';
import { announceChange, announceDeletion, undone } from '../components/notice.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { Related } from '../components/related.tsx';
import { SchemaForm } from '../components/schema-form.tsx';
import { Sessions } from '../components/sessions.tsx';
import { SidePanel } from '../components/side-panel.tsx';
import { CopyButton, Json } from '../components/value.tsx';
import { hasPath, type Listed, listOf, memberPath, pathOf } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { titleOf } from '../reference-titles.ts';
import { type Rights, useRights } from '../rights.ts';
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
  const { version, problem, conflict, read, change, take, forget } = useVersion(list, target);
  const rights = useRights(list, id, version?.tag);
  const mayEdit = member.patch !== undefined && rights?.may('update') === true;
  const mayDelete = member.canDelete && rights?.may('delete') === true;
  const [isEditing, setEditing] = useState(false);
  const save = async (changed: Record<string, unknown>, tag: string | null) => {
    if (Object.keys(changed).length > 0 && !(await change(changed, tag))) return;
    setEditing(false);
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
          {version === undefined || isEditing || !mayEdit ? null : (
            <DisableButton document={version.document} onChange={(changed) => save(changed, version.tag)} />
          )}
          {!mayEdit || version === undefined || isEditing ? null : (
            <button type="button" class="primary" onClick={() => setEditing(true)}>
              Edit
            </button>
          )}
          <button type="button" onClick={read}>
            Reload
          </button>
          {mayDelete ? <Deletion {...{ list, target, version }} /> : null}
        </div>
      </header>
      {mayEdit || mayDelete || !isChangeable(member) ? null : <ReadOnlyNote rights={rights} />}
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
      {version === undefined || rights === undefined || conflict !== undefined || !isForm ? null : (
        <Editing
          {...{ list, rights, version, problem }}
          onSubmit={(changed) => save(changed, version.tag)}
          onCancel={() => {
            setEditing(false);
            forget();
          }}
        />
      )}
      {version === undefined || conflict !== undefined ? null : (
        <Shown {...{ list, member, rights, id, version }} onDone={read} />
      )}
    </section>
  );
}

type EditingProps = {
  readonly list: Listed;
  readonly rights: Rights;
  readonly version: Version;
  readonly problem: Problem | undefined;
  readonly onSubmit: (changed: Record<string, unknown>) => Promise<void>;
  readonly onCancel: () => void;
};

function Editing({ list, rights, version, problem, onSubmit, onCancel }: EditingProps): JSX.Element {
  const patch = list.member?.patch ?? {};
  return (
    <SidePanel title={`Edit ${titleOf(list, version.document)}`} onClose={onCancel}>
      <SchemaForm
        key={version.tag}
        {...{ list, problem, onSubmit, onCancel }}
        schema={patch}
        value={version.document}
        closed={rights.closed(Object.keys(patch.properties ?? {}))}
        submit="Save"
      />
    </SidePanel>
  );
}

function ReadOnlyNote({ rights }: { readonly rights: Rights | undefined }): JSX.Element | null {
  if (rights === undefined) return null;
  const text = rights.lacksScope
    ? 'You may only read this: your credential lacks the scope “write”.'
    : 'You may read this, and neither change nor delete it.';
  return <p class="quiet">{text}</p>;
}

/** Requests can change or delete documents of the list at all. */
function isChangeable({ patch, canDelete }: MemberProps['member']): boolean {
  return patch !== undefined || canDelete;
}

type ShownProps = MemberProps & {
  readonly version: Version;
  readonly rights: Rights | undefined;
  readonly onDone: () => Promise<void>;
};

function Shown({ list, member, rights, id, version, onDone }: ShownProps): JSX.Element {
  const target = memberPath(list, id);
  return (
    <>
      <Actions
        steps={member.steps.filter((step) => rights?.mayCall(step) === true)}
        member={{ path: member.path, target, list, document: version.document }}
        onDone={onDone}
      />
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
function useVersion(list: Listed, target: string) {
  const [version, setVersion] = useState<Version | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [conflict, setConflict] = useState<Conflict | undefined>(undefined);
  const read = async () => {
    const reply = await send('GET', target);
    setProblem(problemOf(reply));
    setVersion(versionOf(reply));
  };
  useEffect(() => void read(), [target, undone.value]);
  const take = (next: Version) => {
    setConflict(undefined);
    setVersion(next);
  };
  /** @returns true if the change was made */
  const change = async (changed: Record<string, unknown>, tag: string | null): Promise<boolean> => {
    const before = conflict?.theirs.document ?? version?.document ?? {};
    const hasHistory = list.member?.hasHistory === true;
    const done = await changeDocument(target, { changed, tag, before, hasHistory });
    if ('conflict' in done) setConflict(done.conflict);
    else setProblem('problem' in done ? done.problem : undefined);
    if (!('made' in done)) return false;
    announceChange({ list, changed, before, made: done.made });
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

type DeletionProps = {
  readonly list: Listed;
  readonly target: string;
  readonly version: Version | undefined;
};

function Deletion({ list, target, version }: DeletionProps): JSX.Element {
  const [action, done] = list.tag === 'keys' ? ['Revoke', 'Revoked'] : ['Delete', 'Deleted'];
  const tag = version?.tag ?? null;
  const remove = async () => {
    const reply = await send('DELETE', target, tag === null ? {} : { headers: { 'If-Match': tag } });
    if (reply.status < 400) {
      announceDeletion(list, version === undefined ? [] : [version.document], done);
      go(linkTo('list', { path: list.path }));
    }
    return problemOf(reply);
  };
  return <ConfirmButton action={action} question={`${action} it?`} onConfirm={remove} />;
}
