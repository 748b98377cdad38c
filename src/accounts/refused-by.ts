/** The reason why an operation on an account was refused, as the action words it. */
import type { Allowance } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Done } from '../kernel/action.ts';

export type Refusal = { readonly problem: ProblemCode; readonly allowance?: Allowance };

export function refusedBy(refusal: Refusal): Done {
  const refused = { code: refusal.problem };
  return refusal.allowance === undefined ? { refused } : { refused, allowance: refusal.allowance };
}

/** One member of the content is at fault. @param pointer such as `/password` */
export function refusedField(pointer: string, message: string): Done {
  return { refused: { code: 'validation_failed', errors: [{ pointer, message }] } };
}
