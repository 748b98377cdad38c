/**
 * `{base}/auth/second-factor`: the owner of an account reads, adds and removes its second factor, an authenticator application, and replaces
 * its recovery codes (§5.8). A new secret is not stored until a code made with it confirms that the application has it: until then it is
 * sealed in the token of the enrolment.
 */
import { Type } from 'typebox';
import { actionResource } from '../../kernel/action.ts';
import { named, pathParameter } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import type { AccountParts } from '../account-parts.ts';
import { administratorsOnly, exampleChallenge, exampleFactorCode } from '../account-schemas.ts';
import { type User, usersCollection, usersTable } from '../account-tables.ts';
import {
  byOwner,
  type ChangedFactor,
  changeFactor,
  type FactorOwner,
  type FactorState,
  ownerOfAsk,
  type Planned,
  type Proof,
  people,
  peopleOnly,
  proofCodes,
  proofDescription,
  proofExample,
  proofMembers,
  type Refused,
  shownCodesOutput,
} from './change-factor.ts';
import { drawRecoveryCodes, drawTotpSecret, looksLikeTotp, stepOfCode, totpUri } from './factor-codes.ts';
import { isFactor, needsFactor, noFactor, readFactor, type SecondFactor } from './factor-row.ts';

export function factorResources(parts: AccountParts): readonly Resource[] {
  return [
    statusResource(parts),
    statusOfAccountResource(parts),
    beginResource(parts),
    confirmResource(parts),
    removalResource(parts),
    recoveryCodesResource(parts),
  ];
}

const status = {
  schema: named('SecondFactor', {
    description: 'The second factor of an account.',
    type: 'object',
    properties: {
      required: { type: 'boolean', description: 'Whether the account needs a second factor.' },
      enrolled: { type: 'boolean', description: 'Whether the account has a second factor.' },
      totp: {
        description: 'The authenticator application.',
        anyOf: [
          { type: 'object', properties: { addedAt: { type: 'string', format: 'date-time' } } },
          { type: 'null' },
        ],
      },
      passkeys: { type: 'integer', description: 'How many passkeys the account has.' },
      recoveryCodesLeft: { type: 'integer' },
    },
    required: ['required', 'enrolled', 'totp', 'passkeys', 'recoveryCodesLeft'],
  }),
  example: {
    required: false,
    enrolled: true,
    totp: { addedAt: '2026-11-26T10:00:00.000Z' },
    passkeys: 0,
    recoveryCodesLeft: 10,
  },
};

/** What an account has, and whether it needs a second factor. */
async function statusOf({ store, settings, accounts }: AccountParts, user: User) {
  const stored = await readFactor(store, user.id);
  const { totp, passkeys, recoveryCodes } = stored?.factor ?? noFactor;
  return {
    required: needsFactor(settings.secondFactor, accounts.factorRoles, user),
    enrolled: stored !== undefined,
    totp: totp === null ? null : { addedAt: totp.addedAt },
    passkeys: passkeys.length,
    recoveryCodesLeft: recoveryCodes.length,
  };
}

/** GET {base}/users/{id}/second-factor: administrators see what an account has (§5.8.8). */
function statusOfAccountResource(parts: AccountParts): Resource {
  const { base, settings, findUser } = parts;
  return actionResource(
    {
      method: 'GET',
      path: `${base}/${usersTable}/{id}/second-factor`,
      parameters: [pathParameter('id', 'Id of the account.')],
      tag: { ...usersCollection, audience: 'operator' },
      name: 'SecondFactorOfUser',
      id: 'readSecondFactorOfUser',
      summary: 'Read the second factor of an account',
      description: 'Administrators only.',
      output: status,
      codes: ['not_found'],
      permission: administratorsOnly,
      handler: async ({ captures: [id = ''] }) => {
        const found = await findUser.byId(id);
        if (found === undefined) return { refused: { code: 'not_found' } };
        return { content: await statusOf(parts, found.user) };
      },
    },
    settings,
  );
}

function statusResource(parts: AccountParts): Resource {
  const { base, settings, addressOf, findUser } = parts;
  return actionResource(
    {
      ...people,
      method: 'GET',
      path: `${base}/auth/second-factor`,
      name: 'SecondFactor',
      id: 'readSecondFactor',
      summary: 'Read the second factor of your account',
      output: status,
      codes: ['forbidden'],
      handler: async (ask) => {
        const owner = ownerOfAsk(ask, addressOf);
        const found = owner === undefined ? undefined : await findUser.byId(owner.userId);
        if (found === undefined) return peopleOnly;
        return { content: await statusOf(parts, found.user) };
      },
    },
    settings,
  );
}

const enrolment = {
  schema: named('TotpEnrolment', {
    description: 'A new secret, which a code has to confirm.',
    type: 'object',
    properties: {
      enrolment: { type: 'string', description: 'For the confirmation.' },
      expiresIn: { type: 'integer', description: 'Seconds until the enrolment expires.' },
      secret: { type: 'string', description: 'The secret in base32, to type.' },
      uri: { type: 'string', description: 'The secret as an `otpauth:` URI, to show as a QR code.' },
    },
    required: ['enrolment', 'expiresIn', 'secret', 'uri'],
  }),
  example: {
    enrolment: exampleChallenge,
    expiresIn: 300,
    secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    uri: 'otpauth://totp/Shop:ada%40shop.example?issuer=Shop&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&algorithm=SHA1&digits=6&period=30',
  },
};

function beginResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/second-factor/totp`,
      id: 'beginTotp',
      summary: 'Begin to add an authenticator application (TOTP)',
      description: `Changes nothing until \`confirm\`. ${proofDescription}`,
      input: { name: 'TotpRequest', schema: Type.Object(proofMembers), example: proofExample },
      output: enrolment,
      codes: proofCodes,
      handler: byOwner(parts, beginTotp),
    },
    parts.settings,
  );
}

function confirmResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/second-factor/totp/confirm`,
      id: 'confirmTotp',
      summary: 'Add the authenticator application by one of its codes',
      description:
        'Replaces an earlier one. If it is the first factor of the account, the response has recovery codes, and all other sessions of the account end.',
      input: {
        name: 'TotpConfirmation',
        schema: Type.Object({ enrolment: Type.String(), code: Type.String() }),
        example: { enrolment: exampleChallenge, code: exampleFactorCode },
      },
      output: shownCodesOutput,
      codes: ['forbidden', 'challenge_invalid', 'second_factor_invalid'],
      handler: byOwner(parts, confirmTotp),
    },
    parts.settings,
  );
}

const { password: _password, ...factorMembers } = proofMembers;

/** The proof of an account that has a factor. */
const factorProof = { schema: Type.Object(factorMembers), example: { code: exampleFactorCode } };

function removalResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/second-factor/totp/remove`,
      id: 'removeTotp',
      summary: 'Remove the authenticator application',
      description: 'Also removes the recovery codes if no other factor is left.',
      input: { name: 'TotpRemoval', ...factorProof },
      codes: [...proofCodes, 'not_found'],
      handler: byOwner(parts, removeTotp),
    },
    parts.settings,
  );
}

function recoveryCodesResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/second-factor/recovery-codes`,
      id: 'renewRecoveryCodes',
      summary: 'Replace the recovery codes',
      description: 'The earlier codes no longer work.',
      input: { name: 'RecoveryCodesRequest', ...factorProof },
      output: shownCodesOutput,
      codes: [...proofCodes, 'not_found'],
      handler: byOwner(parts, renewRecoveryCodes),
    },
    parts.settings,
  );
}

type Enrolment = {
  readonly enrolment: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** Base32, for people who cannot scan the code. */
  readonly secret: string;
  readonly uri: string;
};

/** Codes that are shown once; absent if the account keeps those that it has. */
export type ShownCodes = { readonly recoveryCodes?: readonly string[] };

/** @throws StoreUnavailable */
function beginTotp(parts: AccountParts, owner: FactorOwner, proof: Proof): Promise<ChangedFactor<Enrolment>> {
  const { challenges, random, title } = parts;
  const { userId } = owner;
  return changeFactor(parts, owner, proof, ({ user, factor, hadFactor }) => {
    const secret = drawTotpSecret(random);
    const enrolment = challenges.issue('totp', { user: userId, secret, hadFactor });
    const uri = totpUri(secret, title, user.email);
    return {
      next: factor,
      facts: [],
      result: { enrolment, expiresIn: challenges.seconds, secret, uri },
    };
  });
}

const voidEnrolment: Refused = { ok: false, problem: 'challenge_invalid' };
const wrongCode: Refused = { ok: false, problem: 'second_factor_invalid' };

/** @throws StoreUnavailable */
async function confirmTotp(
  parts: AccountParts,
  owner: FactorOwner,
  typed: { readonly enrolment: string; readonly code: string },
): Promise<ChangedFactor<ShownCodes>> {
  const { challenges, settings } = parts;
  const enrolment = challenges.open('totp', typed.enrolment);
  if (enrolment === undefined || enrolment.user !== owner.userId) return voidEnrolment;
  return changeFactor(parts, owner, null, async (state): Promise<Planned<ShownCodes>> => {
    const { secret, hadFactor } = enrolment;
    // Proven without a factor, and one was added since.
    if (state.hadFactor && !hadFactor) return voidEnrolment;
    if (await challenges.isUsed(enrolment)) return voidEnrolment;
    const code = typed.code.trim();
    const step = looksLikeTotp(code)
      ? stepOfCode({ secret, lastStep: 0 }, code, state.at, settings.totpWindowStepsMax)
      : undefined;
    if (step === undefined) return wrongCode;
    const totp = { secret, lastStep: step, addedAt: new Date(state.at).toISOString() };
    const added = await addFactor(parts, owner, state, { ...state.factor, totp });
    return {
      ...added,
      facts: [{ type: 'second_factor.added', method: 'totp' }],
      news: 'totp-added',
      changes: [challenges.use(enrolment), ...added.changes],
    };
  });
}

/**
 * The first factor of an account comes with recovery codes, and ends all other sessions, which were opened without it.
 * @param next the factor with the new part
 */
export async function addFactor(
  { random, sessions }: AccountParts,
  { userId, session }: FactorOwner,
  { hadFactor }: FactorState,
  next: SecondFactor,
) {
  if (hadFactor) return { next, changes: [], result: {} };
  const { codes, digests } = drawRecoveryCodes(userId, random);
  return {
    next: { ...next, recoveryCodes: digests },
    changes: await sessions.endOfUser(userId, session),
    result: { recoveryCodes: codes },
  };
}

/** Also removes the recovery codes if nothing else is left. @throws StoreUnavailable */
function removeTotp(parts: AccountParts, owner: FactorOwner, proof: Proof): Promise<ChangedFactor<null>> {
  return changeFactor(parts, owner, proof, ({ factor }) => {
    if (factor.totp === null) return { ok: false, problem: 'not_found' };
    return {
      next: { ...factor, totp: null },
      facts: [{ type: 'second_factor.removed', method: 'totp' }],
      news: 'totp-removed',
      result: null,
    };
  });
}

/** Replaces the recovery codes. @throws StoreUnavailable */
function renewRecoveryCodes(
  parts: AccountParts,
  owner: FactorOwner,
  proof: Proof,
): Promise<ChangedFactor<Required<ShownCodes>>> {
  return changeFactor(parts, owner, proof, ({ factor }) => {
    if (!isFactor(factor)) return { ok: false, problem: 'not_found' };
    const { codes, digests } = drawRecoveryCodes(owner.userId, parts.random);
    return {
      next: { ...factor, recoveryCodes: digests },
      facts: [{ type: 'recovery_codes.created' }],
      news: 'codes-created',
      result: { recoveryCodes: codes },
    };
  });
}
