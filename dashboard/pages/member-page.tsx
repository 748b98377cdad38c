/**
 * One resource: its members, the form that changes it, and the requests on it. Changes send `If-Match`; if somebody else was faster (412),
 * the two versions are shown side by side and the person chooses.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Attempts, areAttempts } from '../components/attempts.tsx';
import { ConfirmButton } from '../components/confirm-button.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { differencesOf, SchemaForm, withoutNulls } from '../components/schema-form.tsx';
import { CopyButton, Json, titleOf, Value } from '../components/value.tsx';
import { type Listed, listOf, memberPath, type Step } from '../description.ts';
import { go, linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, type Reply, send } from '../send.ts';

type Version = { readonly document: Record<string, unknown>; readonly tag: string | null };

type Conflict = { readonly mine: Record<string, unknown>; readonly theirs: Version };

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
  const { version, problem, conflict, read, change, take, forget } = useVersion(target);
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
          <a href={linkTo('list', { path: list.path })}>{list.name}</a> / <code>{id}</code>{' '}
          <CopyButton text={id} label="Copy id" />
        </p>
        <h1 id="member-title">{version === undefined ? id : titleOf(version.document)}</h1>
        <div class="buttons">
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
          conflict={conflict}
          onMine={() => save(conflict.mine, conflict.theirs.tag)}
          onTheirs={() => {
            take(conflict.theirs);
            setEditing(false);
          }}
        />
      )}
      {version === undefined || conflict !== undefined ? null : isForm ? (
        <SchemaForm
          key={version.tag}
          schema={member.patch ?? {}}
          value={version.document}
          submit="Save"
          problem={problem}
          onSubmit={(changed) => save(changed, version.tag)}
          onCancel={() => {
            setEditing(false);
            forget();
          }}
        />
      ) : (
        <Members version={version} />
      )}
      <Beside member={member} target={target} onDone={read} />
    </section>
  );
}

type BesideProps = {
  readonly member: MemberProps['member'];
  readonly target: string;
  readonly onDone: () => Promise<void>;
};

/** The requests on a member and the lists below it. */
function Beside({ member, target, onDone }: BesideProps): JSX.Element {
  return (
    <>
      {member.steps.map((step) => (
        <StepForm key={step.path} step={step} target={target} onDone={onDone} />
      ))}
      {member.lists.map((each) => (
        <Further
          key={each}
          path={each.replace(member.path, target)}
          name={each.slice(member.path.length + 1)}
        />
      ))}
    </>
  );
}

/** The version that is shown, and its change by a merge patch with If-Match. */
function useVersion(target: string) {
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
    const reply = await send('PATCH', target, {
      json: changed,
      headers: {
        'Content-Type': 'application/merge-patch+json',
        ...(tag === null ? {} : { 'If-Match': tag }),
      },
    });
    const theirs = reply.status === 412 ? versionOf(await send('GET', target)) : undefined;
    if (theirs !== undefined) setConflict({ mine: changed, theirs });
    else setProblem(problemOf(reply));
    if (reply.status >= 400) return false;
    const made = versionOf(reply);
    if (made === undefined) await read();
    else take(made);
    return true;
  };
  return { version, problem, conflict, read, change, take, forget: () => setProblem(undefined) };
}

function versionOf(reply: Reply): Version | undefined {
  return reply.status === 200 && isObject(reply.json)
    ? { document: reply.json, tag: reply.headers.get('ETag') }
    : undefined;
}

function Members({ version }: { readonly version: Version }): JSX.Element {
  return (
    <>
      <dl class="members">
        {Object.entries(version.document).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {isObject(value) || Array.isArray(value) ? (
                <pre>{JSON.stringify(value, undefined, 2)}</pre>
              ) : (
                <Value value={value} />
              )}
            </dd>
          </div>
        ))}
      </dl>
      <details>
        <summary>JSON{version.tag === null ? '' : `, entity tag ${version.tag}`}</summary>
        <Json value={version.document} label="The representation as JSON" />
      </details>
    </>
  );
}

type ConflictProps = {
  readonly conflict: Conflict;
  readonly onMine: () => void;
  readonly onTheirs: () => void;
};

function ConflictView({ conflict, onMine, onTheirs }: ConflictProps): JSX.Element {
  const { mine, theirs } = conflict;
  const merged: Record<string, unknown> = { ...theirs.document, ...mine };
  const names = differencesOf(withoutNulls(merged), theirs.document);
  return (
    <div class="panel conflict" role="alert">
      <h2>Somebody changed this while you edited it</h2>
      <p>Your change was not applied (412). Members that differ:</p>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Member</th>
              <th>Your version</th>
              <th>The version now</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td>{name}</td>
                <td>
                  <Value value={merged[name]} />
                </td>
                <td>
                  <Value value={theirs.document[name]} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <button type="button" class="primary" onClick={onMine}>
          Apply my change to the version now
        </button>
        <button type="button" onClick={onTheirs}>
          Keep the version now
        </button>
      </div>
    </div>
  );
}

function Deletion({
  list,
  target,
  tag,
}: {
  readonly list: Listed;
  readonly target: string;
  readonly tag: string | null;
}): JSX.Element {
  const remove = async () => {
    const reply = await send('DELETE', target, tag === null ? {} : { headers: { 'If-Match': tag } });
    if (reply.status < 400) go(linkTo('list', { path: list.path }));
    return problemOf(reply);
  };
  return <ConfirmButton action="Delete" question="Delete it?" onConfirm={remove} />;
}

/** A request on the resource beside its methods, such as the rotation of a secret; the response may be shown only once. */
function StepForm({
  step,
  target,
  onDone,
}: {
  readonly step: Step;
  readonly target: string;
  readonly onDone: () => Promise<void>;
}): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const run = async (members: Record<string, unknown>) => {
    const sent = withoutNulls(members);
    const hasContent = step.input !== undefined && Object.keys(sent).length > 0;
    const given = await send('POST', `${target}/${step.name}`, hasContent ? { json: sent } : {});
    setProblem(problemOf(given));
    setReply(given.status < 400 ? given : undefined);
    if (given.status < 400) await onDone();
  };
  return (
    <details class="step">
      <summary>{step.summary}</summary>
      {step.description === undefined ? null : <p class="hint">{step.description}</p>}
      <SchemaForm schema={step.input ?? {}} submit={step.summary} problem={problem} onSubmit={run} />
      {reply === undefined ? null : (
        <div role="status">
          <p>{`${reply.status} ${reply.statusText}`}</p>
          {reply.text === '' ? null : (
            <Json value={reply.json ?? reply.text} label={`The response to ${step.name}`} />
          )}
        </div>
      )}
    </details>
  );
}

/** A list below a member, such as the attempts of a delivery, read when it is opened. */
function Further({ path, name }: { readonly path: string; readonly name: string }): JSX.Element {
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const open = async (event: Event) => {
    if ((event.currentTarget as HTMLDetailsElement).open && reply === undefined)
      setReply(await send('GET', path));
  };
  const items = isObject(reply?.json) && Array.isArray(reply.json.items) ? reply.json.items : undefined;
  return (
    <details onToggle={open}>
      <summary>{name}</summary>
      {reply === undefined ? <p>Loading…</p> : <ProblemNote problem={problemOf(reply)} />}
      {items !== undefined && areAttempts(items) ? <Attempts items={items} /> : null}
      {reply === undefined || reply.status >= 400 || (items !== undefined && areAttempts(items)) ? null : (
        <Json value={items ?? reply.json ?? reply.text} label={name} />
      )}
    </details>
  );
}
