/**
 * What a test expects of an answer, as a value that stands beside its request. A difference is reported with the request and the whole
 * content that came.
 */
import assert from 'node:assert/strict';

export type Expected = {
  readonly status: number;
  /** Of a problem. */
  readonly code?: string;
  readonly error?: string | RegExp;
  /** Where the faults are that a problem lists, in its order. */
  readonly pointers?: readonly string[];
  /** Header fields, by their names in lower case; undefined: the field is missing. */
  readonly fields?: Readonly<Record<string, string | RegExp | undefined>>;
  /** The whole content, parsed. */
  readonly json?: unknown;
  /** Members of the content, among others; undefined: the member is missing. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** The ids of `items`, in order. */
  readonly ids?: readonly string[];
  readonly body?: string | RegExp;
  readonly contains?: readonly string[];
  readonly lacks?: readonly string[];
};

/** A status alone; a problem with its code and the pointers of its faults; or all that an answer must be. */
export type Expectation = number | readonly [status: number, code: string, ...pointers: string[]] | Expected;

/** As much of an answer as is compared. */
export type Answered = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
};

/** @param request named by the report, such as `GET /health/live` */
export function assertAnswer(answer: Answered, expectation: Expectation, request = 'the request'): void {
  const expected = expectedOf(expectation);
  const found = foundIn(answer, expected);
  try {
    assert.deepEqual(found, expected);
  } catch (error) {
    if (!(error instanceof assert.AssertionError)) throw error;
    const message = `${request} was answered ${answer.status} ${answer.body}\n${error.message}`;
    throw new assert.AssertionError({ message, actual: found, expected, operator: 'deepEqual' });
  }
}

/** The answer that was asked for, which must be as expected. */
export async function answered<A extends Answered>(
  asked: Promise<A> | A,
  expectation: Expectation,
): Promise<A> {
  const answer = await asked;
  assertAnswer(answer, expectation);
  return answer;
}

function expectedOf(expectation: Expectation): Expected {
  if (typeof expectation === 'number') return { status: expectation };
  if (!isProblem(expectation)) return expectation;
  const [status, code, ...pointers] = expectation;
  return pointers.length === 0 ? { status, code } : { status, code, pointers };
}

function isProblem(expectation: object): expectation is readonly [number, string, ...string[]] {
  return Array.isArray(expectation);
}

/** The parts that are expected, as the answer has them. */
function foundIn(answer: Answered, expected: Expected): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(expected).map(([part, wanted]) => [part, partOf(answer, part as keyof Expected, wanted)]),
  );
}

function partOf(answer: Answered, part: keyof Expected, wanted: unknown): unknown {
  const { status, headers, body } = answer;
  switch (part) {
    case 'status':
      return status;
    case 'code':
    case 'error':
      return likeWanted(parsed(body)?.[part], wanted);
    case 'pointers':
      return parsed(body)?.errors?.map(({ pointer }: { readonly pointer: string }) => pointer);
    case 'fields':
      return eachLikeWanted(headers, wanted);
    case 'json':
      return parsed(body);
    case 'members':
      return eachLikeWanted(parsed(body), wanted);
    case 'ids':
      return parsed(body)?.items?.map(({ id }: { readonly id: string }) => id);
    case 'body':
      return likeWanted(body, wanted);
    case 'contains':
      return (wanted as readonly string[]).filter((text) => body.includes(text));
    case 'lacks':
      return (wanted as readonly string[]).filter((text) => !body.includes(text));
    default:
      return part satisfies never;
  }
}

/** A pattern that the value matches stands for it. */
function likeWanted(value: unknown, wanted: unknown): unknown {
  return wanted instanceof RegExp && wanted.test(String(value)) ? wanted : value;
}

function eachLikeWanted(values: Readonly<Record<string, unknown>> | undefined, wanted: unknown): unknown {
  const names = Object.entries(wanted as Readonly<Record<string, unknown>>);
  return Object.fromEntries(names.map(([name, each]) => [name, likeWanted(values?.[name], each)]));
}

// biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
function parsed(body: string): any {
  try {
    return JSON.parse(body);
  } catch {
    // Content that is not JSON has no members, and the report shows it.
    return undefined;
  }
}
