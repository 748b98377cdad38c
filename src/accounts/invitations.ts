/**
 * Invitations (§5.4.9): POST /auth/invite creates an account, or finds one without a password or a second factor, and mails a code, which POST
 * /auth/invitation/accept takes with a password or a passkey. Administrators invite, and accounts that administer others. Whether the one
 * who invites may give the rights of the account is judged again when the code is used: an invitation ends with the right to make it.
 * POST /auth/invite/link shows an administrator the code in place of a mail; who uses it has not proven the address.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../kernel/action.ts';
import { representationOf } from '../kernel/documentation.ts';
import { storedCaller } from '../kernel/operations/stored-request.ts';
import type { Ask, Operation, Resource, Result } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import { permission } from '../model/access.ts';
import { type MemberStanding, memberStanding } from '../resources/collection/member.ts';
import { type Accompaniment, openStanding, type Served } from '../resources/collection/served-collection.ts';
import { overtaken } from '../store/lines.ts';
import { type Change, Overtaken } from '../store/store.ts';
import {
  codesOfOwner,
  type FoundCode,
  findCode,
  mailsPerHourMax,
  removeCodes,
  type ShownInvitation,
} from './account-mail.ts';
import { type AccountParts, type Attempted, commitRetried } from './account-parts.ts';
import {
  accountsTag,
  checkEmail,
  codeSchema,
  cookieSchema,
  emailSchema,
  enteredOutput,
  exampleCode,
  exampleEmail,
  examplePassword,
  newPasswordFault,
  newPasswordSchema,
  oneCredential,
  refusedField,
} from './account-schemas.ts';
import {
  passwordChange,
  passwordsTable,
  readPassword,
  readUser,
  unchanged,
  usersTable,
} from './account-tables.ts';
import { factOfAsk, fromOf, originOf } from './audit.ts';
import type { EarlierCaller, PrincipalNow } from './owner-principal.ts';
import { readFactor } from './second-factor/factor-row.ts';
import {
  beginFirstPasskey,
  type FirstPasskey,
  firstPasskeySchema,
  takeFirstPasskey,
} from './second-factor/passkeys/first-passkey.ts';
import { passkeyRequestOutput } from './second-factor/passkeys/webauthn.ts';
import type { FoundUser } from './users/user-row.ts';
import { proveAddress } from './verify-email.ts';

/** Operations on accounts, whose units a change of `accompany` reaches. */
type Operations = (served: Served) => Readonly<Record<'create' | 'patch', Operation>>;

/** POST /auth/invite. */
export function inviteResource(parts: AccountParts, served: Served, operations: Operations): Resource {
  const { base, accounts, settings, mail } = parts;
  const { collection } = served;
  const { properties } = collection.schema;
  const inviting = invitingBy(parts, served, operations);
  return actionResource(
    {
      path: `${base}/auth/invite`,
      tag: accounts.isAdministered ? collection : { ...collection, audience: 'operator' },
      id: 'inviteUser',
      summary: 'Invite a person by mail',
      description:
        'For administrators, and for accounts that administer others. Creates the account as `POST /users` does, and mails a code by which its owner sets a password or a passkey. An account of the address that nobody has entered is invited again, which ends its earlier invitations; further members change it as a PATCH does. The code is void once the caller could no longer give the rights of the account. 503 if no mail server is configured.',
      input: {
        name: 'Invitation',
        schema: Type.Object({ ...Type.Partial(Type.Object(properties)).properties, email: emailSchema }),
        example: { email: exampleEmail },
      },
      output: { schema: representationOf(collection) },
      answers: 'created-or-changed',
      codes: [
        ...(['account_entered', 'content_too_large', 'rate_limited', 'unique_taken'] as const),
        ...(['field_unpatchable', 'reference_missing'] as const),
      ],
      permission: (principal) => permission(collection.access.create, 'create', principal),
      check: checkEmail,
      handler: (ask, content) => (mail.isConfigured ? inviting(ask, content) : smtpMissing),
    },
    settings,
  );
}

/** POST /auth/invite/link. Undefined where a login needs a verified address, which this invitation does not make one. */
export function inviteByLinkResource(
  parts: AccountParts,
  served: Served,
  operations: Operations,
): Resource | undefined {
  const { base, settings } = parts;
  const { collection } = served;
  if (settings.verifiedEmailRequired) return undefined;
  const { properties } = collection.schema;
  const shown = new WeakMap<object, ShownInvitation>();
  const inviting = invitingBy(parts, served, operations, shown);
  return actionResource(
    {
      path: `${base}/auth/invite/link`,
      tag: { ...collection, audience: 'operator' },
      id: 'inviteUserByLink',
      summary: 'Invite a person by a link that you pass on',
      description:
        'For administrators, where no mail can be sent. As `POST /auth/invite`, but sends no mail: the response has the code, and the link if `COMITY_MAIL_INVITATION_URL` is set. Only this response shows it. Whoever has it sets the first password of the account, so it verifies no address.',
      input: {
        name: 'LinkInvitation',
        schema: Type.Object({ ...Type.Partial(Type.Object(properties)).properties, email: emailSchema }),
        example: { email: exampleEmail },
      },
      output: {
        schema: {
          allOf: [
            representationOf(collection),
            {
              type: 'object',
              properties: { invitation: invitationSchema },
              required: ['invitation'],
            },
          ],
        },
      },
      answers: 'created-or-changed',
      codes: [
        ...(['account_entered', 'content_too_large', 'rate_limited', 'unique_taken'] as const),
        ...(['field_unpatchable', 'reference_missing'] as const),
      ],
      permission: (principal) => permission('administrator', 'create', principal),
      check: checkEmail,
      async handler(ask, content) {
        const done = await inviting(ask, content);
        const invitation = shown.get(ask.request);
        if (!('content' in done) || invitation === undefined) return done;
        return { ...done, content: { ...done.content, invitation } };
      },
    },
    settings,
  );
}

const invitationSchema = {
  description: 'The invitation. Only this response shows it.',
  type: 'object',
  properties: {
    code: { type: 'string' },
    url: { type: ['string', 'null'] },
    expiresAt: { type: 'string', format: 'date-time' },
  },
  required: ['code', 'url', 'expiresAt'],
};

/** Who invites looks after the program, or knows who does. */
const smtpMissing: Done = {
  refused: { code: 'unavailable', message: 'no mail server is configured: set COMITY_SMTP_URL' },
};

const lost: Done = { refused: { code: 'unavailable' } };
const hourS = 3600;
const tooMany: Done = {
  refused: {
    code: 'rate_limited',
    message: `an account gets at most ${mailsPerHourMax} invitations in an hour`,
  },
  allowance: {
    ...{ exceeded: true, policy: `"invitation";q=${mailsPerHourMax};w=${hourS}` },
    ...{ rate: `"invitation";r=0;t=${hourS}`, remaining: '0', retryAfterSeconds: hourS },
  },
};

/** Invitations that are shown in place of a mail, by their requests. */
type Shown = WeakMap<object, ShownInvitation>;

/**
 * Invites in the unit that creates or changes the account; one that stays as it is gets a unit of its own.
 * @param shown gets invitations that are not mailed
 */
function invitingBy(
  parts: AccountParts,
  served: Served,
  operations: Operations,
  shown?: Shown,
): (ask: Ask, content: { readonly email: string }) => Promise<Done> {
  const { findUser, mail } = parts;
  const stages = operations({
    ...served,
    accompany: async (written) => {
      const accompaniment = (await served.accompany?.(written)) ?? { changes: [] };
      if ('refused' in accompaniment || written.next === null) return accompaniment;
      const invitation = await invite(parts, written.ask, { ...written.next, id: written.id }, shown);
      if ('refused' in invitation) return invitation;
      // A hook may have changed the address, which ends the codes of the one before.
      const removed = new Set(accompaniment.changes.map(nameOf));
      const others = invitation.changes.filter((change) => !removed.has(nameOf(change)));
      return { changes: [...accompaniment.changes, ...others] };
    },
  });

  const [create, patch] = [stagesOf(stages.create), stagesOf(stages.patch)];
  /** The account of the address, if the caller may know it: otherwise it is an address that is taken. */
  async function standingOf(ask: Ask, email: string): Promise<MemberStanding | undefined> {
    const found = await findUser.byEmail(normalizeEmail(email) ?? '');
    if (found === undefined) return undefined;
    const standing = await memberStanding(served, { ...ask, captures: [found.user.id] }, 'update');
    return standing.exists && standing.permitted ? standing : undefined;
  }

  async function attempt(ask: Ask, { email, ...further }: { readonly email: string }): Promise<Result> {
    const standing = await standingOf(ask, email);
    if (standing === undefined) {
      const proposed = await create.propose(ask, openStanding, { email, ...further });
      if (proposed.problem !== null) return { refused: proposed.problem };
      const result = await create.act(ask, openStanding, proposed);
      if (!('refused' in result) || result.refused.errors?.[0]?.pointer !== '/email') return result;
      // Another request may have made the account meanwhile.
      const since = await standingOf(ask, email);
      return since === undefined ? result : new Overtaken({ table: usersTable, id: since.id });
    }
    const { id, row } = standing;
    if (row === undefined) throw new Error('an account requires its row');
    const own = { ...ask, captures: [id] };
    const proposed = await patch.propose(own, standing, { format: 'merge-patch', value: further });
    if (proposed.problem !== null) return { refused: proposed.problem };
    if ((proposed as { readonly unchanged?: boolean }).unchanged === true) {
      const invitation = await invite(parts, ask, { ...row, id }, shown);
      if ('refused' in invitation) return invitation;
      const unit = { changes: [unchanged(row), ...invitation.changes], events: [] };
      const commit = await served.store.commit(unit);
      if (commit.outcome === 'superseded') return overtaken(unit, commit);
    }
    return patch.act(own, standing, proposed);
  }

  return async (ask, content) => {
    const standing = await standingOf(ask, content.email);
    if (standing !== undefined && !(await mail.mayHave('invitation', standing.id))) return tooMany;
    const result = await served.store.lines.change<Exclude<Result, Overtaken>>(undefined, () =>
      attempt(ask, content),
    );
    if (!('made' in result)) return result;
    const { doc, location } = result.made;
    const account = JSON.parse(doc ?? 'null');
    if (!result.made.created) return { content: account };
    mail.count('invitation', account.id);
    return { content: account, created: location ?? '' };
  };
}

function stagesOf({ propose, act }: Operation) {
  if (propose === undefined || act === undefined) throw new Error('a write requires its stages');
  return { propose, act };
}

function nameOf({ table, id }: Change): string {
  return `${table} ${id}`;
}

/** The changes that mail an invitation to an account, and end the earlier ones. */
async function invite(
  parts: AccountParts,
  ask: Ask,
  account: { readonly id: string; readonly doc: string; readonly owner: string | null },
  shown?: Shown,
): Promise<Accompaniment> {
  const { store, administering, mail, audit, addressOf } = parts;
  const { id, email, disabled } = readUser(account.doc);
  // The account may have rights, also meanwhile, that the caller may not give.
  const beyond = administering.refusalOfReach(ask.principal, account);
  if (beyond !== undefined) return { refused: beyond };
  if (disabled) return { refused: { code: 'account_entered', message: 'the account is disabled' } };
  if (await isEntered(parts, id)) return { refused: { code: 'account_entered' } };
  const by = storedCaller(ask);
  if (by === null) throw new Error('an invitation requires a caller');
  const changes = [
    ...(await removeCodes(store, id, ['invitation'], null)),
    ...(shown === undefined
      ? mail.mint({ id, email }, 'invitation', { by })
      : [showInvitation(parts, shown, ask, { id, email }, by)]),
    audit.entry(factOfAsk(ask, addressOf, { type: 'account.invited', subject: id })),
  ];
  return { changes };
}

/** The change of a code that is shown: a unit that is tried again draws another one. */
function showInvitation(
  { mail }: AccountParts,
  shown: Shown,
  ask: Ask,
  to: { readonly id: string; readonly email: string },
  by: EarlierCaller,
): Change {
  const { change, ...invitation } = mail.mintShown(to, by);
  shown.set(ask.request, invitation);
  return change;
}

async function isEntered({ store }: AccountParts, id: string): Promise<boolean> {
  const password = await readPassword(store, id);
  return (password?.hash ?? null) !== null || (await readFactor(store, id)) !== undefined;
}

/** POST /auth/invitation/passkey-options and /auth/invitation/accept. */
export function invitationResources(parts: AccountParts, principalNow: PrincipalNow): readonly Resource[] {
  const { base, settings, clock, isCrossSite } = parts;
  const shared = { tag: accountsTag, ignoresCredentials: true } as const;
  const options = actionResource(
    {
      ...shared,
      path: `${base}/auth/invitation/passkey-options`,
      id: 'beginInvitationPasskey',
      summary: 'Get the options for a passkey that accepts an invitation',
      input: {
        name: 'InvitationCode',
        schema: Type.Object({ code: codeSchema }),
        example: { code: exampleCode },
      },
      output: passkeyRequestOutput,
      codes: ['code_invalid'],
      handler: async (_ask, { code }) => {
        const invited = await readInvitation(parts, principalNow, code, clock());
        if (invited === undefined) return codeInvalid;
        return { content: { ...(await beginFirstPasskey(parts, invited.owner.user)) } };
      },
    },
    settings,
  );
  const accept = actionResource(
    {
      ...shared,
      path: `${base}/auth/invitation/accept`,
      id: 'acceptInvitation',
      summary: 'Accept an invitation with a password or a passkey',
      description:
        'Opens a session and verifies the address. With a passkey, the response has recovery codes.',
      input: {
        name: 'InvitationAcceptance',
        schema: Type.Object({
          code: codeSchema,
          password: Type.Optional(newPasswordSchema(settings)),
          passkey: Type.Optional(firstPasskeySchema),
          cookie: cookieSchema,
        }),
        example: { code: exampleCode, password: examplePassword },
      },
      output: enteredOutput,
      fields: ['Set-Cookie'],
      codes: ['code_invalid', 'challenge_invalid', 'cross_site_request', 'passkey_invalid'],
      check: oneCredential,
      handler: async (ask, { code, password, passkey, cookie = false }) => {
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        return acceptInvitation(parts, principalNow, ask, { code, password, passkey, cookie });
      },
    },
    settings,
  );
  return [options, accept];
}

const codeInvalid: Done = { refused: { code: 'code_invalid' } };

type Invited = { readonly found: FoundCode; readonly owner: FoundUser; readonly restsOn: readonly Change[] };

/** Returns undefined for a code that is no longer good, also because who invited may no longer give the rights of the account. */
async function readInvitation(
  parts: AccountParts,
  principalNow: PrincipalNow,
  code: string,
  at: number,
): Promise<Invited | undefined> {
  const { store, findUser, administering } = parts;
  const found = await findCode(store, code, ['invitation'], at);
  if (found?.by === undefined || found.userId === null) return undefined;
  // Before its rights, so that the unit fails if these change.
  const inviter = await findUser.byId(found.by.id);
  const now = await principalNow(found.by);
  const owner = await findUser.byId(found.userId);
  if (!('principal' in now) || owner === undefined || owner.user.disabled) return undefined;
  if (owner.user.email !== found.email || (await isEntered(parts, owner.user.id))) return undefined;
  if (administering.refusalOfReach(now.principal, owner.row) !== undefined) return undefined;
  return { found, owner, restsOn: inviter === undefined ? [] : [unchanged(inviter.row)] };
}

type Acceptance = {
  readonly code: string;
  readonly password: string | undefined;
  readonly passkey: Parameters<typeof takeFirstPasskey>[1] | undefined;
  readonly cookie: boolean;
};

/** @throws StoreUnavailable */
async function acceptInvitation(
  parts: AccountParts,
  principalNow: PrincipalNow,
  ask: Ask,
  { code, password, passkey: typed, cookie }: Acceptance,
): Promise<Done> {
  const { store, hasher, clock, settings } = parts;
  const fault = password === undefined ? undefined : newPasswordFault(password, settings);
  if (fault !== undefined) return refusedField('/password', fault);
  // Hashes only for a valid code.
  const first = await readInvitation(parts, principalNow, code, clock());
  if (first === undefined) return codeInvalid;
  const hash = password === undefined ? null : await hasher.hash(password);
  const passkey = typed === undefined ? undefined : await takeFirstPasskey(parts, typed);
  if (passkey !== undefined && 'problem' in passkey) return { refused: { code: passkey.problem } };
  const { id } = first.owner.user;
  if (passkey !== undefined && passkey.user !== id) return { refused: { code: 'challenge_invalid' } };
  let clear = async (): Promise<void> => undefined;
  const attempt = async (): Promise<Attempted<Done>> => {
    const at = clock();
    const invited = await readInvitation(parts, principalNow, code, at);
    if (invited === undefined) return { refused: codeInvalid };
    const accepted = await acceptOnce(parts, ask, invited, { hash, passkey, cookie, at });
    ({ clear } = accepted);
    return accepted;
  };
  const done = await commitRetried<Done>(store, { table: passwordsTable, id }, attempt, () => lost);
  if ('content' in done) await clear();
  return done;
}

async function acceptOnce(
  parts: AccountParts,
  ask: Ask,
  { found, owner, restsOn }: Invited,
  given: {
    readonly hash: string | null;
    readonly passkey: FirstPasskey | undefined;
    readonly cookie: boolean;
    readonly at: number;
  },
) {
  const { store, sessions, audit, addressOf } = parts;
  const { hash, passkey, cookie, at } = given;
  const { user } = owner;
  const from = fromOf(ask.request, addressOf);
  const proven = found.isShown
    ? { changes: [unchanged(owner.row)], isClaimed: false, clear: async () => undefined }
    : await proveAddress(parts, owner, { from, at, reason: 'account.invited' });
  // A provider may have opened one; its holder has not proven the address.
  const ends = proven.isClaimed ? await sessions.endOfUser(user.id, null) : [];
  const isEnded = new Set(ends.map(({ id }) => id));
  const opened = await sessions.open(user, { cookie, at });
  const password = await readPassword(store, user.id);
  const fact = { actor: user.id, subject: user.id, ...originOf(from) };
  const changes: readonly Change[] = [
    found.removal,
    ...(await removeCodes(store, user.id, codesOfOwner, found.removal.id)),
    ...restsOn,
    ...proven.changes,
    ...ends,
    passwordChange(user.id, password, hash, Math.max(at, password?.row.updatedAt ?? 0)),
    ...(passkey?.changes(at, from) ?? []),
    ...opened.changes.filter(({ id }) => !isEnded.has(id)),
    audit.entry({
      ...{ type: 'login.succeeded', ...fact },
      detail: { session: opened.session, method: 'invitation' },
    }),
  ];
  const codes = passkey === undefined ? {} : { recoveryCodes: passkey.recoveryCodes };
  const result: Done = { content: { ...opened.content, ...codes }, fields: opened.fields };
  return { changes, result, clear: proven.clear };
}
