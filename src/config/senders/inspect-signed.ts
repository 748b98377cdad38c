/** Checks the text that a sender is said to sign: what it is made of, and that it proves something. */
import { suggestion } from '../nearest.ts';
import { isText, type Refuse } from './refuse.ts';

const templateCharactersMax = 500;
const parameterCharactersMax = 64;
const placeholders = ['body', 'timestamp', 'id', 'url', 'form'] as const;
const inBraces = /\{([^{}]*)\}/g;

/** @param rule where each member is as it was written, sound or not */
export function inspectSigned(rule: Readonly<Record<string, unknown>>, fault: Refuse): void {
  const { signed } = rule;
  if (!isText(signed, templateCharactersMax)) {
    fault(`signed must be a text of 1 to ${templateCharactersMax} characters, such as {timestamp}.{body}`);
    return;
  }
  const names = new Set([...signed.matchAll(inBraces)].map(([, name = '']) => name));
  for (const name of names) {
    if (!placeholders.some((known) => known === name)) {
      fault(`signed holds {${name}}, which stands for nothing${suggestion(name, placeholders)}`);
    }
  }
  const rest = signed.replaceAll(inBraces, '');
  if (rest.includes('{') || rest.includes('}')) fault('signed has a brace without the other');
  if (!names.has('body') && !names.has('form')) {
    fault('signed must hold {body} or {form}: who does not sign what is said proves nothing of it');
  }
  if (names.has('body') && names.has('form'))
    fault('signed may hold one of {body} and {form}: each is the whole body');
  for (const name of ['timestamp', 'id'] as const) {
    if (names.has(name) && rule[name] === undefined) {
      fault(`signed holds {${name}}, which needs ${name} to say where it stands`);
    } else if (!names.has(name) && rule[name] !== undefined) {
      fault(`${name} is there, but signed does not hold {${name}}: anybody could change it`);
    }
  }
  const { bodyDigestParameter } = rule;
  if (bodyDigestParameter === undefined) return;
  if (!isText(bodyDigestParameter, parameterCharactersMax)) {
    fault('bodyDigestParameter must be the name of a parameter of the URL');
  } else if (!names.has('url') || !names.has('form')) {
    fault('bodyDigestParameter means nothing where {url} and {form} are not signed');
  }
}
