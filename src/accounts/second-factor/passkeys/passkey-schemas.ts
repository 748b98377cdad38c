/** Schemas of passkeys: what a browser sends, with bounds, and what it is sent (WebAuthn §5.8, in the form of `toJSON`). */
import { Type } from 'typebox';
import { named } from '../../../kernel/documentation.ts';
import { exampleChallenge } from '../../account-schemas.ts';

/** 1023 octets (WebAuthn §4, credential id) in base64url. */
const idCharactersMax = 1364;
const clientDataCharactersMax = 8192;
const objectCharactersMax = 16_384;
const handleCharactersMax = 256;
export const passkeyNameCharactersMax = 100;

/** Browsers add members, which Comity does not use. */
const open = { additionalProperties: true } as const;

const credential = {
  id: Type.String({ maxLength: idCharactersMax }),
  rawId: Type.String({ maxLength: idCharactersMax }),
  type: Type.String(),
};

export const registrationSchema = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: Type.String({ maxLength: clientDataCharactersMax }),
        attestationObject: Type.String({ maxLength: objectCharactersMax }),
        transports: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 16 })),
      },
      open,
    ),
  },
  { ...open, description: 'What `navigator.credentials.create` gives, as `toJSON()`.' },
);

export const assertionSchema = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: Type.String({ maxLength: clientDataCharactersMax }),
        authenticatorData: Type.String({ maxLength: objectCharactersMax }),
        signature: Type.String({ maxLength: objectCharactersMax }),
        userHandle: Type.Optional(Type.String({ maxLength: handleCharactersMax })),
      },
      open,
    ),
  },
  { ...open, description: 'What `navigator.credentials.get` gives, as `toJSON()`.' },
);

const exampleId = 'iNBb1MLvSbqHPzqqVYTbPw';

export const exampleRegistration = {
  id: exampleId,
  rawId: exampleId,
  type: 'public-key',
  response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0', attestationObject: 'o2NmbXRkbm9uZQ' },
};

export const exampleAssertion = {
  id: exampleId,
  rawId: exampleId,
  type: 'public-key',
  response: {
    clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0',
    authenticatorData: 'SZYN5YgOjGh0NBcPZHZgW4',
    signature: 'MEUCIQDy',
  },
};

export const passkeyRequestOutput = {
  schema: named('PasskeyRequest', {
    description: 'Options for `navigator.credentials`, and the challenge to send back with its result.',
    type: 'object',
    properties: {
      challenge: { type: 'string' },
      expiresIn: { type: 'integer', description: 'Seconds until the challenge expires.' },
      options: {
        type: 'object',
        description:
          'For `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`.',
      },
    },
    required: ['challenge', 'expiresIn', 'options'],
  }),
  example: {
    challenge: exampleChallenge,
    expiresIn: 300,
    options: { challenge: 'd2hhdCB0aGUgYXV0aGVudGljYXRvciBzaWducw', rpId: 'shop.example' },
  },
};

const passkeyNode = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    transports: { type: 'array', items: { type: 'string' } },
    backedUp: { type: 'boolean', description: 'Whether the authenticator keeps a copy elsewhere.' },
    createdAt: { type: 'string', format: 'date-time' },
    lastUsedAt: { type: ['string', 'null'] },
  },
  required: ['id', 'name', 'transports', 'backedUp', 'createdAt', 'lastUsedAt'],
};

const examplePasskey = {
  id: 'pas_01k1jx7v2mh5s8b4c9d0e6f3ga',
  name: 'Laptop',
  transports: ['internal'],
  backedUp: true,
  createdAt: '2026-11-26T10:00:00.000Z',
  lastUsedAt: null,
};

export const passkeyOutput = {
  schema: named('Passkey', { description: 'A passkey of an account.', ...passkeyNode }),
  example: examplePasskey,
};

export const addedPasskeyOutput = {
  schema: named('AddedPasskey', {
    description: 'A new passkey, with recovery codes if it is the first factor of the account.',
    type: 'object',
    properties: { passkey: passkeyNode, recoveryCodes: { type: 'array', items: { type: 'string' } } },
    required: ['passkey'],
  }),
  example: { passkey: examplePasskey },
};

export const passkeysOutput = {
  schema: named('Passkeys', {
    description: 'The passkeys of an account.',
    type: 'object',
    properties: { items: { type: 'array', items: passkeyNode } },
    required: ['items'],
  }),
  example: { items: [examplePasskey] },
};
