/**
 * Checks how a sender signs (§5.6): the rule of its preset with single parts replaced, or a complete one. A rule that does not sign the body,
 * or checks a time that it does not sign, proves nothing and is refused.
 */
import { Type } from 'typebox';
import {
  type HmacRule,
  type JwtRule,
  type KeyPairRule,
  keyPairs,
  type SignatureRule,
  type TokenRule,
} from '../webhooks/signature/signature-rule.ts';
import { placeholders, withMember } from '../webhooks/signature/signed-content.ts';
import { isRecord, kindOf, suggestion } from './inspection.ts';
import {
  inspectShape,
  isHeaderName,
  listInParts,
  type Reporter,
  textThat,
  textUpTo,
  unshaped,
  wholeWithin,
} from './shape.ts';

type Written = Readonly<Record<string, unknown>>;

const toleranceSecondsMax = 86_400;
const prefixCharactersMax = 32;
const templateCharactersMax = 500;
const parameterCharactersMax = 64;
const claimCharactersMax = 2000;
const namesMax = 32;
/** Labels of a name in lower case, of which the last two are no wildcards. */
const hostPattern = /^(?:(?:\*|[a-z0-9-]+)\.)*[a-z0-9-]+\.[a-z]+$/;
/** The characters of a field value, without leading and trailing spaces. */
const prefixText = /^(?:[!-~]+(?: [!-~]+)*)?$/;

const kinds = ['hmac', ...keyPairs, 'jwt', 'token'] as const;
const neededParts = ['encoding', 'prefix', 'separator', 'signed', 'toleranceSeconds'] as const;
const neededByKeys = ['header', ...neededParts] as const;
const needed = {
  hmac: ['header', 'hash', ...neededParts, 'key'],
  ...{ ed25519: neededByKeys, ecdsa: neededByKeys, rsa: neededByKeys },
} as const;
const optionalParts = [
  'timestamp',
  'id',
  'bodyDigestParameter',
  'signsContent',
  'lines',
  'receiver',
] as const;
const certificateParts = ['certificateUrl', 'certificateHosts'] as const;
const optional = {
  hmac: [...optionalParts, 'asymmetricPrefix'],
  ...{ ed25519: optionalParts, ecdsa: optionalParts, rsa: [...optionalParts, ...certificateParts] },
} as const;

const pointerCharactersMax = 500;
/** RFC 6901 §3, but for the whole body. */
const pointer = /^(?:\/(?:[^~/]|~[01])*)+$/;
/** A header field, or a member of the body. */
const fieldPlace = textThat(
  (written) => isHeaderName(written) || (written.length <= pointerCharactersMax && pointer.test(written)),
  { must: 'must be the name of a header field, or a JSON Pointer such as /signature/value' },
);

const fullPrefix = textThat((prefix) => prefix !== '' && isPrefix(prefix), {
  must: `must be 1 to ${prefixCharactersMax} printable characters`,
});
const timeUnits = ['s', 'ms', 'rfc3339'] as const;
const timeUnit = { unit: Type.Optional(among(...timeUnits)) };
const partShapes = {
  ...unshaped('kind'),
  header: fieldPlace,
  encoding: among('hex', 'base64', 'base64url'),
  separator: among(',', ' ', ';', null),
  id: Type.Optional(fieldPlace),
  timestamp: Type.Optional(
    Type.Union(
      [
        Type.Object({ header: fieldPlace, ...timeUnit }, { additionalProperties: false }),
        Type.Object({ prefix: fullPrefix, ...timeUnit }, { additionalProperties: false }),
      ],
      { must: `must be { header: 'name' } or { prefix: 't=' }, with unit: one of ${timeUnits.join(', ')}` },
    ),
  ),
  prefix: textThat(isPrefix, { must: `must be up to ${prefixCharactersMax} printable characters` }),
  signed: textUpTo(
    templateCharactersMax,
    `must be a text of 1 to ${templateCharactersMax} characters, such as {timestamp}.{body}`,
  ),
  toleranceSeconds: wholeWithin(0, toleranceSecondsMax),
  bodyDigestParameter: Type.Optional(
    textUpTo(parameterCharactersMax, 'must be the name of a parameter of the URL'),
  ),
  signsContent: Type.Optional(Type.Boolean()),
  lines: Type.Optional(
    Type.Array(textUpTo(parameterCharactersMax), {
      ...{ minItems: 1, maxItems: namesMax },
      must: `must be a list of 1 to ${namesMax} names of members`,
    }),
  ),
  receiver: Type.Optional(
    Type.String({
      maxLength: claimCharactersMax,
      must: 'must be the name that the sender has for this receiver',
    }),
  ),
};
const rsaParts = {
  ...partShapes,
  certificateUrl: Type.Optional(fieldPlace),
  certificateHosts: Type.Optional(
    listInParts(
      textThat((host) => hostPattern.test(host), { must: 'must be a host, such as sns.*.amazonaws.com' }),
      { maxItems: namesMax, holds: 'hosts', must: 'must be a list of hosts' },
    ),
  ),
};
const byKeysShape = Type.Object(partShapes);
const shapes = {
  hmac: Type.Object({
    ...partShapes,
    hash: among('sha256', 'sha512', 'sha1'),
    key: among('text', 'base64', 'hex'),
    asymmetricPrefix: Type.Optional(fullPrefix),
  }),
  ...{ ed25519: byKeysShape, ecdsa: byKeysShape, rsa: Type.Object(rsaParts) },
};
/** The members that a preset leaves to the declaration. */
const writtenByKeys = Type.Object(unshaped(...Object.keys(partShapes)));
const writtenShapes = {
  hmac: Type.Object(unshaped(...Object.keys(shapes.hmac.properties))),
  ...{ ed25519: writtenByKeys, ecdsa: writtenByKeys, rsa: Type.Object(unshaped(...Object.keys(rsaParts))) },
};
const tokenShape = Type.Object({
  ...unshaped('kind', 'header'),
  prefix: Type.Optional(textUpTo(prefixCharactersMax)),
});

const claimText = Type.String({
  maxLength: claimCharactersMax,
  must: `must be a text of at most ${claimCharactersMax} characters`,
});
const claimTexts = Type.Optional(
  Type.Union([claimText, Type.Array(claimText, { minItems: 1, maxItems: namesMax })], {
    must: `must be a text or a list of 1 to ${namesMax}`,
  }),
);
const jwtShape = Type.Object({
  ...unshaped('kind'),
  header: fieldPlace,
  prefix: Type.Optional(textUpTo(prefixCharactersMax)),
  algorithm: among('HS256', 'RS256', 'ES256', 'EdDSA'),
  issuer: claimTexts,
  audience: claimTexts,
  subject: Type.Optional(claimText),
  email: Type.Optional(claimText),
  contentDigest: Type.Optional(
    Type.Object(
      { claim: textUpTo(parameterCharactersMax), encoding: among('hex', 'base64', 'base64url') },
      { additionalProperties: false },
    ),
  ),
  signsContent: Type.Optional(Type.Boolean()),
  toleranceSeconds: wholeWithin(0, toleranceSecondsMax),
  ...unshaped('keysUrl'),
});
const jwtNeeded = ['header', 'algorithm', 'toleranceSeconds'] as const;

function among(...values: readonly unknown[]) {
  const must = `must be one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  return Type.Refine(Type.Unknown({ must }), (written) => values.includes(written));
}

/** @param preset the rule whose parts are replaced; undefined: the written rule must be complete */
export function inspectSignature(
  written: unknown,
  preset: SignatureRule | undefined,
  refuse: Reporter,
): SignatureRule | undefined {
  if (written === undefined) return preset;
  if (!isRecord(written)) {
    refuse(`signature must be an object, not ${kindOf(written)}`);
    return undefined;
  }
  const { kind = preset?.kind ?? 'hmac' } = written;
  if (kind === 'token') return inspectToken(written, preset, refuse);
  if (kind === 'jwt') return inspectJwt(written, preset?.kind === 'jwt' ? preset : undefined, refuse);
  if (kind === 'hmac')
    return inspectSigning(kind, written, preset?.kind === kind ? preset : undefined, refuse);
  const byKeys = keyPairs.find((each) => each === kind);
  if (byKeys !== undefined)
    return inspectSigning(byKeys, written, preset?.kind === byKeys ? preset : undefined, refuse);
  const meant = typeof kind === 'string' ? suggestion(kind, kinds) : '';
  refuse(`signature.kind must be one of ${kinds.join(', ')}${meant}`);
  return undefined;
}

function inspectToken(
  written: Written,
  preset: SignatureRule | undefined,
  refuse: Reporter,
): TokenRule | undefined {
  const { prefix } = inspectShape(tokenShape, written, 'signature', refuse) ?? {};
  const base = preset?.kind === 'token' ? preset : undefined;
  const header = inspectShape(fieldPlace, written.header ?? base?.header, 'signature.header', refuse);
  if (header === undefined) return undefined;
  const before = prefix ?? base?.prefix;
  return { kind: 'token', header: placeOf(header), ...(before === undefined ? {} : { prefix: before }) };
}

/** A token proves nothing to this receiver unless a claim is about it, or about the content. */
function inspectJwt(written: Written, preset: JwtRule | undefined, refuse: Reporter): JwtRule | undefined {
  let isSound = true;
  const report: Reporter = (sentence) => {
    isSound = false;
    refuse(sentence);
  };
  const rule: Record<string, unknown> = { ...preset, ...written, kind: 'jwt' };
  const missing = jwtNeeded.filter((name) => rule[name] === undefined);
  if (missing.length > 0) {
    refuse(`signature lacks ${missing.join(', ')}; a rule of the kind jwt needs ${jwtNeeded.join(', ')}`);
    return undefined;
  }
  const sound = inspectShape(jwtShape, rule, 'signature', report) as Partial<JwtRule> | undefined;
  if (sound === undefined || !isSound) return undefined;
  const { audience, subject, contentDigest, signsContent, header = '' } = sound;
  if (audience === undefined && subject === undefined && contentDigest === undefined)
    report(
      'signature must have an audience, a subject or a contentDigest: Comity would accept every token of the sender',
    );
  if (contentDigest === undefined && signsContent !== false)
    report(
      'signature must have a contentDigest: a token without one does not prove the content (signsContent: false takes it from a sender that signs none)',
    );
  if (contentDigest !== undefined && signsContent === false)
    report('signature.signsContent is false, but contentDigest names the claim that covers the content');
  return isSound ? { ...(rule as JwtRule), header: placeOf(header) } : undefined;
}

const claimMeanings = {
  issuer: 'the value of iss in its tokens',
  audience: 'the value of aud in its tokens',
  subject: 'the value of sub in its tokens',
  email: 'the address of the service account that signs',
} as const;

/** Refuses a rule whose preset leaves to the declaration what only its author knows. */
export function inspectNamed(rule: SignatureRule, refuse: Reporter): void {
  if ('receiver' in rule && rule.receiver === '')
    refuse(
      'signature.receiver must be set: the name that the sender has for this receiver, such as the ARN of a topic of SNS, or the id of a webhook of PayPal',
    );
  if (rule.kind !== 'jwt') return;
  for (const [name, meaning] of Object.entries(claimMeanings) as [keyof typeof claimMeanings, string][]) {
    if ([rule[name]].flat().includes(''))
      refuse(
        `signature.${name} must be set: ${meaning}, without which messages for others would be accepted`,
      );
  }
}

type SigningRule = HmacRule | KeyPairRule;

function inspectSigning(
  kind: SigningRule['kind'],
  written: Written,
  preset: SigningRule | undefined,
  refuse: Reporter,
): SigningRule | undefined {
  inspectShape(writtenShapes[kind], written, 'signature', refuse);
  const rule = merged(kind, written, preset);
  const missing = needed[kind].filter((name) => rule[name] === undefined);
  if (missing.length > 0) {
    refuse(
      `signature lacks ${missing.join(', ')}; add them, or set a preset such as "hmac", which has a default for each`,
    );
    return undefined;
  }
  let isSound = true;
  const report: Reporter = (sentence) => {
    isSound = false;
    refuse(sentence);
  };
  const {
    header = '',
    id,
    timestamp,
    signed,
    toleranceSeconds,
    bodyDigestParameter,
  } = inspectShape(shapes[kind], rule, 'signature', report) ?? {};
  const fault: Reporter = (predicate) => report(`signature.${predicate}`);
  if (timestamp !== undefined && 'prefix' in timestamp && rule.separator === null)
    fault('timestamp is in the field of the signatures, which needs a separator');
  inspectPrefixes(rule, timestamp, fault);
  if (signed !== undefined) inspectSigned(signed, { ...rule, bodyDigestParameter }, fault);
  if (
    toleranceSeconds !== undefined &&
    rule.timestamp === undefined &&
    Number(written.toleranceSeconds ?? 0) > 0
  )
    fault('toleranceSeconds has no effect without a signed timestamp');
  if ((rule.certificateUrl === undefined) !== (rule.certificateHosts === undefined))
    fault('certificateUrl and certificateHosts are needed together');
  if (!isSound) return undefined;
  return {
    ...(rule as SigningRule),
    header: placeOf(header),
    id: id === undefined ? undefined : placeOf(id),
    timestamp: (timestamp !== undefined && 'header' in timestamp
      ? { ...timestamp, header: placeOf(timestamp.header) }
      : timestamp) as SigningRule['timestamp'],
  };
}

/** The names of header fields have no case, those of members do. */
function placeOf(written: string): string {
  return written.startsWith('/') ? written : written.toLowerCase();
}

/** A written `undefined` removes an optional member only. */
function merged(
  kind: SigningRule['kind'],
  written: Written,
  preset: SigningRule | undefined,
): Record<string, unknown> {
  const rule: Record<string, unknown> = { ...preset, kind };
  for (const name of needed[kind]) if (written[name] !== undefined) rule[name] = written[name];
  for (const name of optional[kind]) if (Object.hasOwn(written, name)) rule[name] = written[name];
  return rule;
}

/** The prefixes of one field must distinguish its parts. */
function inspectPrefixes(rule: Written, timestamp: object | undefined, fault: Reporter): void {
  const { prefix, asymmetricPrefix, separator } = rule;
  const beside = timestamp !== undefined && 'prefix' in timestamp ? timestamp.prefix : undefined;
  const beginnings = [
    ['prefix', prefix],
    ['asymmetricPrefix', asymmetricPrefix],
    ['timestamp.prefix', beside],
  ].filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  for (const [name, text] of beginnings) {
    if (typeof separator === 'string' && text.includes(separator)) {
      fault(`${name} contains the separator, at which Comity splits the field`);
    }
    const other = beginnings.find(([each, start]) => each !== name && text.startsWith(start));
    if (other !== undefined) fault(`${name} begins like ${other[0]}, and one could be taken for the other`);
  }
}

function isPrefix(prefix: string): boolean {
  return prefix.length <= prefixCharactersMax && prefixText.test(prefix);
}

const inBraces = /\{([^{}]*)\}/g;

/**
 * Checks which parts a sender signs, and that the signature covers the body.
 * @param rule the other members, which may be invalid
 */
function inspectSigned(signed: string, rule: Written, fault: Reporter): void {
  const names = new Set([...signed.matchAll(inBraces)].map(([, name = '']) => name));
  for (const name of names) {
    if (!name.startsWith('/') && !placeholders.some((known) => known === name)) {
      fault(`signed holds {${name}}, which is not a placeholder${suggestion(name, placeholders)}`);
    }
  }
  const rest = signed.replaceAll(inBraces, '');
  if (rest.includes('{') || rest.includes('}')) fault('signed has a brace without the other');
  const signsContent = names.has('body') || names.has('form') || names.has('lines');
  if (!signsContent && rule.signsContent !== false)
    fault(
      'signed must hold {body} or {form}: a signature without the content does not prove it (signsContent: false takes it from a sender that signs none)',
    );
  if (signsContent && rule.signsContent === false)
    fault('signsContent is false, but signed holds the content');
  if (names.has('body') && names.has('form'))
    fault('signed must have either {body} or {form}, not both: each is the whole body');
  else if (names.has('lines') && (names.has('body') || names.has('form')))
    fault('signed must have either {lines} or the whole body, not both');
  for (const name of withMember) {
    if (names.has(name) && rule[name] === undefined) {
      const isField = name === 'timestamp' || name === 'id';
      fault(
        `signed holds {${name}}, which needs ${isField ? `${name} to name its field` : `the member ${name}`}`,
      );
    } else if (!names.has(name) && rule[name] !== undefined) {
      fault(`${name} is declared, but signed does not hold {${name}}: an attacker could change it`);
    }
  }
  if (rule.bodyDigestParameter !== undefined && (!names.has('url') || !names.has('form')))
    fault('bodyDigestParameter has no effect unless {url} and {form} are signed');
}
