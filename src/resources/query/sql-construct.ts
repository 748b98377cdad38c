/** What a piece of SQL that is not taken is called in the message that refuses it, and the literals that are taken. */
import type { Expr } from 'pgsql-ast-parser';
import { cap } from './faults.ts';

export type Literal = { readonly value: string | number | boolean | null };

/** The value of a literal, signed numbers included; undefined for any other expression. */
export function literalOf(expression: Expr): Literal | undefined {
  switch (expression.type) {
    case 'integer':
    case 'numeric':
    case 'string':
    case 'boolean':
      return { value: expression.value };
    case 'null':
      return { value: null };
    case 'unary': {
      if (expression.op !== '-' && expression.op !== '+') return undefined;
      const operand = literalOf(expression.operand);
      if (typeof operand?.value !== 'number') return undefined;
      return expression.op === '-' ? { value: -operand.value } : operand;
    }
    default:
      return undefined;
  }
}

export function describeConstruct(expression: Expr): string {
  switch (expression.type) {
    case 'binary':
    case 'unary':
    case 'ternary':
    case 'member':
      return `the operator ${cap(expression.op)} here`;
    case 'call':
      return `the function ${cap(expression.function.name)}`;
    case 'cast':
      return 'a cast';
    case 'parameter':
      return 'a parameter';
    case 'keyword':
      return `the keyword ${cap(expression.keyword)}`;
    case 'ref':
      return 'a field here';
    case 'list':
      return 'a row of values';
    case 'integer':
    case 'numeric':
    case 'string':
    case 'boolean':
    case 'null':
      return 'a literal here';
    default:
      return `the expression ${cap(expression.type)}`;
  }
}
