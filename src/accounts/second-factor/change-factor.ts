/**
 * Changes the second factor of an account for its owner (§5.8). A session alone is not enough, because it may be stolen: an account that
 * has a factor proves it by a code, any other by its password, if it has one. One unit uses the code, makes the change, rewrites the row
 * of the password (which ends verdicts that rest on the earlier state), and writes the audit entries and the mail.
 */
import { Type } from 'typebox';
import type { Allowance } from '../../http/message.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import { actionResource, type Done } from '../../kernel/action.ts';
import { named, pathParameter } from '../../kernel/documentation.ts';
import type { CallerAddress } from '../../kernel/rate-limit/caller-address.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import type { Change } from '../../store/store.ts';
import { type AccountParts, type Attempted, commitRetried } from '../account-parts.ts';
import {
  accountsTag,
  administratorsOnly,
  anyCredential,
  examplePassword,
  passwordSchema,
  refusedBy,
  schemesOfPeople,
} from '../account-schemas.ts';
import {
  digestOf,
  passwordChange,
  passwordsTable,
  readPassword,
  type StoredPassword,
  type User,
  usersCollection,
  usersTable,
} from '../account-tables.ts';
import type { AttemptLimit } from '../attempt-limit.ts';
import { type AuditType, type From, factOfAsk, fromOf, originOf } from '../audit.ts';
import type { FactorNews } from '../mail-texts.ts';
import { useCode } from './factor-codes.ts';
import { factorChange, noFactor, readFactor, type SecondFactor, type StoredFactor } from './factor-row.ts';
import { type Assertion, assertionSchema, usePasskey } from './passkeys/webauthn.ts';

/** The person whose factor changes, and the session that asks. */
export type FactorOwner = From & {
  readonly userId: string;
  readonly session: string | null;
};

export type Proof = {
  readonly password?: string;
  readonly code?: string;
  readonly passkey?: { readonly challenge: string; readonly response: Assertion };
};

export type Refused = {
  readonly ok: false;
  readonly problem: ProblemCode;
  readonly allowance?: Allowance;
};

/** The account as the change finds it; `factor` has the code of the proof used up. */
export type FactorState = {
  readonly user: User;
  readonly factor: SecondFactor;
  readonly hadFactor: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

type FactorPlan<T> = {
  readonly next: SecondFactor;
  readonly facts: readonly {
    readonly type: AuditType;
    readonly method?: string;
    readonly passkey?: string;
  }[];
  readonly news?: FactorNews;
  readonly changes?: readonly Change[];
  readonly result: T;
};

export type Planned<T> = FactorPlan<T> | Refused;

export type ChangedFactor<T> = { readonly ok: true; readonly result: T } | Refused;

/** @param proof null: an earlier request proved it @throws StoreUnavailable */
export async function changeFactor<T>(
  parts: AccountParts,
  owner: FactorOwner,
  proof: Proof | null,
  plan: (state: FactorState) => Planned<T> | Promise<Planned<T>>,
): Promise<ChangedFactor<T>> {
  const { store, audit } = parts;
  const { userId } = owner;
  if (proof === null) return commitPlan(parts, owner, { kind: 'earlier' }, plan);
  const stored = await readFactor(store, userId);
  if (stored === undefined) return byPassword(parts, owner, proof, plan);
  const { code, passkey } = proof;
  if (passkey !== undefined) return commitPlan(parts, owner, { kind: 'passkey', ...passkey }, plan);
  if (code === undefined) return { ok: false, problem: 'second_factor_required' };
  return limitedAttempt<ChangedFactor<T> | Wrong>(
    parts.limit,
    attemptOfFactor(owner),
    () => commitPlan(parts, owner, { kind: 'code', code }, plan),
    { wrong: wrongFactor, onLimited: () => audit.note(limitedFact(userId, owner)) },
  );
}

export function limitedFact(subject: string, from: From) {
  const detail = { use: 'second-factor' };
  return { type: 'login.limited', actor: null, subject, ...originOf(from), detail } as const;
}

/** How the request was proven; `hash`: that of the compared password, null if the account has none. */
type Proven =
  | { readonly kind: 'earlier' }
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'passkey'; readonly challenge: string; readonly response: Assertion }
  | { readonly kind: 'password'; readonly hash: string | null };

async function byPassword<T>(
  parts: AccountParts,
  owner: FactorOwner,
  proof: Proof,
  plan: (state: FactorState) => Planned<T> | Promise<Planned<T>>,
): Promise<ChangedFactor<T>> {
  const { store, findUser, checkPassword } = parts;
  const { userId } = owner;
  const stored = await readPassword(store, userId);
  const hash = stored?.hash ?? null;
  if (hash === null) return commitPlan(parts, owner, { kind: 'password', hash }, plan);
  const found = await findUser.byId(userId);
  if (found === undefined || proof.password === undefined) return wrongPassword;
  const checked = await checkPassword(found.user.email, proof.password, owner, 'change');
  if (checked.ok && checked.found.user.id === userId) {
    return commitPlan(parts, owner, { kind: 'password', hash: checked.password.hash }, plan);
  }
  if (checked.ok || checked.allowance === undefined) return wrongPassword;
  return { ok: false, problem: 'rate_limited', allowance: checked.allowance };
}

const wrongPassword: Refused = { ok: false, problem: 'invalid_credentials' };
const unavailable: Refused = { ok: false, problem: 'unavailable' };

function commitPlan<T>(
  parts: AccountParts,
  owner: FactorOwner,
  proven: Proven,
  plan: (state: FactorState) => Planned<T> | Promise<Planned<T>>,
): Promise<ChangedFactor<T> | Wrong> {
  const { store, findUser, clock } = parts;
  const { userId } = owner;
  const attempt = async (): Promise<Attempted<ChangedFactor<T> | Wrong>> => {
    const at = clock();
    const found = await findUser.byId(userId);
    const before = await readFactor(store, userId);
    const password = await readPassword(store, userId);
    if (found === undefined || found.user.disabled) return { refused: wrongPassword };
    const judged = await judgeProof(parts, owner, proven, { before, password, at });
    if ('ok' in judged) {
      if (judged === wrongFactor) noteWrongCode(parts, owner);
      return { refused: judged };
    }
    const state = { user: found.user, factor: judged.factor, hadFactor: before !== undefined, at };
    const planned = await plan(state);
    if ('ok' in planned) return { refused: planned };
    const usedUp = judged.changes ?? [];
    const changes = [...usedUp, ...changesOfPlan(parts, owner, state, { before, password, planned })];
    const result = { ok: true, result: planned.result } as const;
    return changes.length === 0 ? { refused: result } : { changes, result };
  };
  // Logins rewrite the same row, so they take turns with changes of the factor.
  return commitRetried(store, { table: passwordsTable, id: userId }, attempt, () => unavailable);
}

function noteWrongCode({ audit }: AccountParts, owner: FactorOwner): void {
  audit.note({
    ...{ type: 'login.failed', actor: null, subject: owner.userId },
    ...originOf(owner),
    detail: { use: 'second-factor' },
  });
}

type Found = {
  readonly before: StoredFactor | undefined;
  readonly password: StoredPassword | undefined;
  readonly at: number;
};

/** The factor after the use of the proof, and the changes that use it up. */
type Judged = { readonly factor: SecondFactor; readonly changes?: readonly Change[] } | Refused | Wrong;

/** A proof by password is void once there is a factor, or another password. */
async function judgeProof(
  parts: AccountParts,
  { userId }: FactorOwner,
  proven: Proven,
  { before, password, at }: Found,
): Promise<Judged> {
  switch (proven.kind) {
    case 'earlier':
      return { factor: before?.factor ?? noFactor };
    case 'password':
      if (before !== undefined) return { ok: false, problem: 'second_factor_required' };
      return (password?.hash ?? null) === proven.hash ? { factor: noFactor } : wrongPassword;
    case 'code': {
      const how = { at, windowSteps: parts.settings.totpWindowStepsMax };
      const used = before === undefined ? undefined : useCode(userId, before.factor, proven.code, how);
      return used === undefined ? wrongFactor : { factor: used.next };
    }
    case 'passkey':
      return judgePasskey(parts, userId, proven, before?.factor ?? noFactor, at);
  }
}

async function judgePasskey(
  { challenges, relyingParty }: AccountParts,
  userId: string,
  proven: Extract<Proven, { kind: 'passkey' }>,
  factor: SecondFactor,
  at: number,
): Promise<Judged> {
  const opened = challenges.open('passkeyProof', proven.challenge);
  if (opened === undefined || opened.user !== userId || (await challenges.isUsed(opened)))
    return { ok: false, problem: 'challenge_invalid' };
  const how = { challenge: opened.challenge, userVerified: false, at };
  const used = await usePasskey(relyingParty(), factor, proven.response, how);
  if (used === undefined) return { ok: false, problem: 'passkey_invalid' };
  return { factor: used.next, changes: [challenges.use(opened)] };
}

function changesOfPlan<T>(
  { audit, factorMail }: AccountParts,
  owner: FactorOwner,
  { user, at }: FactorState,
  { before, password, planned }: Omit<Found, 'at'> & { readonly planned: FactorPlan<T> },
): readonly Change[] {
  const { userId } = owner;
  const isSame = JSON.stringify(before?.factor ?? noFactor) === JSON.stringify(planned.next);
  const rewritten = isSame
    ? []
    : [
        ...factorChange(userId, before, planned.next, at),
        passwordChange(userId, password, password?.hash ?? null, Math.max(at, password?.row.updatedAt ?? 0)),
      ];
  return [
    ...rewritten,
    ...(planned.changes ?? []),
    ...planned.facts.map(({ type, ...detail }) =>
      audit.entry({
        ...{ type, actor: userId, subject: userId },
        ...originOf(owner),
        ...(Object.keys(detail).length === 0 ? {} : { detail }),
      }),
    ),
    ...(planned.news === undefined ? [] : factorMail(user, planned.news, at)),
  ];
}

/**
 * The limit on wrong codes (§5.8): the limit of logins, with a counter of its own for each account, so that someone who does not know
 * the password cannot use up the attempts of someone who does. The counter of the address is shared with logins.
 */
export type Wrong = {
  readonly ok: false;
  readonly problem: 'second_factor_invalid' | 'rate_limited';
  readonly allowance?: Allowance;
};

export const wrongFactor: Wrong = { ok: false, problem: 'second_factor_invalid' };

export function attemptOfFactor({ userId, address }: { readonly userId: string; readonly address: string }) {
  return { name: `second factor ${userId}`, address };
}

type Limited = { readonly ok: false; readonly problem: 'rate_limited'; readonly allowance: Allowance };

/**
 * Runs one attempt: counted before anything is compared, and given back unless its result is `wrong`.
 * @param how.onLimited called for the first refusal in the window @throws StoreUnavailable
 */
export async function limitedAttempt<T>(
  limit: AttemptLimit,
  who: { readonly name: string; readonly address: string },
  attempt: () => Promise<T>,
  how: { readonly wrong: T; readonly onLimited: () => void },
): Promise<T | Limited> {
  const begun = await limit.begin(digestOf(who.name), who.address);
  if (!begun.ok) {
    if (begun.first) how.onLimited();
    return { ok: false, problem: 'rate_limited', allowance: begun.allowance };
  }
  let result: T | undefined;
  try {
    result = await attempt();
    return result;
  } finally {
    if (result === how.wrong) begun.failed();
    else await begun.succeeded();
  }
}

/** Who may call these operations. */
export const people = {
  tag: accountsTag,
  permission: anyCredential,
  schemes: ['bearer', 'basic', 'cookieAuth'],
} as const;

export const factorCodeSchema = Type.String({
  description:
    'A code of the authenticator application, which works once, or a recovery code, which works once.',
});

/** Proof that the request comes from the owner of the account, in addition to the session. */
export const proofMembers = {
  password: Type.Optional(passwordSchema),
  code: Type.Optional(factorCodeSchema),
  passkey: Type.Optional(
    named(
      'PasskeyProof',
      Type.Object(
        { challenge: Type.String(), response: assertionSchema },
        { description: 'A passkey, with the challenge of `/auth/second-factor/passkey-options`.' },
      ),
    ),
  ),
};

export const proofExample = { password: examplePassword };

export const proofDescription =
  'Needs a `code` or a `passkey` if the account has a second factor, otherwise its `password`, if it has one.';

export const proofCodes = [
  ...(['forbidden', 'invalid_credentials', 'rate_limited', 'challenge_invalid'] as const),
  ...(['second_factor_required', 'second_factor_invalid', 'passkey_invalid'] as const),
] as const;

const recoveryCodesSchema = {
  type: 'array',
  items: { type: 'string' },
  description: 'Recovery codes, shown once. Each replaces the second factor once.',
};

const exampleRecoveryCodes = ['9w3k-7zqm-2c4d-x8vn', 'h5tr-0b6y-pj1s-e4ga'];

export const shownCodesOutput = {
  schema: named('RecoveryCodes', {
    description: 'Recovery codes of an account.',
    type: 'object',
    properties: { recoveryCodes: recoveryCodesSchema },
  }),
  example: { recoveryCodes: exampleRecoveryCodes },
};

/** The account of the caller; undefined for a key and for a token of an issuer, which are not a person at this service. */
export function ownerOfAsk({ known, request }: Ask, addressOf: CallerAddress): FactorOwner | undefined {
  if (known === undefined || !schemesOfPeople.has(known.scheme)) return undefined;
  return { userId: known.principal.id, session: known.session, ...fromOf(request, addressOf) };
}

export const peopleOnly: Done = {
  refused: {
    code: 'forbidden',
    message: 'this credential cannot read or change a second factor; log in to the account',
  },
};

/** The handler of an action that changes the factor of its caller, who must be the owner of an account. */
export function byOwner<I, T extends Readonly<Record<string, unknown>> | null>(
  parts: AccountParts,
  change: (parts: AccountParts, owner: FactorOwner, input: I, ask: Ask) => Promise<ChangedFactor<T>>,
): (ask: Ask, input: I) => Promise<Done> {
  return async (ask, input) => {
    const owner = ownerOfAsk(ask, parts.addressOf);
    if (owner === undefined) return peopleOnly;
    const changed = await change(parts, owner, input, ask);
    return changed.ok ? { content: changed.result } : refusedBy(changed);
  };
}

// POST {base}/users/{id}/reset-second-factor: an administrator removes the second factor of an account whose owner lost it (§5.8). The
// lost device may be in other hands, so all sessions of the account end. Its API keys stay.

export function resetFactorResource(parts: AccountParts): Resource {
  const { base, settings, findUser } = parts;
  return actionResource(
    {
      path: `${base}/${usersTable}/{id}/reset-second-factor`,
      parameters: [pathParameter('id', 'Id of the account.')],
      tag: { ...usersCollection, audience: 'operator' },
      name: 'SecondFactorReset',
      id: 'resetSecondFactor',
      summary: 'Remove the second factor of an account',
      description:
        'Administrators only. Removes the authenticator application, the passkeys and the recovery codes, and ends all sessions of the account. 204 also if there is no second factor.',
      codes: [],
      permission: administratorsOnly,
      standing: async ({ captures: [id = ''] }) => {
        const exists = (await findUser.byId(id)) !== undefined;
        return { exists, visible: true, permitted: true };
      },
      mayBeMissing: true,
      handler: (ask) => resetFactor(parts, ask),
    },
    settings,
  );
}

const resetUnavailable: Done = { refused: { code: 'unavailable' } };
const resetMissing: Done = { refused: { code: 'not_found' } };

function resetFactor(parts: AccountParts, ask: Ask): Promise<Done> {
  const { store, clock, findUser, sessions, audit, addressOf, factorMail } = parts;
  const id = ask.captures[0] ?? '';
  const attempt = async () => {
    const found = await findUser.byId(id);
    if (found === undefined) return { refused: resetMissing };
    const before = await readFactor(store, id);
    if (before === undefined) return { refused: { content: null } };
    const password = await readPassword(store, id);
    const at = Math.max(clock(), password?.row.updatedAt ?? 0);
    const changes = [
      ...factorChange(id, before, noFactor, at),
      passwordChange(id, password, password?.hash ?? null, at),
      ...(await sessions.endOfUser(id, null)),
      audit.entry(factOfAsk(ask, addressOf, { type: 'second_factor.reset', subject: id })),
      ...factorMail(found.user, 'reset', at),
    ];
    return { changes, result: { content: null } };
  };
  return commitRetried<Done>(store, { table: passwordsTable, id }, attempt, () => resetUnavailable);
}
