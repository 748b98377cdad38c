/** `{base}/auth/passkeys`: the owner of an account lists, adds, renames and removes its passkeys (§5.8). */
import { Type } from 'typebox';
import { actionResource } from '../../../kernel/action.ts';
import { pathParameter } from '../../../kernel/documentation.ts';
import type { Ask, Resource } from '../../../kernel/resource.ts';
import { idFor } from '../../../model/id.ts';
import type { AccountParts } from '../../account-parts.ts';
import { exampleChallenge, exampleFactorCode } from '../../account-schemas.ts';
import {
  byOwner,
  type ChangedFactor,
  changeFactor,
  type FactorOwner,
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
} from '../change-factor.ts';
import { addFactor, type ShownCodes } from '../factor-routes.ts';
import { type Passkey, readFactor } from '../factor-row.ts';
import { challengeBytes, type PasskeyRequest } from './passkey-login.ts';
import {
  addedPasskeyOutput,
  authenticationOptions,
  exampleRegistration,
  passkeyNameCharactersMax,
  passkeyOutput,
  passkeyRequestOutput,
  passkeysOutput,
  registrationOptions,
  registrationSchema,
  verifyRegistration,
} from './webauthn.ts';

const passkeyName = Type.String({ minLength: 1, maxLength: passkeyNameCharactersMax });
const parameters = [pathParameter('id', 'Id of the passkey.')];

export function passkeyResources(parts: AccountParts): readonly Resource[] {
  return [
    listResource(parts),
    beginResource(parts),
    proofResource(parts),
    renameResource(parts),
    removalResource(parts),
  ];
}

/** GET and POST of one path. */
function listResource(parts: AccountParts): Resource {
  const { base, settings, addressOf, store } = parts;
  const path = `${base}/auth/passkeys`;
  const list = actionResource(
    {
      ...people,
      method: 'GET',
      path,
      name: 'Passkeys',
      id: 'listPasskeys',
      summary: 'List the passkeys of your account',
      output: passkeysOutput,
      codes: ['forbidden'],
      handler: async (ask) => {
        const owner = ownerOfAsk(ask, addressOf);
        if (owner === undefined) return peopleOnly;
        const stored = await readFactor(store, owner.userId);
        return { content: { items: (stored?.factor.passkeys ?? []).map(shownPasskey) } };
      },
    },
    settings,
  );
  const addition = actionResource(
    {
      ...people,
      path,
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
      codes: ['forbidden', 'challenge_invalid', 'passkey_invalid', 'passkeys_exhausted'],
      handler: byOwner(parts, addPasskey),
    },
    settings,
  );
  return { ...list, operations: new Map([...list.operations, ...addition.operations]) };
}

function beginResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/passkeys/options`,
      id: 'beginPasskey',
      summary: 'Begin to add a passkey',
      description: `Changes nothing. ${proofDescription}`,
      input: { name: 'PasskeyOptions', schema: Type.Object(proofMembers), example: proofExample },
      output: passkeyRequestOutput,
      codes: proofCodes,
      handler: byOwner(parts, beginPasskey),
    },
    parts.settings,
  );
}

function proofResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/second-factor/passkey-options`,
      name: 'PasskeyProof',
      id: 'beginPasskeyProof',
      summary: 'Get options for a passkey that proves a change of the second factor',
      output: passkeyRequestOutput,
      codes: ['forbidden'],
      handler: async (ask) => {
        const owner = ownerOfAsk(ask, parts.addressOf);
        return owner === undefined ? peopleOnly : { content: { ...(await beginProof(parts, owner.userId)) } };
      },
    },
    parts.settings,
  );
}

function renameResource(parts: AccountParts): Resource {
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/passkeys/{id}/rename`,
      parameters,
      id: 'renamePasskey',
      summary: 'Rename a passkey',
      input: { name: 'PasskeyName', schema: Type.Object({ name: passkeyName }), example: { name: 'Phone' } },
      output: passkeyOutput,
      codes: ['forbidden', 'not_found'],
      handler: byOwner(parts, renamePasskey),
    },
    parts.settings,
  );
}

function removalResource(parts: AccountParts): Resource {
  const { password: _password, ...members } = proofMembers;
  return actionResource(
    {
      ...people,
      path: `${parts.base}/auth/passkeys/{id}/remove`,
      parameters,
      id: 'removePasskey',
      summary: 'Remove a passkey',
      description:
        'Needs a `code` or a `passkey`. Also removes the recovery codes if no other factor is left.',
      input: {
        name: 'PasskeyRemoval',
        schema: Type.Object(members),
        example: { code: exampleFactorCode },
      },
      codes: [...proofCodes, 'not_found'],
      handler: byOwner(parts, removePasskey),
    },
    parts.settings,
  );
}

/* Adds, renames and removes the passkeys of an account (§5.8). */

/** A passkey as its owner sees it. */
type ShownPasskey = Pick<Passkey, 'id' | 'name' | 'transports' | 'backedUp' | 'createdAt' | 'lastUsedAt'>;

function shownPasskey(passkey: Passkey): ShownPasskey {
  const { id, name, transports, backedUp, createdAt, lastUsedAt } = passkey;
  return { id, name, transports, backedUp, createdAt, lastUsedAt };
}

const voidChallenge: Refused = { ok: false, problem: 'challenge_invalid' };
const wrongPasskey: Refused = { ok: false, problem: 'passkey_invalid' };
const missing: Refused = { ok: false, problem: 'not_found' };

/** @throws StoreUnavailable */
function beginPasskey(
  parts: AccountParts,
  owner: FactorOwner,
  proof: Proof,
): Promise<ChangedFactor<PasskeyRequest>> {
  const { challenges, random, relyingParty } = parts;
  return changeFactor(parts, owner, proof, async ({ user, factor, hadFactor }) => {
    const challenge = random(challengeBytes).toString('base64url');
    const timeoutMs = challenges.seconds * 1000;
    const { passkeys } = factor;
    return {
      next: factor,
      facts: [],
      result: {
        challenge: challenges.issue('passkey', { user: owner.userId, challenge, hadFactor }),
        expiresIn: challenges.seconds,
        options: await registrationOptions(relyingParty(), user, { challenge, passkeys, timeoutMs }),
      },
    };
  });
}

type AddedPasskey = { readonly passkey: ShownPasskey } & ShownCodes;

/** @throws StoreUnavailable */
async function addPasskey(
  parts: AccountParts,
  owner: FactorOwner,
  typed: { readonly challenge: string; readonly name?: string; readonly response: unknown },
): Promise<ChangedFactor<AddedPasskey>> {
  const { challenges, relyingParty, newId, settings } = parts;
  const opened = challenges.open('passkey', typed.challenge);
  if (opened === undefined || opened.user !== owner.userId) return voidChallenge;
  const registered = await verifyRegistration(relyingParty(), opened.challenge, typed.response);
  if (registered === undefined) return wrongPasskey;
  const id = idFor('passkey', newId);
  return changeFactor(parts, owner, null, async (state): Promise<Planned<AddedPasskey>> => {
    // Proven without a factor, and one was added since.
    if (state.hadFactor && !opened.hadFactor) return voidChallenge;
    if (await challenges.isUsed(opened)) return voidChallenge;
    const { passkeys } = state.factor;
    if (passkeys.some(({ credential }) => credential === registered.credential)) return wrongPasskey;
    if (passkeys.length >= settings.passkeysPerAccountMax)
      return { ok: false, problem: 'passkeys_exhausted' };
    const createdAt = new Date(state.at).toISOString();
    const passkey: Passkey = {
      id,
      name: typed.name ?? 'Passkey',
      ...registered,
      createdAt,
      lastUsedAt: null,
    };
    const added = await addFactor(parts, owner, state, {
      ...state.factor,
      passkeys: [...passkeys, passkey],
    });
    return {
      next: added.next,
      facts: [{ type: 'second_factor.added', method: 'passkey', passkey: id }],
      news: 'passkey-added',
      changes: [challenges.use(opened), ...added.changes],
      result: { passkey: shownPasskey(passkey), ...added.result },
    };
  });
}

/** @throws StoreUnavailable */
function renamePasskey(
  parts: AccountParts,
  owner: FactorOwner,
  { name }: { readonly name: string },
  { captures: [wanted = ''] }: Ask,
): Promise<ChangedFactor<ShownPasskey>> {
  return changeFactor(parts, owner, null, ({ factor }) => {
    const passkey = factor.passkeys.find(({ id }) => id === wanted);
    if (passkey === undefined) return missing;
    const renamed = { ...passkey, name };
    const passkeys = factor.passkeys.map((each) => (each.id === wanted ? renamed : each));
    const fact = { type: 'second_factor.changed', method: 'passkey', passkey: wanted } as const;
    const facts = passkey.name === name ? [] : [fact];
    return { next: { ...factor, passkeys }, facts, result: shownPasskey(renamed) };
  });
}

/** Also removes the recovery codes if no other factor is left. @throws StoreUnavailable */
function removePasskey(
  parts: AccountParts,
  owner: FactorOwner,
  proof: Proof,
  { captures: [wanted = ''] }: Ask,
): Promise<ChangedFactor<null>> {
  return changeFactor(parts, owner, proof, ({ factor }) => {
    const passkeys = factor.passkeys.filter(({ id }) => id !== wanted);
    if (passkeys.length === factor.passkeys.length) return missing;
    return {
      next: { ...factor, passkeys },
      facts: [{ type: 'second_factor.removed', method: 'passkey', passkey: wanted }],
      news: 'passkey-removed',
      result: null,
    };
  });
}

/** Options for a passkey that proves a change of the factor. @throws StoreUnavailable */
async function beginProof(parts: AccountParts, userId: string): Promise<PasskeyRequest> {
  const { challenges, random, relyingParty, store } = parts;
  const stored = await readFactor(store, userId);
  const challenge = random(challengeBytes).toString('base64url');
  const passkeys = stored?.factor.passkeys ?? [];
  const timeoutMs = challenges.seconds * 1000;
  return {
    challenge: challenges.issue('passkeyProof', { user: userId, challenge }),
    expiresIn: challenges.seconds,
    options: await authenticationOptions(relyingParty(), { challenge, passkeys, timeoutMs }),
  };
}
