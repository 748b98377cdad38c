/**
 * One fact of security as a row of the audit trail: the representation that `/audit` serves. Members without a value are absent, texts
 * are bounded, and nothing that looks like a credential gets in, whatever a caller passed by mistake: the trail is kept for a year and
 * stands in every backup.
 */
import { searchText } from '../model/collection.ts';
import type { NextRow } from '../store/store.ts';
import type { AuditFact } from './audit-fact.ts';

/** What a search in the trail looks at; the collection that serves it must say the same. */
export const auditSearchFields: readonly string[] = ['type', 'actor', 'subject', 'address'];

/** Ids of principals of other issuers are the longest. */
const idCharactersMax = 255;
const textCharactersMax = 200;
const membersMax = 16;
const itemsMax = 32;

/** @param at when it happened, milliseconds since the epoch */
export function auditRow(id: string, fact: AuditFact, at: number): NextRow {
  const time = new Date(at).toISOString();
  const detail = detailOf(fact.detail);
  const fields: Record<string, unknown> = {
    type: fact.type,
    ...textMember('actor', fact.actor),
    ...textMember('subject', fact.subject),
    ...textMember('address', fact.address),
    ...(detail === undefined ? {} : { detail }),
  };
  return {
    doc: JSON.stringify({ id, ...fields, createdAt: time, updatedAt: time }),
    owner: null,
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
    search: searchText(auditSearchFields, fields),
    references: [],
  };
}

function textMember(name: string, text: string | null): Readonly<Record<string, string>> {
  if (text === null || isCredential(text)) return {};
  // The id of a principal of another issuer, `<issuer>|<sub>`, may be long and random.
  return longRandom.test(text) && !text.includes('|') ? {} : { [name]: bounded(text, idCharactersMax) };
}

function detailOf(detail: AuditFact['detail']): Readonly<Record<string, unknown>> | undefined {
  const members = Object.entries(detail ?? {}).flatMap(([name, value]) => {
    const kept = memberName.test(name) ? detailValue(value) : undefined;
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members.slice(0, membersMax));
}

/** The value as it may be kept; undefined: it may not. */
function detailValue(value: unknown): unknown {
  if (typeof value === 'string') return detailText(value);
  if (Array.isArray(value)) {
    return value
      .slice(0, itemsMax)
      .flatMap((item) => (typeof item === 'string' ? (detailText(item) ?? []) : []));
  }
  return typeof value === 'boolean' || Number.isFinite(value) ? value : undefined;
}

function detailText(text: string): string | undefined {
  return isCredential(text) || longRandom.test(text) ? undefined : bounded(text, textCharactersMax);
}

/** Keys (but not the few characters that tell keys apart), tokens, cookies, fields that carry them, password hashes, private keys. */
const credential =
  /(?:\b(?:[sp]k|rt|whsec)_\S{5,}|\bses_\w{26}\.|\beyJ[\w-]{2,}|\b(?:basic|bearer|api-?key)\s+\S|\$argon2|-----BEGIN)/i;
/** Our ids have 30 characters at most, 128 bits in hex have 32, 256 bits in base64url 43. */
const longRandom = /[\w~+-]{32,}/;
const memberName = /^[a-z][A-Za-z0-9]{0,39}$/;
/** PostgreSQL takes no NUL, and a line of a log or a table no line break. */
const controls = /\p{Cc}/gu;

function isCredential(text: string): boolean {
  return credential.test(text);
}

/** A surrogate alone is no character, such as half of one that was cut. */
function bounded(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax).toWellFormed().replace(controls, ' ');
}
