/**
 * A clause: one rule of HTTP in a sentence, with its section, and the code that judges it. Its id is stable: reports, the specification
 * and `--only` name it, and an id that goes is not given again.
 */
import type { Visit } from './visit.ts';

export const groups = [
  'methods',
  'negotiation',
  'conditions',
  'patch',
  'query',
  'ranges',
  'caching',
  'problems',
  'authentication',
  'cross-origin',
  'idempotency',
  'interim',
  'upgrade',
  'tunnel',
  'framing',
  'strictness',
  'http2',
  'receiver',
] as const;

export type Group = (typeof groups)[number];

export const verdicts = ['holds', 'fails', 'warning', 'not-applicable'] as const;

export type Verdict = (typeof verdicts)[number];

/** What a judge found; a deviation is a failure or, of a rule that is no "must", a warning. */
export type Finding =
  | { readonly kind: 'holds' }
  | { readonly kind: 'deviates'; readonly why: string }
  | { readonly kind: 'warns'; readonly why: string }
  | { readonly kind: 'cannot-apply'; readonly why: string };

export type Clause = {
  readonly id: string;
  readonly group: Group;
  /** One sentence, true of a server that keeps the rule. */
  readonly title: string;
  /** The standard and its section, such as `RFC 9110 §13.1.1`. */
  readonly section: string;
  /** `must`: what breaks it fails. `should`: what does otherwise gets a warning, because it may have a reason. */
  readonly level: 'must' | 'should';
  /** It creates, changes or deletes; it leaves nothing behind that the server lets it remove. */
  readonly writes?: true;
  readonly judge: (visit: Visit) => Promise<Finding>;
};

export const holds: Finding = { kind: 'holds' };

export function deviates(why: string): Finding {
  return { kind: 'deviates', why };
}

/** A deviation that the standard permits, though it surprises clients. */
export function warns(why: string): Finding {
  return { kind: 'warns', why };
}

export function cannotApply(why: string): Finding {
  return { kind: 'cannot-apply', why };
}

/** @returns `holds` where the condition is true */
export function holdsIf(isTrue: boolean, otherwise: string): Finding {
  return isTrue ? holds : deviates(otherwise);
}

/** The judgement of a finding by the level of the clause. */
export function verdictOf({ level }: Pick<Clause, 'level'>, { kind }: Finding): Verdict {
  if (kind === 'deviates') return level === 'must' ? 'fails' : 'warning';
  if (kind === 'warns') return 'warning';
  return kind === 'holds' ? 'holds' : 'not-applicable';
}
