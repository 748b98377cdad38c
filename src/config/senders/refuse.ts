/** What the checks of a sender's declaration have in common: where they put what they find, and how they read members. */
import { isToken } from '../../http/syntax/token.ts';
import { isRecord, kindOf } from '../inspection.ts';
import { suggestion } from '../nearest.ts';

/** Takes the predicate of a sentence whose subject is the sender. */
export type Refuse = (predicate: string) => void;

type Members = Readonly<Record<string, unknown>>;

const headerNameCharactersMax = 128;

/** The object that stands at the place, when it has no members but the known ones; what is wrong is told. */
export function membersOf(
  place: string,
  written: unknown,
  known: ReadonlySet<string>,
  refuse: Refuse,
): Members | undefined {
  if (!isRecord(written)) {
    refuse(`${place} must be an object, not ${kindOf(written)}`);
    return undefined;
  }
  for (const name of Object.keys(written)) {
    if (!known.has(name)) refuse(`${place} has no member "${name}"${suggestion(name, known)}`);
  }
  return written;
}

/** Name of a header field (RFC 9110 §5.1) in lower case; undefined for what is none. */
export function headerNameOf(written: unknown): string | undefined {
  if (typeof written !== 'string' || written.length > headerNameCharactersMax || !isToken(written)) {
    return undefined;
  }
  return written.toLowerCase();
}

export function isText(value: unknown, charactersMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= charactersMax;
}

export function isWhole(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}
