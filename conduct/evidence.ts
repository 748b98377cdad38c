/** Exchanges as evidence: the request as it was sent and its answer, of bounded length and without credentials. */
import type { Answer } from './answer.ts';
import type { Outcome } from './connection.ts';

export type Exchange = {
  /** The request as it was sent, up to 2,000 characters. */
  readonly request: string;
  /** The answer, or a sentence where none came. */
  readonly answer: string;
};

const shownCharacters = 2000;
const secretCharactersMin = 4;

/** @param credentials values of fields, which stand in no report */
export function evidenceOf(request: string, outcome: Outcome, credentials: readonly string[]): Exchange {
  const secrets = credentials
    .flatMap((value) => [value, ...value.split(' ').slice(1)])
    .filter((value) => value.length >= secretCharactersMin);
  const black = (text: string): string =>
    secrets.reduce((rest, value) => rest.replaceAll(value, '***'), text);
  return { request: shown(black(request)), answer: shown(black(textOf(outcome))) };
}

function textOf(outcome: Outcome): string {
  if ('none' in outcome) return outcome.none;
  const { version, status, reason, fields, content, interim } = outcome;
  const heads = [
    ...interim.map((each) => `${version} ${each.status}\n${fieldLines(each.fields)}\n`),
    `${version} ${status} ${reason}\n${fieldLines(fields)}`,
  ];
  return `${heads.join('\n')}\n${content.toString('utf8')}`;
}

function fieldLines(fields: Answer['fields']): string {
  return fields.map(([name, value]) => `${name}: ${value}\n`).join('');
}

function shown(text: string): string {
  const written = text.replaceAll('\r\n', '\n');
  return written.length > shownCharacters
    ? `${written.slice(0, shownCharacters)} ... (${written.length} characters)`
    : written;
}
