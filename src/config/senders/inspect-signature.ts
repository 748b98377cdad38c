/**
 * Checks how a sender is said to sign (§5.6): the rule of its preset with single parts replaced, or a whole one. A rule that does not sign
 * the body, or keeps a window by a time that it does not sign, is refused: it would prove nothing.
 */
import type { HmacRule, SignatureRule, TokenRule } from '../../webhooks/signature/signature-rule.ts';
import { isRecord, kindOf } from '../inspection.ts';
import { suggestion } from '../nearest.ts';
import { inspectSigned } from './inspect-signed.ts';
import { headerNameOf, isWhole, membersOf, type Refuse } from './refuse.ts';

type Written = Readonly<Record<string, unknown>>;

const toleranceSecondsMax = 86_400;
const prefixCharactersMax = 32;
/** What a field can hold, without the spaces that a reader of header fields takes away. */
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

/** @param preset what parts are replaced of; undefined: the rule must be whole */
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
    refuse(`signature lacks ${missing.join(', ')}; with a preset, such as "hmac", it need not be whole`);
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
  // Each member was looked at above.
  return { ...rule, header, id, timestamp } as HmacRule;
}

/** An `undefined` that is written takes away what may be missing, and nothing else. */
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

/** What a part of the field begins with must tell what it is. */
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
      fault(`${name} holds the separator, at which it would be cut`);
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
    fault('toleranceSeconds means nothing without a timestamp that is signed');
  }
}

function isPrefix(value: unknown): value is string {
  return typeof value === 'string' && value.length <= prefixCharactersMax && prefixText.test(value);
}
