/** Column values as they cross threads and leave statements that return arrays. */
import type { SQLOutputValue } from 'node:sqlite';

export type Cells = readonly SQLOutputValue[];
