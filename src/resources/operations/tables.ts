/**
 * The two tables of operations: what is served, and the requests that wait to be carried out (lease.ts).
 */
import { type Field, madeFields } from '../../model/field.ts';

export const operationsTable = 'operations';
export const operationRequestsTable = 'operation_requests';

/** When a lease was last renewed: what requests are found by, hence an index of their table. */
export const renewedAtField: Field = madeField('updatedAt');
export const requestIdField: Field = madeField('id');

function madeField(name: string): Field {
  const field = madeFields.find((made) => made.name === name);
  if (field === undefined) throw new Error(`no resource has the field ${name}`);
  return field;
}
