/** `{base}/auth/passkeys`: the owner of an account lists, adds, renames and removes its passkeys (§5.8). */
import { Type } from 'typebox';
import { actionResource } from '../../../kernel/action.ts';
import { pathParameter } from '../../../kernel/documentation.ts';
import type { Ask, Resource } from '../../../kernel/resource.ts';
import { accountsTag, anyCredential } from '../../account-schemas.ts';
import { exampleChallenge, exampleFactorCode } from '../factor-examples.ts';
import type { FactorRoutesOptions } from '../factor-routes.ts';
import { readFactor } from '../factor-row.ts';
import {
  doneOf,
  ownerOfAsk,
  peopleOnly,
  proofCodes,
  proofDescription,
  proofExample,
  proofMembers,
} from '../factor-schemas.ts';
import {
  addPasskey,
  beginPasskey,
  beginProof,
  removePasskey,
  renamePasskey,
  shownPasskey,
} from './manage-passkeys.ts';
import {
  addedPasskeyOutput,
  exampleRegistration,
  passkeyNameCharactersMax,
  passkeyOutput,
  passkeyRequestOutput,
  passkeysOutput,
  registrationSchema,
} from './passkey-schemas.ts';

const people = { tag: accountsTag, permission: anyCredential } as const;
const schemes = ['bearer', 'basic', 'cookieAuth'] as const;
const passkeyName = Type.String({ minLength: 1, maxLength: passkeyNameCharactersMax });
const parameters = [pathParameter('id', 'Id of the passkey.')];

export function passkeyResources(options: FactorRoutesOptions): readonly Resource[] {
  return [
    listResource(options),
    beginResource(options),
    proofResource(options),
    renameResource(options),
    removalResource(options),
  ].map((resource) => options.admitEnrolling(resource));
}

/** GET and POST of one path. */
function listResource(options: FactorRoutesOptions): Resource {
  const { base, limits, addressOf, store } = options;
  const path = `${base}/auth/passkeys`;
  const list = actionResource(
    {
      ...people,
      method: 'GET',
      path,
      name: 'Passkeys',
      noun: 'the passkeys of the caller',
      id: 'listPasskeys',
      summary: 'List the passkeys of your account',
      output: passkeysOutput,
      schemes,
      codes: ['forbidden'],
      handler: async (ask) => {
        const owner = ownerOfAsk(ask, addressOf);
        if (owner === undefined) return peopleOnly;
        const stored = await readFactor(store, owner.userId);
        return { content: { items: (stored?.factor.passkeys ?? []).map(shownPasskey) } };
      },
    },
    limits,
  );
  const addition = actionResource(
    {
      ...people,
      path,
      noun: 'a new passkey',
      id: 'addPasskey',
      summary: 'Add a passkey',
      description:
        'Takes the challenge of `/auth/passkeys/options` and what the browser made with its options. If it is the first factor of the account, the response has recovery codes, and all other sessions of the account end.',
      input: {
        name: 'PasskeyAddition',
        schema: Type.Object({
          challenge: Type.String(),
          name: Type.Optional(passkeyName),
          response: registrationSchema,
        }),
        example: { challenge: exampleChallenge, name: 'Laptop', response: exampleRegistration },
      },
      output: addedPasskeyOutput,
      schemes,
      codes: ['forbidden', 'challenge_invalid', 'passkey_invalid', 'passkeys_exhausted'],
      handler: async (ask, { challenge, name = 'Passkey', response }) => {
        const owner = ownerOfAsk(ask, addressOf);
        if (owner === undefined) return peopleOnly;
        return doneOf(await addPasskey(options, owner, { challenge, name, response }));
      },
    },
    limits,
  );
  return { ...list, operations: new Map([...list.operations, ...addition.operations]) };
}

function beginResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/passkeys/options`,
      noun: 'the options for a new passkey',
      id: 'beginPasskey',
      summary: 'Begin to add a passkey',
      description: `Changes nothing. ${proofDescription}`,
      input: { name: 'PasskeyOptions', schema: Type.Object(proofMembers), example: proofExample },
      output: passkeyRequestOutput,
      schemes,
      codes: proofCodes,
      handler: async (ask, proof) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        return owner === undefined ? peopleOnly : doneOf(await beginPasskey(options, owner, proof));
      },
    },
    options.limits,
  );
}

function proofResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/second-factor/passkey-options`,
      name: 'PasskeyProof',
      noun: 'the options for a proof by passkey',
      id: 'beginPasskeyProof',
      summary: 'Get options for a passkey that proves a change of the second factor',
      output: passkeyRequestOutput,
      schemes,
      codes: ['forbidden'],
      handler: async (ask) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        return owner === undefined
          ? peopleOnly
          : { content: { ...(await beginProof(options, owner.userId)) } };
      },
    },
    options.limits,
  );
}

function renameResource(options: FactorRoutesOptions): Resource {
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/passkeys/{id}/rename`,
      parameters,
      noun: 'the name of a passkey',
      id: 'renamePasskey',
      summary: 'Rename a passkey',
      input: { name: 'PasskeyName', schema: Type.Object({ name: passkeyName }), example: { name: 'Phone' } },
      output: passkeyOutput,
      schemes,
      codes: ['forbidden', 'not_found'],
      handler: async (ask, { name }) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        if (owner === undefined) return peopleOnly;
        return doneOf(await renamePasskey(options, owner, { id: idOf(ask), name }));
      },
    },
    options.limits,
  );
}

function removalResource(options: FactorRoutesOptions): Resource {
  const { password: _password, ...members } = proofMembers;
  return actionResource(
    {
      ...people,
      path: `${options.base}/auth/passkeys/{id}/remove`,
      parameters,
      noun: 'the removal of a passkey',
      id: 'removePasskey',
      summary: 'Remove a passkey',
      description:
        'Needs a `code` or a `passkey`. Also removes the recovery codes if no other factor is left.',
      input: {
        name: 'PasskeyRemoval',
        schema: Type.Object(members),
        example: { code: exampleFactorCode },
      },
      schemes,
      codes: [...proofCodes, 'not_found'],
      handler: async (ask, proof) => {
        const owner = ownerOfAsk(ask, options.addressOf);
        if (owner === undefined) return peopleOnly;
        return doneOf(await removePasskey(options, owner, { id: idOf(ask), proof }));
      },
    },
    options.limits,
  );
}

function idOf({ captures: [id = ''] }: Ask): string {
  return id;
}
