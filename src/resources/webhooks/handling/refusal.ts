/** A refusal of the kernel (§7) as a handler gets it: its code, and everything that an error answer would say in one sentence. */
import { ResourceRefused } from '../../../config/handler.ts';
import type { Problem } from '../../../http/problem.ts';
import { problems } from '../../../http/problem-registry.ts';

const messageCharactersMax = 1000;

export function refusalOf({ code, message, errors = [] }: Problem): ResourceRefused {
  const told = message ?? problems[code].message;
  const faults = errors.map((error) => `${error.pointer === '' ? 'it' : error.pointer} ${error.message}`);
  const whole = faults.length === 0 ? told : `${told}: ${faults.join('; ')}`;
  return new ResourceRefused(code, whole.slice(0, messageCharactersMax));
}

export function refuse(code: Problem['code'], message?: string): ResourceRefused {
  return refusalOf(message === undefined ? { code } : { code, message });
}
