/**
 * Checks how a sender signs (§5.6): the rule of its preset with single parts replaced, or a complete one. A rule that does not sign the body,
 * or checks a time that it does not sign, proves nothing and is refused.
 */
import { Type } from 'typebox';
import type { HmacRule, SignatureRule, TokenRule } from '../webhooks/signature/signature-rule.ts';
import { isRecord, kindOf, suggestion } from './inspection.ts';
import {
  headerNameShape,
  inspectShape,
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
/** The characters of a field value, without leading and trailing spaces. */
const prefixText = /^(?:[!-~]+(?: [!-~]+)*)?$/;

const kinds = ['hmac', 'token'] as const;
const needed = [
  'header',
  'hash',
  'encoding',
  'prefix',
  'separator',
  'signed',
  'key',
  'toleranceSeconds',
] as const;
const optional = ['timestamp', 'id', 'asymmetricPrefix', 'bodyDigestParameter'] as const;

const fullPrefix = textThat((prefix) => prefix !== '' && isPrefix(prefix), {
  must: `must be 1 to ${prefixCharactersMax} printable characters`,
});
const hmacShape = Type.Object({
  ...unshaped('kind'),
  header: headerNameShape,
  hash: among('sha256', 'sha512', 'sha1'),
  encoding: among('hex', 'base64'),
  separator: among(',', ' ', null),
  key: among('text', 'base64'),
  id: Type.Optional(headerNameShape),
  timestamp: Type.Optional(
    Type.Union(
      [
        Type.Object({ header: headerNameShape }, { additionalProperties: false }),
        Type.Object({ prefix: fullPrefix }, { additionalProperties: false }),
      ],
      { must: "must be { header: 'name' } or { prefix: 't=' }" },
    ),
  ),
  prefix: textThat(isPrefix, { must: `must be up to ${prefixCharactersMax} printable characters` }),
  asymmetricPrefix: Type.Optional(fullPrefix),
  signed: textUpTo(
    templateCharactersMax,
    `must be a text of 1 to ${templateCharactersMax} characters, such as {timestamp}.{body}`,
  ),
  toleranceSeconds: wholeWithin(0, toleranceSecondsMax),
  bodyDigestParameter: Type.Optional(
    textUpTo(parameterCharactersMax, 'must be the name of a parameter of the URL'),
  ),
});
/** The members that a preset leaves to the declaration. */
const writtenShape = Type.Object(unshaped(...Object.keys(hmacShape.properties)));
const tokenShape = Type.Object(unshaped('kind', 'header'));

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
  if (kind === 'hmac') return inspectHmac(written, preset?.kind === 'hmac' ? preset : undefined, refuse);
  const meant = typeof kind === 'string' ? suggestion(kind, kinds) : '';
  refuse(`signature.kind must be one of ${kinds.join(', ')}${meant}`);
  return undefined;
}

function inspectToken(
  written: Written,
  preset: SignatureRule | undefined,
  refuse: Reporter,
): TokenRule | undefined {
  inspectShape(tokenShape, written, 'signature', refuse);
  const name = written.header ?? (preset?.kind === 'token' ? preset.header : undefined);
  const header = inspectShape(headerNameShape, name, 'signature.header', refuse);
  return header === undefined ? undefined : { kind: 'token', header: header.toLowerCase() };
}

function inspectHmac(written: Written, preset: HmacRule | undefined, refuse: Reporter): HmacRule | undefined {
  inspectShape(writtenShape, written, 'signature', refuse);
  const rule = merged(written, preset);
  const missing = needed.filter((name) => rule[name] === undefined);
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
  } = inspectShape(hmacShape, rule, 'signature', report) ?? {};
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
  if (!isSound) return undefined;
  return {
    ...(rule as HmacRule),
    header: header.toLowerCase(),
    id: id?.toLowerCase(),
    timestamp:
      timestamp !== undefined && 'header' in timestamp
        ? { header: timestamp.header.toLowerCase() }
        : timestamp,
  };
}

/** A written `undefined` removes an optional member only. */
function merged(written: Written, preset: HmacRule | undefined): Record<string, unknown> {
  const rule: Record<string, unknown> = { ...preset, kind: 'hmac' };
  for (const name of needed) if (written[name] !== undefined) rule[name] = written[name];
  for (const name of optional) if (Object.hasOwn(written, name)) rule[name] = written[name];
  return rule;
}

/** The prefixes of one field must distinguish its parts. */
function inspectPrefixes(rule: Written, timestamp: HmacRule['timestamp'], fault: Reporter): void {
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

const placeholders = ['body', 'timestamp', 'id', 'url', 'form'] as const;
const inBraces = /\{([^{}]*)\}/g;

/**
 * Checks which parts a sender signs, and that the signature covers the body.
 * @param rule the other members, which may be invalid
 */
function inspectSigned(signed: string, rule: Written, fault: Reporter): void {
  const names = new Set([...signed.matchAll(inBraces)].map(([, name = '']) => name));
  for (const name of names) {
    if (!placeholders.some((known) => known === name)) {
      fault(`signed holds {${name}}, which is not a placeholder${suggestion(name, placeholders)}`);
    }
  }
  const rest = signed.replaceAll(inBraces, '');
  if (rest.includes('{') || rest.includes('}')) fault('signed has a brace without the other');
  if (!names.has('body') && !names.has('form')) {
    fault('signed must hold {body} or {form}: a signature without the content does not prove it');
  }
  if (names.has('body') && names.has('form'))
    fault('signed must have either {body} or {form}, not both: each is the whole body');
  for (const name of ['timestamp', 'id'] as const) {
    if (names.has(name) && rule[name] === undefined) {
      fault(`signed holds {${name}}, which needs ${name} to name its field`);
    } else if (!names.has(name) && rule[name] !== undefined) {
      fault(`${name} is declared, but signed does not hold {${name}}: an attacker could change it`);
    }
  }
  if (rule.bodyDigestParameter !== undefined && (!names.has('url') || !names.has('form')))
    fault('bodyDigestParameter has no effect unless {url} and {form} are signed');
}
