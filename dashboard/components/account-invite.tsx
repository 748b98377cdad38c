/**
 * Invitations (§5.4.9): one form for the address, the roles and the name of a person who gets an account, and the invitation of an account that
 * nobody has entered yet. Where the server sends no mail, an administrator may pass a link on instead.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { AccessReport } from '../api-types.ts';
import { base, hasPath, type Listed, pathOf, requestSchema, type Schema } from '../description.ts';
import { rightsIn } from '../rights.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { caller, isAdministrator } from '../session.ts';
import { withoutNulls } from './form-values.ts';
import { announce } from './notice.tsx';
import { ProblemNote } from './problem.tsx';
import { SchemaForm } from './schema-form.tsx';
import { SidePanel } from './side-panel.tsx';
import { CopyButton, Time } from './value.tsx';

/** @returns whether the caller may invite people to the accounts of this list */
export function mayInvite(list: Listed): boolean {
  return (
    list.path === pathOf('users') && hasPath(pathOf('auth/invite')) && rightsIn(list)?.may('create') === true
  );
}

type InvitationProps = { readonly list: Listed; readonly onDone: () => void };

export function Invitation({ list, onDone }: InvitationProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [members, setMembers] = useState<Record<string, unknown>>({});
  const [isOver, setOver] = useState(false);
  const schema = useInvitationSchema();
  const invite = async (typed: Record<string, unknown>) => {
    // Accounts of other tenants are beyond those who administer their own.
    const tenant = isAdministrator() ? {} : { tenant: caller.value?.tenant ?? null };
    const json = withoutNulls({ ...typed, ...tenant });
    setMembers(json);
    const reply = await send('POST', pathOf('auth/invite'), { json });
    setProblem(problemOf(reply));
    if (reply.status >= 400 || !isObject(reply.json)) return;
    announce('Invited', list, reply.json);
    onDone();
  };
  return (
    <SidePanel title="Invite a person" isDone={isOver} onClose={onDone}>
      <p class="hint">A mail leads to a page where the person sets a password or a passkey.</p>
      {isOver || schema === undefined ? null : (
        <SchemaForm {...{ schema, problem }} submit="Invite" onSubmit={invite} onCancel={onDone} />
      )}
      <InvitationLink problem={problem} members={members} onShown={() => setOver(true)} />
      {isOver ? (
        <button type="button" onClick={onDone}>
          Close
        </button>
      ) : null}
    </SidePanel>
  );
}

/** Members that people of an application are invited with; the rest is for the page of the account. */
const firstMembers = ['email', 'name', 'roles'];
const laterMembers: ReadonlySet<string> = new Set(['scopes', 'disabled', 'emailVerified']);

/** The members of the request, with the roles that the caller gives as choices. @returns undefined until they are known */
function useInvitationSchema(): Schema | undefined {
  const [roles, setRoles] = useState<readonly string[] | undefined>(undefined);
  useEffect(() => {
    const given = caller.value?.grants ?? [];
    // Rules of collections name further roles, which administrators give too.
    const asked = isAdministrator()
      ? send('GET', `${base.value}/meta/access?account=me&collection=users`)
      : undefined;
    void Promise.resolve(asked).then((reply) => {
      const named = isObject(reply?.json) ? (reply.json as unknown as AccessReport).roles : [];
      setRoles([...new Set([...given, ...named, ...(isAdministrator() ? ['administrator'] : [])])].sort());
    });
  }, []);
  if (roles === undefined) return undefined;
  const { properties = {}, required = [] } = requestSchema(pathOf('auth/invite')) ?? {};
  const names = [...new Set([...firstMembers, ...Object.keys(properties)])].filter(
    (name) =>
      properties[name] !== undefined &&
      !laterMembers.has(name) &&
      (name !== 'tenant' || isAdministrator()) &&
      (name !== 'roles' || roles.length > 0),
  );
  const choices: Schema = { title: 'Roles', type: 'array', items: { enum: roles } };
  return {
    required,
    properties: Object.fromEntries(
      names.map((name) => [name, name === 'roles' ? choices : (properties[name] ?? {})]),
    ),
  };
}

type Shown = { readonly code: string; readonly url: string | null; readonly expiresAt: string };

type LinkProps = {
  /** The refusal of the invitation by mail. */
  readonly problem: Problem | undefined;
  readonly members: Readonly<Record<string, unknown>>;
  readonly onShown?: () => void;
};

/** Offers administrators the link in place of the mail that the server cannot send, and shows it once. */
function InvitationLink({ problem, members, onShown }: LinkProps): JSX.Element | null {
  const [shown, setShown] = useState<Shown | undefined>(undefined);
  const [refused, setRefused] = useState<Problem | undefined>(undefined);
  if (problem?.status !== 503 || !isAdministrator() || !hasPath(pathOf('auth/invite/link'))) return null;
  const create = async () => {
    const reply = await send('POST', pathOf('auth/invite/link'), { json: members });
    setRefused(problemOf(reply));
    const { invitation } = isObject(reply.json) ? reply.json : {};
    if (!isObject(invitation)) return;
    setShown(invitation as unknown as Shown);
    onShown?.();
  };
  return (
    <div class="panel invitation-link" role="status">
      {shown === undefined ? (
        <>
          <p>You can pass the invitation on yourself. Who has it sets the first password of the account.</p>
          <button type="button" onClick={create}>
            Create a link to copy
          </button>
          <ProblemNote problem={refused} />
        </>
      ) : (
        <>
          <p>
            <strong>This is shown once. It is valid until </strong>
            <Time value={shown.expiresAt} isShort />.
          </p>
          <p class="secret">
            <code>{shown.url ?? shown.code}</code> <CopyButton text={shown.url ?? shown.code} />
          </p>
          {shown.url === null ? (
            <p class="hint">
              This is the code alone: <code>COMITY_MAIL_INVITATION_URL</code> names the page that takes it.
            </p>
          ) : null}
        </>
      )}
    </div>
  );
}

export function AccountInvite({ email }: { readonly email: string }): JSX.Element {
  const [isMailed, setMailed] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const invite = async () => {
    setMailed(false);
    const refused = problemOf(await send('POST', pathOf('auth/invite'), { json: { email } }));
    setProblem(refused);
    setMailed(refused === undefined);
  };
  return (
    <section aria-labelledby="invitation-title">
      <h2 id="invitation-title">Invitation</h2>
      <p class="quiet">
        A mail to {email} leads to a page where its owner sets a password or a passkey. Earlier invitations
        end.
      </p>
      <ProblemNote problem={problem} />
      <InvitationLink problem={problem} members={{ email }} />
      <p>
        <button type="button" onClick={invite}>
          Invite by mail
        </button>{' '}
        <span role="status">{isMailed ? 'The mail is on its way.' : ''}</span>
      </p>
    </section>
  );
}
