/**
 * Checks how a sender signs (§5.6): the rule of its preset with single parts replaced, or a complete one. A rule that does not sign the body,
 * or checks a time that it does not sign, proves nothing and is refused.
 */
import type { HmacRule, SignatureRule, TokenRule } from '../../webhooks/signature/signature-rule.ts';
import { isRecord, kindOf } from '../inspection.ts';
import { suggestion } from '../nearest.ts';
import { headerNameOf, isText, isWhole, membersOf, type Refuse } from './refuse.ts';

type Written = Readonly<Record<string, unknown>>;

const toleranceSecondsMax = 86_400;
const prefixCharactersMax = 32;
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
const hmacMembers: ReadonlySet<string> = new Set<keyof HmacRule>(['kind', ...needed, ...optional]);
const tokenMembers: ReadonlySet<string> = new Set<keyof TokenRule>(['kind', 'header']);
const choices = {
  hash: ['sha256', 'sha512', 'sha1'],
  encoding: ['hex', 'base64'],
  separator: [',', ' ', null],
  key: ['text', 'base64'],
} as const;

/** @param preset the rule whose parts are replaced; undefined: the written rule must be complete */
export function inspectSignature(
  written: unknown,
  preset: SignatureRule | undefined,
  refuse: Refuse,
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
  refuse: Refuse,
): TokenRule | undefined {
  membersOf('signature', written, tokenMembers, refuse);
  const header = headerNameOf(written.header ?? (preset?.kind === 'token' ? preset.header : undefined));
  if (header === undefined) refuse('signature.header must be the name of a header field');
  return header === undefined ? undefined : { kind: 'token', header };
}

function inspectHmac(written: Written, preset: HmacRule | undefined, refuse: Refuse): HmacRule | undefined {
  membersOf('signature', written, hmacMembers, refuse);
  const rule = merged(written, preset);
  const missing = needed.filter((name) => rule[name] === undefined);
  if (missing.length > 0) {
    refuse(
      `signature lacks ${missing.join(', ')}; add them, or set a preset such as "hmac", which has a default for each`,
    );
    return undefined;
  }
  let sound = true;
  const fault: Refuse = (predicate) => {
    sound = false;
    refuse(`signature.${predicate}`);
  };
  const header = headerNameOf(rule.header);
  if (header === undefined) fault('header must be the name of a header field');
  for (const [name, values] of Object.entries(choices)) {
    if (!(values as readonly unknown[]).includes(rule[name])) {
      fault(`${name} must be one of ${values.map((value) => JSON.stringify(value)).join(', ')}`);
    }
  }
  const id = rule.id === undefined ? undefined : headerNameOf(rule.id);
  if (rule.id !== undefined && id === undefined) fault('id must be the name of a header field');
  const timestamp = inspectTimestamp(rule, fault);
  inspectPrefixes(rule, timestamp, fault);
  inspectSigned(rule, fault);
  inspectTolerance(rule, written, fault);
  if (!sound) return undefined;
  // The code above checked each member.
  return { ...rule, header, id, timestamp } as HmacRule;
}

/** A written `undefined` removes an optional member only. */
function merged(written: Written, preset: HmacRule | undefined): Record<string, unknown> {
  const rule: Record<string, unknown> = { ...preset, kind: 'hmac' };
  for (const name of needed) if (written[name] !== undefined) rule[name] = written[name];
  for (const name of optional) if (Object.hasOwn(written, name)) rule[name] = written[name];
  return rule;
}

function inspectTimestamp({ timestamp, separator }: Written, fault: Refuse): HmacRule['timestamp'] {
  if (timestamp === undefined) return undefined;
  const [[kind, value] = [], ...others] = isRecord(timestamp) ? Object.entries(timestamp) : [];
  if (others.length === 0 && kind === 'header') {
    const header = headerNameOf(value);
    if (header !== undefined) return { header };
  } else if (others.length === 0 && kind === 'prefix' && isPrefix(value) && value !== '') {
    if (separator === null) fault('timestamp is in the field of the signatures, which needs a separator');
    return { prefix: value };
  }
  fault("timestamp must be { header: 'name' } or { prefix: 't=' }");
  return undefined;
}

/** The prefixes of one field must distinguish its parts. */
function inspectPrefixes(rule: Written, timestamp: HmacRule['timestamp'], fault: Refuse): void {
  const { prefix, asymmetricPrefix, separator } = rule;
  if (!isPrefix(prefix)) fault(`prefix must be up to ${prefixCharactersMax} printable characters`);
  if (asymmetricPrefix !== undefined && (!isPrefix(asymmetricPrefix) || asymmetricPrefix === '')) {
    fault(`asymmetricPrefix must be 1 to ${prefixCharactersMax} printable characters`);
  }
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

function inspectTolerance(rule: Written, written: Written, fault: Refuse): void {
  const { toleranceSeconds, timestamp } = rule;
  if (!isWhole(toleranceSeconds, 0, toleranceSecondsMax)) {
    fault(`toleranceSeconds must be a whole number from 0 to ${toleranceSecondsMax}`);
  } else if (timestamp === undefined && Number(written.toleranceSeconds ?? 0) > 0) {
    fault('toleranceSeconds has no effect without a signed timestamp');
  }
}

function isPrefix(value: unknown): value is string {
  return typeof value === 'string' && value.length <= prefixCharactersMax && prefixText.test(value);
}

const templateCharactersMax = 500;
const parameterCharactersMax = 64;
const placeholders = ['body', 'timestamp', 'id', 'url', 'form'] as const;
const inBraces = /\{([^{}]*)\}/g;

/**
 * Checks which parts a sender signs, and that the signature covers the body.
 * @param rule its members as written, valid or not
 */
function inspectSigned(rule: Readonly<Record<string, unknown>>, fault: Refuse): void {
  const { signed } = rule;
  if (!isText(signed, templateCharactersMax)) {
    fault(`signed must be a text of 1 to ${templateCharactersMax} characters, such as {timestamp}.{body}`);
    return;
  }
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
  const { bodyDigestParameter } = rule;
  if (bodyDigestParameter === undefined) return;
  if (!isText(bodyDigestParameter, parameterCharactersMax)) {
    fault('bodyDigestParameter must be the name of a parameter of the URL');
  } else if (!names.has('url') || !names.has('form')) {
    fault('bodyDigestParameter has no effect unless {url} and {form} are signed');
  }
}
