/** Refusals of an application's functions in their own words (model/logic/logic.ts), as problems of the kernel, and those of the kernel that their calls get. */
import { refusalStatuses as statuses } from '../config/actions.ts';
import { ResourceRefused } from '../config/senders.ts';
import { type Problem, statusOf } from '../http/problem.ts';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import type { Refusal, RefusalStatus, Refuse } from '../model/logic/logic.ts';

/** What `refuse` throws: it ends the function, and with it the unit. */
class Refused extends Error {
  override readonly name = 'Refused';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message ?? problem.own?.code ?? problem.code);
    this.problem = problem;
  }
}

const statusDefault = 422;
const pointerGrammar = /^(?:\/.*)?$/s;
const codeGrammar = /^[a-z][a-z0-9_]{0,63}$/;

/** @throws Refused; TypeError for a refusal that is malformed, which is a fault of the application */
export const refuse: Refuse = (refusal) => {
  throw new Refused(problemOf(refusal));
};

/** @param codes those that an action declares, with their statuses where it does; undefined: any @returns its `refuse` */
export function refuseWith(codes: ReadonlyMap<string, number | undefined> | undefined): Refuse {
  if (codes === undefined) return refuse;
  return (refusal) => {
    const { code, status } = (refusal ?? {}) as Partial<Refusal>;
    if (typeof code === 'string' && codeGrammar.test(code) && !codes.has(code))
      throw new TypeError(`refuse got the code ${code}, which the codes of the action do not list`);
    const declared = codes.get(code ?? '');
    if (declared !== undefined && status !== undefined && status !== declared)
      throw new TypeError(
        `the codes of the action give ${code} the status ${declared}, not ${shown(status)}`,
      );
    return refuse(
      declared === undefined || status !== undefined
        ? refusal
        : { ...refusal, status: declared as RefusalStatus },
    );
  };
}

/**
 * The problem of what a function threw: its own refusal, or that of a call that it did not catch. Of the latter only a
 * pointer in the application's own words is passed on: others are about a document that the client did not send.
 * @returns undefined for any other error
 */
export function problemThrown(error: unknown): Problem | undefined {
  if (error instanceof Refused) return error.problem;
  // The words of a fault of the function itself are for its developer, in the log.
  if (!(error instanceof ResourceRefused) || error.code === 'internal') return undefined;
  const { code, status, message, pointer } = error;
  return {
    ...{ code: 'refused_by_application', own: { code, status }, message },
    ...(pointer === undefined ? {} : { errors: [{ pointer, message }] }),
  };
}

function problemOf(refusal: Refusal): Problem {
  const { code, status, message, pointer } = (refusal ?? {}) as Partial<Refusal>;
  if (typeof code !== 'string' || !codeGrammar.test(code)) {
    throw new TypeError(
      `refuse needs a code of lower-case letters, digits and underscores, not ${shown(code)}`,
    );
  }
  if (message !== undefined && typeof message !== 'string')
    throw new TypeError(`the message of a refusal must be a text, not ${shown(message)}`);
  if (pointer !== undefined && (typeof pointer !== 'string' || !pointerGrammar.test(pointer)))
    throw new TypeError(
      `the pointer of a refusal must be a JSON Pointer such as /status, not ${shown(pointer)}`,
    );
  const told = message ?? (isRegistered(code) ? problems[code].message : code.replaceAll('_', ' '));
  const particulars = {
    message: told,
    ...(pointer === undefined ? {} : { errors: [{ pointer, message: told }] }),
  };
  if (isRegistered(code)) {
    if (status !== undefined && status !== problems[code].status) {
      throw new TypeError(`the code ${code} has the status ${problems[code].status}, not ${shown(status)}`);
    }
    return { code: 'refused_by_application', own: { code, status: problems[code].status }, ...particulars };
  }
  const own = { code, status: status ?? statusDefault };
  if (!statuses.has(own.status)) {
    throw new TypeError(
      `the status of a refusal must be one of ${[...statuses].join(', ')}, not ${shown(status)}`,
    );
  }
  return { code: 'refused_by_application', own, ...particulars };
}

function isRegistered(code: string): code is ProblemCode {
  return Object.hasOwn(problems, code);
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}

/** A refusal of the store that concerns what a function wrote, which the client did not ask for. */
export function ofAnotherWrite(
  commit: { readonly outcome: 'taken' | 'dangling' | 'depended-on' },
  table = 'a function',
): Problem {
  const code = {
    taken: 'unique_taken',
    dangling: 'reference_missing',
    'depended-on': 'dependants_exist',
  } as const;
  const refused = code[commit.outcome];
  return { code: refused, message: `${table}: ${problems[refused].message}` };
}

const messageCharactersMax = 1000;

/**
 * Converts a refusal of the kernel (§7) for a handler: its code, and the whole error response in one sentence. A pointer
 * of the application's own is kept beside it.
 */
export function refusalOf(problem: Problem): ResourceRefused {
  const { code, message, own, errors = [] } = problem;
  const text = message ?? problems[code].message;
  const pointer = own === undefined ? undefined : errors[0]?.pointer;
  const faults = errors
    .filter((error) => error.message !== text)
    .map((error) => `${error.pointer === '' ? 'it' : error.pointer} ${error.message}`);
  const whole = faults.length === 0 ? text : `${text}: ${faults.join('; ')}`;
  const told = whole.slice(0, messageCharactersMax);
  return new ResourceRefused(own?.code ?? code, told, statusOf(problem), pointer);
}

/** The same refusal, which names the call: a function makes several. */
export function refusalOfCall(
  { code, message, status, pointer }: ResourceRefused,
  called: string,
): ResourceRefused {
  const told = `${called}: ${message}`.slice(0, messageCharactersMax);
  return new ResourceRefused(code, told, status, pointer);
}

export function refuseCall(code: Problem['code'], message?: string): ResourceRefused {
  return refusalOf(message === undefined ? { code } : { code, message });
}
