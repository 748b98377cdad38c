/**
 * Refusals and their bodies: the plain form of §2.2, and RFC 9457.
 */
import { type ProblemCode, problems } from './problem-registry.ts';

/** One fault in the content, located by a JSON Pointer (RFC 6901). */
export type FieldError = { readonly pointer: string; readonly message: string };

/** A refusal and its particulars; `context` becomes members of the body beside `error` and `code`. */
export type Problem = {
  readonly code: ProblemCode;
  readonly message?: string;
  readonly errors?: readonly FieldError[];
  /** The code of each error, for reports that list errors by themselves. Absent: that of the refusal. */
  readonly errorCodes?: readonly ProblemCode[];
  readonly context?: Readonly<
    Record<string, string | number | boolean | null | readonly (string | object)[]>
  >;
  /** The code and the status that an application's function chose; `code` is `refused_by_application`. */
  readonly own?: { readonly code: string; readonly status: number };
};

export function problemStatus(code: ProblemCode): number {
  return problems[code].status;
}

export function statusOf({ code, own }: Problem): number {
  return own?.status ?? problemStatus(code);
}

export function messageOf({ code, message }: Problem): string {
  return message ?? problems[code].message;
}

export function codeOf({ code, own }: Problem): string {
  return own?.code ?? code;
}

/** The body of §2.2: `{"error", "code", ...context, "errors"?}`. */
export function problemBody(problem: Problem): string {
  return JSON.stringify(members(problem));
}

/** The same members in the form of RFC 9457. `type` refers to the code's entry in the reference. @param root before every path */
export function problemDetailsBody(problem: Problem, root = ''): string {
  const entry = problems[problem.code];
  return JSON.stringify({
    type: `${root}/docs/errors#${problem.code}`,
    title: entry.message,
    status: statusOf(problem),
    detail: messageOf(problem),
    ...members(problem),
  });
}

function members(problem: Problem): Record<string, unknown> {
  return {
    error: messageOf(problem),
    code: codeOf(problem),
    ...problem.context,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
  };
}
