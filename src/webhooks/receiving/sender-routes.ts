/**
 * `/senders`: the senders of incoming webhooks (§4.14), for administrators. The configuration declares them, so clients
 * can change only their secrets.
 */
import { type Static, Type } from 'typebox';
import type { Configuration } from '../../config/configuration.ts';
import { refuseSenderSecret, secretCharactersMax } from '../../config/sender-secrets.ts';
import type { DeclaredSender, HandOnTo } from '../../config/senders.ts';
import type { FieldError, Problem } from '../../http/problem.ts';
import { actionResource, type Done } from '../../kernel/action.ts';
import { type Item, json, named, pageSchema, pathParameter, type Tag } from '../../kernel/documentation.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import { type Permission, permission } from '../../model/access.ts';
import { schemes } from '../../model/endpoint.ts';
import type { Principal } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import {
  type DeclaredItem,
  declaredList,
  missing,
  type Shown,
  shown,
  shownResource,
} from '../routes/declared-resources.ts';
import { keyPairs, type SignatureRule, usesSecrets } from '../signature/signature-rule.ts';
import { type SecretName, type SenderSecrets, validAt } from './sender-secrets.ts';

const sendersTag: Tag = {
  name: 'senders',
  description: 'The declared senders of webhooks.',
  audience: 'operator',
};
const senderParameter = pathParameter('name', 'Name of the sender, as in its path.');

export type ShownSender = ShownSecrets & {
  readonly name: string;
  readonly description: string;
  readonly preset: string | null;
  /** The path to which it posts. */
  readonly path: string;
  readonly signature: ShownSignature;
  readonly handOn: ShownHandOn;
  readonly schedule: readonly number[];
  /** Null: the setting applies. */
  readonly inFlightMax: number | null;
};

export type ShownSecrets = {
  readonly secretSource: 'environment' | 'store';
  readonly secretVariable: string;
  /** Secrets that are valid now. */
  readonly secretCount: number;
  /** When the last secret that is being replaced ends, ISO 8601; null: there is none. */
  readonly oldSecretsUntil: string | null;
};

type ShownSignature = {
  /** `function`: `verify` of the configuration judges, and there is nothing else. */
  readonly kind: SignatureRule['kind'] | 'function';
  /** Absent of `function`. */
  readonly header?: string;
  /** Set for `hmac`. */
  readonly hash?: string;
  /** Set for `jwt`. */
  readonly algorithm?: string;
  /** Absent of `token` and `jwt`. */
  readonly encoding?: string;
  /** 0: any time, or the rule signs no time. Absent of `token`. */
  readonly toleranceSeconds?: number;
};

type ShownHandOn =
  | { readonly kind: 'handler' | 'inbox' }
  | (ShownSecrets & { readonly kind: 'forward'; readonly url: string; readonly scheme: string });

type Secrets = Pick<SenderSecrets, 'of' | 'source'>;

/**
 * A declared sender as administrators see it: how it signs, how its messages are handed on, and the source of its
 * secrets, without the secrets.
 * @param path `/api/v1/webhooks/billing`
 * @param now milliseconds since the epoch
 */
function shownSender(sender: DeclaredSender, path: string, secrets: Secrets, now: number): ShownSender {
  const { name, description, preset, rule, secretVariable, schedule, inFlightMax } = sender;
  const shownSecrets = (use: SecretName['use'], variable: string) =>
    secretsOf(secrets, { sender: name, use }, variable, now);
  return {
    ...{ name, description, preset, path },
    signature: signatureOf(rule.signature),
    handOn: handOnOf(sender.handOn, shownSecrets),
    schedule,
    inFlightMax: inFlightMax ?? null,
    ...shownSecrets('receive', secretVariable),
  };
}

function secretsOf(secrets: Secrets, name: SecretName, secretVariable: string, now: number): ShownSecrets {
  const active = validAt(secrets.of(name), now);
  const ends = active.flatMap(({ until }) => (until === null ? [] : [until]));
  return {
    secretSource: secrets.source(name),
    secretVariable,
    secretCount: active.length,
    oldSecretsUntil: ends.length === 0 ? null : new Date(Math.max(...ends)).toISOString(),
  };
}

function signatureOf(signature: DeclaredSender['rule']['signature']): ShownSignature {
  if (signature.kind === 'function') return { kind: signature.kind };
  const { kind, header } = signature;
  if (kind === 'token') return { kind, header };
  if (kind === 'jwt') {
    const { algorithm, toleranceSeconds } = signature;
    return { kind, header, algorithm, toleranceSeconds };
  }
  const { encoding, timestamp } = signature;
  return {
    ...{ kind, header, encoding },
    ...(signature.kind === 'hmac' ? { hash: signature.hash } : {}),
    toleranceSeconds: timestamp === undefined ? 0 : signature.toleranceSeconds,
  };
}

function handOnOf(
  handOn: HandOnTo,
  shownSecrets: (use: SecretName['use'], variable: string) => ShownSecrets,
): ShownHandOn {
  if (handOn.kind !== 'forward') return { kind: handOn.kind };
  const { kind, url, scheme, secretVariable } = handOn;
  return { kind, url: withoutCredentials(url), scheme, ...shownSecrets('forward', secretVariable) };
}

/** Removes the query too, which may hold a token. */
function withoutCredentials({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

const secrets: Item = {
  secretSource: {
    enum: ['environment', 'store'],
    description: '`environment`: the variable sets the secret; `store`: Comity created and stores it.',
  },
  secretVariable: { type: 'string', description: 'The environment variable that can set the secret.' },
  secretCount: { type: 'integer', minimum: 0, description: 'Number of valid secrets.' },
  oldSecretsUntil: {
    type: ['string', 'null'],
    format: 'date-time',
    description: 'Time at which the last replaced secret expires.',
  },
};
const secretNames = Object.keys(secrets);

const signature: Item = {
  type: 'object',
  properties: {
    kind: { enum: ['hmac', ...keyPairs, 'jwt', 'token', 'function'] },
    header: { type: 'string' },
    hash: { enum: ['sha1', 'sha256', 'sha512'] },
    algorithm: { enum: ['HS256', 'RS256', 'ES256', 'EdDSA'] },
    encoding: { enum: ['hex', 'base64', 'base64url'] },
    toleranceSeconds: {
      type: 'integer',
      minimum: 0,
      description: '0: Comity does not check the signed time, or there is none.',
    },
  },
  required: ['kind'],
};

const handOn: Item = {
  description: 'How Comity hands on messages; `inbox`: they wait until they are marked.',
  oneOf: [
    { type: 'object', properties: { kind: { enum: ['handler', 'inbox'] } }, required: ['kind'] },
    {
      type: 'object',
      properties: {
        kind: { const: 'forward' },
        url: { type: 'string', description: 'The URL without credentials and query.' },
        scheme: { enum: schemes },
        ...secrets,
      },
      required: ['kind', 'url', 'scheme', ...secretNames],
    },
  ],
};

const senderSchema = named('Sender', {
  description: 'A declared sender of webhooks.',
  type: 'object',
  properties: {
    name: { type: 'string' },
    description: { type: 'string' },
    preset: { type: ['string', 'null'] },
    path: { type: 'string', description: 'The path to which the sender posts.' },
    signature,
    handOn,
    schedule: {
      type: 'array',
      items: { type: 'number' },
      description: 'Seconds from each failed attempt to the next.',
    },
    inFlightMax: {
      type: ['integer', 'null'],
      description: 'Null: `COMITY_SENDER_IN_FLIGHT_DEFAULT` applies.',
    },
    ...secrets,
  },
  required: [
    ...['name', 'description', 'preset', 'path', 'signature', 'handOn', 'schedule', 'inFlightMax'],
    ...secretNames,
  ],
});

const senderExample: ShownSender = {
  name: 'billing',
  description: 'Payments of the shop.',
  preset: 'timestamped',
  path: '/api/v1/webhooks/billing',
  signature: {
    ...{ kind: 'hmac', header: 'service-signature', hash: 'sha256', encoding: 'hex' },
    toleranceSeconds: 300,
  },
  handOn: { kind: 'handler' },
  schedule: [5, 30, 120, 300, 1800, 7200, 18_000, 72_000],
  inFlightMax: null,
  secretSource: 'store',
  secretVariable: 'BILLING_WEBHOOK_SECRET',
  secretCount: 1,
  oldSecretsUntil: null,
};

export function senderResources(
  services: Services,
  configuration: Pick<Configuration, 'base' | 'senders'>,
  secrets: KnownSecrets,
): readonly Resource[] {
  const { base, senders } = configuration;
  const { clock, settings } = services;
  const path = `${base}/senders`;
  const textOf = (sender: DeclaredSender): string =>
    JSON.stringify(shownSender(sender, `${base}/webhooks/${sender.name}`, secrets, clock()));
  const items = (): readonly DeclaredItem[] =>
    [...senders.values()].map((sender) => ({ name: sender.name, text: textOf(sender) }));
  const one = (ask: Ask): Shown => {
    const sender = senders.get(ask.captures[0] ?? '');
    return sender === undefined ? missing : shown(textOf(sender));
  };
  return [
    declaredList(path, mayRead, items, settings, listDocumentation),
    shownResource(`${path}/{name}`, mayRead, one, senderDocumentation),
    rotateSenderSecretResource(services, configuration, secrets),
  ];
}

const sendersSchema = pageSchema('Senders', 'A page of declared senders.', senderSchema);

const listDocumentation = {
  name: 'Senders',
  tag: sendersTag,
  list: {
    id: 'listSenders',
    summary: 'List the declared senders',
    gives: { representation: json(sendersSchema, { items: [senderExample], nextCursor: null }) },
  },
};

const senderDocumentation = {
  name: 'Sender',
  tag: sendersTag,
  parameters: [senderParameter],
  read: {
    id: 'readSender',
    summary: 'Read a sender',
    gives: { representation: json(senderSchema, senderExample) },
  },
};

function mayRead(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}

/** The secrets of senders as their resources use them. */
export type KnownSecrets = Pick<SenderSecrets, 'of' | 'source' | 'refresh' | 'rotate'>;

const withoutControls = '^[^\\u0000-\\u001f\\u007f]+$';

function schemaOf(overlapSecondsMax: number) {
  return Type.Object({
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: overlapSecondsMax,
        description: 'Seconds for which the replaced secrets stay valid beside the new one. Default: 0.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: secretCharactersMax,
        pattern: withoutControls,
        description: 'The secret that the sender assigned. By default the server creates one.',
      }),
    ),
    use: Type.Optional(
      Type.Union([Type.Literal('receive'), Type.Literal('forward')], {
        description:
          '`receive`: the secret that the sender signs with; `forward`: the secret that signs forwarded messages.',
      }),
    ),
  });
}

type Wanted = Static<ReturnType<typeof schemaOf>>;

const rotated = {
  schema: {
    type: 'object',
    properties: {
      sender: { type: 'string' },
      use: { enum: ['receive', 'forward'] },
      secret: { type: 'string' },
    },
    required: ['sender', 'use', 'secret'],
  },
  example: { sender: 'billing', use: 'receive', secret: 'whsec_dGhlIGtleSBvZiBiaWxsaW5nLCB0aGlzIG9uY2U=' },
};

function rotateSenderSecretResource(
  { settings }: Services,
  { base, senders }: Pick<Configuration, 'base' | 'senders'>,
  secrets: KnownSecrets,
): Resource {
  return actionResource(
    {
      path: `${base}/senders/{name}/rotate-secret`,
      parameters: [senderParameter],
      tag: sendersTag,
      id: 'rotateSenderSecret',
      summary: 'Rotate a secret of a sender',
      description:
        'Creates a secret, or stores the one that the sender assigned. Only this response shows it. 409 if an environment variable sets the secret.',
      input: {
        name: 'SenderSecretRotation',
        schema: schemaOf(settings.secretOverlapSecondsMax),
        example: { overlapSeconds: 3600 },
        optional: true,
      },
      output: rotated,
      codes: ['sender_secret_fixed'],
      permission: (principal) => permission('administrator', 'update', principal),
      standing: ({ captures: [name = ''] }) => {
        const exists = senders.has(name);
        return { exists, visible: exists, permitted: exists };
      },
      mayBeMissing: true,
      handler: async ({ captures: [name = ''] }, wanted) => {
        const sender = senders.get(name);
        if (sender === undefined) return { refused: { code: 'not_found' } };
        return rotate(secrets, sender, wanted);
      },
    },
    settings,
  );
}

async function rotate(
  secrets: KnownSecrets,
  sender: DeclaredSender,
  { overlapSeconds = 0, secret: given, use = 'receive' }: Wanted,
): Promise<Done> {
  const error = faultOf(sender, use, given);
  if (error !== undefined) return { refused: { code: 'validation_failed', errors: [error] } };
  const name = { sender: sender.name, use };
  if (secrets.source(name) === 'environment') return { refused: fixed(sender, use) };
  const how = { overlapMs: overlapSeconds * 1000, ...(given === undefined ? {} : { secret: given }) };
  const { secret } = await secrets.rotate(name, how);
  await secrets.refresh();
  return { content: { sender: sender.name, use, secret } };
}

function faultOf(
  sender: DeclaredSender,
  use: SecretName['use'],
  secret: string | undefined,
): FieldError | undefined {
  if (use === 'forward' && sender.handOn.kind !== 'forward') {
    return { pointer: '/use', message: `must be receive: messages of ${sender.name} are not forwarded` };
  }
  if (use === 'receive' && !usesSecrets(sender.rule.signature))
    return {
      pointer: '/use',
      message: `${sender.name} signs by a key pair: set its publicKeys or keysUrl in the configuration`,
    };
  const message = secret === undefined ? undefined : refuseSenderSecret(sender, use, secret);
  return message === undefined ? undefined : { pointer: '/secret', message };
}

function fixed({ secretVariable, handOn }: DeclaredSender, use: SecretName['use']): Problem {
  const variable = use === 'forward' && handOn.kind === 'forward' ? handOn.secretVariable : secretVariable;
  return {
    code: 'sender_secret_fixed',
    message: `the environment variable ${variable} sets the secrets of this sender; set it to the new and the old secret, separated by a comma`,
  };
}
