/** `{base}/auth/second-factor`: the owner of an account reads, adds and removes its second factor (§5.8). */
import { Type } from 'typebox';
import { actionResource } from '../../kernel/action.ts';
import { named } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { type AccountRouteOptions, accountsTag, anyCredential } from '../account-schemas.ts';
import { beginTotp, confirmTotp, type EnrolOptions, removeTotp, renewRecoveryCodes } from './enrol-totp.ts';
import { exampleChallenge, exampleFactorCode } from './factor-examples.ts';
import { noFactor, readFactor } from './factor-row.ts';
import { needsFactor, type SecondFactorMode } from './factor-rule.ts';
import {
  type AdmitEnrolling,
  doneOf,
  ownerOfAsk,
  peopleOnly,
  proofCodes,
  proofDescription,
  proofExample,
  proofMembers,
  shownCodesOutput,
} from './factor-schemas.ts';

export type FactorRoutesOptions = AccountRouteOptions &
  EnrolOptions & {
    readonly secondFactor: SecondFactorMode;
    readonly admitEnrolling: AdmitEnrolling;
  };

const people = { tag: accountsTag, permission: anyCredential } as const;
const schemes = ['bearer', 'basic', 'cookieAuth'] as const;
export function factorResources(options: FactorRoutesOptions): readonly Resource[] {
  return [
    statusResource(options),
    beginResource(options),
    confirmResource(options),
    removalResource(options),
    recoveryCodesResource(options),
  ].map((resource) => options.admitEnrolling(resource));
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

function statusResource({ base, limits, addressOf, ...options }: FactorRoutesOptions): Resource {
  const { store, findUser, secondFactor } = options;
  return actionResource(
    {
      ...people,
      method: 'GET',
      path: `${base}/auth/second-factor`,
      name: 'SecondFactor',
      noun: 'the second factor of the caller',
      id: 'readSecondFactor',
      summary: 'Read the second factor of your account',
      output: status,
      schemes,
      codes: ['forbidden'],
      handler: async (ask) => {
        const owner = ownerOfAsk(ask, addressOf);
        const found = owner === undefined ? undefined : await findUser.byId(owner.userId);
        if (found === undefined) return peopleOnly;
        const stored = await readFactor(store, found.user.id);
        const { totp, passkeys, recoveryCodes } = stored?.factor ?? noFactor;
        return {
          content: {
            required: needsFactor(secondFactor, found.user),
            enrolled: stored !== undefined,
            totp: totp === null ? null : { addedAt: totp.addedAt },
            passkeys: passkeys.length,
            recoveryCodesLeft: recoveryCodes.length,
          },
        };
      },
    },
    limits,
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

function beginResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/second-factor/totp`,
      noun: 'an authenticator application',
      id: 'beginTotp',
      summary: 'Begin to add an authenticator application (TOTP)',
      description: `Changes nothing until \`confirm\`. ${proofDescription}`,
      input: { name: 'TotpRequest', schema: Type.Object(proofMembers), example: proofExample },
      output: enrolment,
      schemes,
      codes: proofCodes,
      handler: async (ask, proof) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        return owner === undefined ? peopleOnly : doneOf(await beginTotp(options, owner, proof));
      },
    },
    options.limits,
  );
}

function confirmResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/second-factor/totp/confirm`,
      noun: 'the confirmation of an authenticator application',
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
      schemes,
      codes: ['forbidden', 'challenge_invalid', 'second_factor_invalid'],
      handler: async (ask, typed) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        return owner === undefined ? peopleOnly : doneOf(await confirmTotp(options, owner, typed));
      },
    },
    options.limits,
  );
}

const { password: _password, ...factorMembers } = proofMembers;

/** The proof of an account that has a factor. */
const factorProof = { schema: Type.Object(factorMembers), example: { code: exampleFactorCode } };

function removalResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/second-factor/totp/remove`,
      noun: 'the removal of an authenticator application',
      id: 'removeTotp',
      summary: 'Remove the authenticator application',
      description: 'Also removes the recovery codes if no other factor is left.',
      input: { name: 'TotpRemoval', ...factorProof },
      schemes,
      codes: [...proofCodes, 'not_found'],
      handler: async (ask, proof) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        return owner === undefined ? peopleOnly : doneOf(await removeTotp(options, owner, proof));
      },
    },
    options.limits,
  );
}

function recoveryCodesResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/second-factor/recovery-codes`,
      noun: 'recovery codes',
      id: 'renewRecoveryCodes',
      summary: 'Replace the recovery codes',
      description: 'The earlier codes no longer work.',
      input: { name: 'RecoveryCodesRequest', ...factorProof },
      output: shownCodesOutput,
      schemes,
      codes: [...proofCodes, 'not_found'],
      handler: async (ask, proof) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        return owner === undefined ? peopleOnly : doneOf(await renewRecoveryCodes(options, owner, proof));
      },
    },
    options.limits,
  );
}
